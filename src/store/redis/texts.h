/* The texts of a request's arguments, made by hand: printf costs more than all the rest of it. */
#ifndef SNK_STORE_REDIS_TEXTS_H
#define SNK_STORE_REDIS_TEXTS_H

#include <string.h>

#include "store/redis/redis.h"

#define SNK_NUMBER_SIZE 24

typedef struct snk_texts {
    char claim[SNK_ID_TEXT_SIZE];
    char beside[SNK_ID_TEXT_SIZE];
    char owner[SNK_OWNER_LENGTH_MAX + 1];
    char lease[SNK_NUMBER_SIZE];
    char tombstone[SNK_NUMBER_SIZE];
    char tokens[SNK_NUMBER_SIZE]; /* or levels, or units */
    char pid[SNK_NUMBER_SIZE];
    snk_keys keys;
    snk_announcement announcement;
} snk_texts;

static inline char *snk_text_append(char *to, const char *text, size_t length)
{
    memcpy(to, text, length);
    to[length] = '\0';
    return to + length;
}

/* `value` is not negative. Returns the end. */
static inline char *snk_text_number(char *to, int64_t value)
{
    char digits[SNK_NUMBER_SIZE];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return snk_text_append(to, digits + at, sizeof digits - at);
}

static inline const char *snk_text_flag(bool on)
{
    return on ? "1" : "0";
}

/* Up, because what the store keeps must not be shorter than what the caller believes. */
static inline int64_t snk_text_ms(int64_t ns)
{
    return (ns + SNK_NS_PER_MS - 1) / SNK_NS_PER_MS;
}

/* Who asks: owner and pid. */
static inline void snk_texts_asker(snk_texts *texts, const snk_redis_store *store, int64_t thread)
{
    (void)snk_text_number(texts->pid, store->identity.pid);
    char *end = snk_text_append(texts->owner, store->identity.uuid, SNK_UUID_TEXT_SIZE - 1);
    (void)snk_text_number(snk_text_append(end, ":", 1), thread > 0 ? thread : 0);
}

/* For how long a release leaves a tombstone; 0: none. */
static inline void snk_texts_tombstone(snk_texts *texts, const snk_send *send)
{
    int64_t life_ns = send->lease_ns > SNK_TOMBSTONE_NS ? send->lease_ns : SNK_TOMBSTONE_NS;
    (void)snk_text_number(texts->tombstone, send->unanswered ? snk_text_ms(life_ns) : 0);
}

#endif
