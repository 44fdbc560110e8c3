#include "base/ids.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

bool snk_id_random(snk_id *id_out)
{
    size_t filled = 0;
    while (filled < sizeof id_out->bytes) {
        ssize_t got = getrandom(id_out->bytes + filled, sizeof id_out->bytes - filled, 0);
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0)
            filled += (size_t)got;
    }
    return !snk_id_is_none(id_out);
}

bool snk_id_equal(const snk_id *a, const snk_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

bool snk_id_is_none(const snk_id *id)
{
    static const snk_id none;
    return snk_id_equal(id, &none);
}

void snk_id_to_hex(const snk_id *id, char text[SNK_ID_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof id->bytes; i++) {
        text[2 * i] = digits[id->bytes[i] >> 4];
        text[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    text[SNK_ID_TEXT_SIZE - 1] = '\0';
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return -1;
}

bool snk_id_from_hex(snk_id *id_out, const char *text)
{
    if (strlen(text) != SNK_ID_TEXT_SIZE - 1)
        return false;
    for (size_t i = 0; i < sizeof id_out->bytes; i++) {
        int high = hex_value(text[2 * i]);
        int low = hex_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        id_out->bytes[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

void snk_id_to_uuid(const snk_id *id, char text[SNK_UUID_TEXT_SIZE])
{
    snk_id uuid = *id;
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0FU) | 0x40U);
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3FU) | 0x80U);
    char hex[SNK_ID_TEXT_SIZE];
    snk_id_to_hex(&uuid, hex);
    (void)snprintf(text, SNK_UUID_TEXT_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

/*
 * The one mutable global of the library: it only counts up, so clients share nothing through it, and a child of fork()
 * goes on from the parent's number without harm.
 */
static _Atomic uint64_t threads_numbered;

uint64_t snk_thread_number(void)
{
    static _Thread_local uint64_t number;
    if (number == 0)
        number = atomic_fetch_add_explicit(&threads_numbered, 1, memory_order_relaxed) + 1;
    return number;
}
