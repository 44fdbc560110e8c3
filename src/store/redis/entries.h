/* What stands in the store's keys, read for people: the forms are those of scripts/. */
#ifndef SNK_STORE_REDIS_ENTRIES_H
#define SNK_STORE_REDIS_ENTRIES_H

#include <hiredis/hiredis.h>

#include "base/limits.h"
#include "sneck.h"

#define SNK_ENTRY_SIZE 1024

/* Copies a text so that it can be one word of an entry: without spaces, and not empty. */
void snk_entry_word(char *to, size_t size, const char *text);

typedef struct snk_holder_entry {
    sneck_party party; /* its texts point into the reply, or into `text` */
    uint64_t token;
    int64_t since_ms;
    bool fair;
    char text[2][SNK_ENTRY_SIZE];
} snk_holder_entry;

/* Each is false when there is none, or it makes no sense. */

/* A lock of layout `hash`, as HGETALL gives it. */
bool snk_entry_read_hash(const redisReply *fields, snk_holder_entry *holder);
/* A lock of layout `string`: an array with its value, if there is one; and the counter beside it. */
bool snk_entry_read_string(const redisReply *value, const char *counter, snk_holder_entry *holder);

/* One of several holders. */
bool snk_entry_read_one_of_many(const redisReply *entry, snk_holder_entry *holder);

typedef struct snk_waiter_entry {
    sneck_party party; /* its texts point into `text` */
    int64_t since_ms;
    char text[SNK_ENTRY_SIZE];
} snk_waiter_entry;
bool snk_entry_read_waiter(const redisReply *entry, snk_waiter_entry *waiter);

typedef struct snk_log_entry {
    sneck_incident incident; /* its texts point into `text` */
    int64_t since_ms;
    char text[SNK_ENTRY_SIZE];
} snk_log_entry;
bool snk_entry_read_log(const redisReply *entry, snk_log_entry *out);

#endif
