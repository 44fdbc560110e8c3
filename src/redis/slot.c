#include "redis/slot.h"

#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x1021 /* CRC-16/XMODEM: what the cluster specification says */

static uint16_t crc16(const char *data, size_t length)
{
    uint16_t crc = 0;
    for (size_t i = 0; i < length; i++) {
        /* Eight steps of the polynomial at once, without a table: its two set bits besides the top make that simple. */
        uint8_t top = (uint8_t)(crc >> 8 ^ (uint8_t)data[i]);
        top ^= (uint8_t)(top >> 4);
        crc = (uint16_t)(crc << 8 ^ top << 12 ^ top << 5 ^ top);
    }
    return crc;
}

_Static_assert(POLYNOMIAL == (1 << 12 | 1 << 5 | 1), "crc16 has the polynomial written out");

uint16_t snk_redis_slot_of(const char *key, size_t length)
{
    const char *open = memchr(key, '{', length);
    if (open != NULL) {
        size_t rest = length - (size_t)(open + 1 - key);
        const char *end = memchr(open + 1, '}', rest);
        if (end != NULL && end > open + 1) {
            key = open + 1;
            length = (size_t)(end - key);
        }
    }
    return crc16(key, length) % SNK_REDIS_SLOTS;
}

static size_t digits_of(uint32_t number, char digits[10])
{
    char reversed[10];
    size_t length = 0;
    do {
        reversed[length++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (size_t i = 0; i < length; i++)
        digits[i] = reversed[length - 1 - i];
    return length;
}

void snk_redis_slot_tags(uint32_t tags[])
{
    bool known[SNK_REDIS_SLOTS] = { false };
    size_t left = SNK_REDIS_SLOTS;
    for (uint32_t number = 0; left > 0; number++) {
        char digits[10] = { 0 };
        uint16_t slot = crc16(digits, digits_of(number, digits)) % SNK_REDIS_SLOTS;
        if (known[slot])
            continue;
        known[slot] = true;
        tags[slot] = number;
        left--;
    }
}
