/* The checked configuration of one server, which all its connections share. Unchanging once made. */
#ifndef SNK_REDIS_SETTINGS_H
#define SNK_REDIS_SETTINGS_H

#include <openssl/types.h>

#include "redis/redis.h"

#define SNK_REDIS_WHERE_SIZE 160

typedef struct snk_redis_settings {
    char *host; /* owned, as all texts here; "" with a unix_path */
    char port[8];
    char *unix_path; /* "" with a host */
    char *user;
    char *password; /* never shown; wiped when freed */
    char *client_name;
    int database;
    SSL_CTX *tls; /* owned; NULL without TLS */
    bool tls_verify;
    int64_t connect_timeout_ns;
    int64_t command_timeout_ns;
    snk_redis_listener listener;
    char where[SNK_REDIS_WHERE_SIZE]; /* "redis host:6379", for messages */
} snk_redis_settings;

sneck_status snk_redis_settings_init(snk_redis_settings *settings, const snk_redis_config *config, sneck_error *error);
void snk_redis_settings_deinit(snk_redis_settings *settings);

/* Hands a line to the listener's log, if it has one. */
void snk_redis_log(const snk_redis_settings *settings, sneck_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
