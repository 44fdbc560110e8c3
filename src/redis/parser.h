/*
 * Bytes in, replies out. The protocol is parsed by the reader of hiredis; each header is measured here before that
 * reader sees it, because hiredis 0.14 allocates whatever a header announces (the 13 bytes "*2147483647\r\n" made it
 * reserve 16 GiB).
 */
#ifndef SNK_REDIS_PARSER_H
#define SNK_REDIS_PARSER_H

#include <stddef.h>

#include <hiredis/hiredis.h>

#include "base/limits.h"
#include "sneck.h"

#define SNK_REDIS_HEADER_SIZE 24 /* a type byte and a 64-bit number */

/* Where the measuring stands in the stream of bytes. */
typedef struct snk_redis_measure {
    const char *where;                      /* borrowed; the server, for messages */
    char header[SNK_REDIS_HEADER_SIZE];     /* the beginning of the line that is being read */
    size_t line_length;                     /* bytes of that line so far */
    size_t skip;                            /* bytes of a bulk string, with its CR LF, that are still to come */
    size_t bytes;                           /* of the reply so far, announced ones included */
    size_t elements;                        /* of the reply so far, announced ones included */
    size_t left[SNK_REDIS_REPLY_DEPTH_MAX]; /* elements that each open array still lacks */
    size_t depth;                           /* open arrays */
} snk_redis_measure;

typedef struct snk_redis_parser {
    redisReader *reader; /* owned */
    snk_redis_measure measure;
} snk_redis_parser;

/* Measures bytes: false when a reply is no RESP2 or is beyond a limit of base/limits.h. */
bool snk_redis_measure_feed(snk_redis_measure *measure, const char *data, size_t length, sneck_error *error);

/* `where` names the server in messages; it is borrowed. */
sneck_status snk_redis_parser_init(snk_redis_parser *parser, const char *where, sneck_error *error);
void snk_redis_parser_deinit(snk_redis_parser *parser);

/* Takes bytes. False: the stream is unusable from here on, `error` says why. */
bool snk_redis_parser_feed(snk_redis_parser *parser, const char *data, size_t length, sneck_error *error);

/* The next whole reply, owned by the caller; *reply_out is NULL when there is none yet. False: as with feed. */
bool snk_redis_parser_next(snk_redis_parser *parser, redisReply **reply_out, sneck_error *error);

#endif
