/*
 * The channels that a client wants to hear, and what the server has said about each.
 *
 * SUBSCRIBE and UNSUBSCRIBE are answered in the order in which they were sent, so the confirmations are matched with a
 * queue of what was sent, and not by name alone: a channel that was left and joined again counts as joined when the
 * last command about it is confirmed. Not for several threads at once.
 */
#ifndef SNK_REDIS_CHANNELS_H
#define SNK_REDIS_CHANNELS_H

#include <stddef.h>

#include "base/list.h"
#include "sneck.h"

#define SNK_REDIS_CHANNEL_BUCKETS 256

typedef struct snk_redis_channel {
    snk_link link;       /* in its bucket */
    unsigned wanted;     /* subscriptions of the caller */
    unsigned in_flight;  /* commands about it that are not answered */
    bool joined;         /* by the last command that was sent */
    bool confirmed;      /* by the answer to that command */
    bool sharded;        /* SSUBSCRIBE; set by the caller */
    snk_link to_do;      /* in channels.to_do */
    sneck_error refused; /* why the server refused it; SNECK_OK when it did not */
    size_t length;
    char name[]; /* ends in NUL, which is not counted */
} snk_redis_channel;

/* A command that is not answered. */
typedef struct snk_redis_sent {
    snk_redis_channel *channel;
    bool join;
} snk_redis_sent;

typedef struct snk_redis_channels {
    snk_list buckets[SNK_REDIS_CHANNEL_BUCKETS];
    snk_list to_do; /* channels about which something may have to be sent */
    size_t count;
    snk_redis_sent *sent; /* owned ring, oldest first */
    size_t sent_capacity; /* a power of 2, or 0 */
    size_t sent_head;
    size_t sent_tail;
} snk_redis_channels;

void snk_redis_channels_init(snk_redis_channels *channels);
void snk_redis_channels_deinit(snk_redis_channels *channels);

snk_redis_channel *snk_redis_channels_find(snk_redis_channels *channels, const char *name, size_t length);

/* Counts a subscription up, making the channel if it is new. */
sneck_status snk_redis_channels_want(snk_redis_channels *channels, const char *name, size_t length, sneck_error *error);
void snk_redis_channels_unwant(snk_redis_channels *channels, const char *name, size_t length);

/*
 * The next command to send: *channel_out and whether to join it; it counts as sent. False when there is none, or no
 * memory to note it.
 */
bool snk_redis_channels_next(snk_redis_channels *channels, snk_redis_channel **channel_out, bool *join_out);

/*
 * The oldest command was answered (by an error, if `error` is not NULL). Returns its channel if that is now confirmed
 * or refused, else NULL: the channel may be gone.
 */
snk_redis_channel *snk_redis_channels_answered(snk_redis_channels *channels, const sneck_error *error);

/*
 * The server said that a channel was left. False when that is the answer to the oldest command. Else it has ended a
 * subscription by itself, which stays so until it is wanted anew: *channel_out, or NULL if there is none any more.
 */
bool snk_redis_channels_ended(snk_redis_channels *channels, const char *name, size_t length,
                              snk_redis_channel **channel_out);

/* The connection is gone: nothing is confirmed, and everything that is wanted must be sent again. */
void snk_redis_channels_cut(snk_redis_channels *channels);

#endif
