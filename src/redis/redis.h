/*
 * A client of one Redis server, for any number of threads.
 *
 * One command connection is shared by all threads; what they send at the same time travels together. Threads that
 * drive their calls do the I/O themselves, for everybody who waits; calls that nobody drives are served by the
 * connection's own thread. A second connection carries subscriptions, and a third, opened when first used, the commands
 * that block. Connections are made when needed, and made again with a pause that grows and is jittered. A connection
 * that is given up is reset, so that the kernel does not deliver its bytes later.
 *
 * Every call is done exactly once (call.h). Nothing is sent twice: whether to try again is the caller's to decide.
 */
#ifndef SNK_REDIS_REDIS_H
#define SNK_REDIS_REDIS_H

#include "redis/call.h"

typedef struct snk_redis snk_redis;

typedef struct snk_redis_tls {
    bool on;
    const char *ca;   /* file with the certificates to trust; NULL or "": those of the system */
    const char *cert; /* our certificate chain and its key, PEM; both or neither */
    const char *key;
    bool verify_none; /* neither chain nor host name is checked */
} snk_redis_tls;

/* A message that a server pushed. Bytes, which may contain NUL; valid during the call only. */
typedef struct snk_redis_message {
    const char *channel;
    size_t channel_length;
    const char *payload;
    size_t payload_length;
    snk_redis_run run; /* of the server that said it */
    bool sharded;      /* by SPUBLISH; in a cluster only that comes from the very server that has the keys */
} snk_redis_message;

/*
 * What the store hears. Each may be NULL. Called on a thread of the client (`connected` of a command connection too), or
 * on one that sleeps (snk_redis_sleep), one at a time per connection, with nothing locked; they may submit calls and
 * change subscriptions, but not drive, wait or close.
 */
typedef struct snk_redis_listener {
    void (*message)(void *context, const snk_redis_message *message);
    /*
     * The server has confirmed the subscription: the first time and again after each reconnect. What was said on the
     * channel before that may have been missed.
     */
    void (*subscribed)(void *context, const char *channel, size_t length, snk_redis_run run);
    /* The server refused the subscription, or has ended it because the channel is elsewhere now. */
    void (*unsubscribed)(void *context, const char *channel, size_t length, const sneck_error *why);
    /* The pub/sub connection was cut: until `subscribed` comes again nothing is heard. */
    void (*deafened)(void *context);
    /* A command connection was made, or made again (`again`): state on the server may have changed meanwhile. */
    void (*connected)(void *context, snk_redis_lane lane, snk_redis_run run, bool again);
    /* A command connection was cut, or given up. */
    void (*disconnected)(void *context, snk_redis_lane lane, const sneck_error *why);
    /* A log line: key=value text. */
    void (*log)(void *context, sneck_log_level level, const char *text);
    void *context;
} snk_redis_listener;

/* Texts are copied. */
typedef struct snk_redis_config {
    const char *host; /* name or address, IPv6 without brackets; NULL when there is a unix_path */
    int port;         /* 0: 6379 */
    int database;
    const char *unix_path;
    const char *user;     /* NULL or "": the default user */
    const char *password; /* NULL or "": none */
    snk_redis_tls tls;
    const char *client_name;    /* shown by CLIENT LIST; NULL or "": none */
    int64_t connect_timeout_ns; /* from looking the name up to the end of the greeting; 0: SNK_REDIS_CONNECT_NS */
    int64_t command_timeout_ns; /* 0: SNK_REDIS_COMMAND_NS. A server that is silent for so long is given up. */
    snk_redis_listener listener;
} snk_redis_config;

/*
 * Makes a client. No network I/O; certificates are read. SNECK_INVALID when the configuration is wrong, before anything
 * else; SNECK_DENIED when a certificate or key file cannot be read.
 */
sneck_status snk_redis_open(const snk_redis_config *config, snk_redis **redis_out, sneck_error *error);

/*
 * Sends calls, in this order and together where they share a lane, and returns; they are done when their answers come.
 */
void snk_redis_submit(snk_redis *redis, snk_redis_call *const calls[], size_t count);

/*
 * Sends a call when that time has come, and returns at once; its timeout counts from then. When the client is closed
 * before, it is not sent.
 */
void snk_redis_submit_later(snk_redis *redis, snk_redis_call *call, int64_t at_ns);

/*
 * Sends calls as snk_redis_submit does, and does the I/O until all of them are done (their `done` has returned too).
 * At most SNK_REDIS_DRIVE_MAX calls, all of one lane. Bounded by their timeouts; no cancellation point. Not from a
 * callback.
 */
void snk_redis_drive(snk_redis *redis, snk_redis_call *const calls[], size_t count);

/*
 * For a thread that asks several servers at once and waits until enough of them have answered. After attend the thread
 * is the one that receives from all of them, if it could be (true; otherwise nothing happened, and others receive, as
 * always). Then it submits calls there, and has to call receive with the same servers: that does the I/O until `*left` is
 * 0, which the calls' `done` lowers (release), or until `until_ns`, and gives everything back. Answers to calls that are
 * patient may then be heard a few ms late. At most SNK_REDIS_ATTEND_MAX servers. Not from a callback.
 */
bool snk_redis_attend(snk_redis *const servers[], size_t count);
void snk_redis_receive(snk_redis *const servers[], size_t count, _Atomic uint32_t *left, int64_t until_ns);

/*
 * Listens on a channel, from now on and after each reconnect; the confirmation comes by the listener's `subscribed`
 * (if the channel already is confirmed, nothing comes). Subscriptions count: each needs its own unsubscribe.
 * SNECK_NO_MEMORY, or SNECK_LIMIT beyond SNK_REDIS_CHANNELS_MAX channels.
 */
sneck_status snk_redis_subscribe(snk_redis *redis, const char *channel, size_t length, sneck_error *error);
#define SNK_REDIS_SHARDED_SINCE 70000 /* Redis 7.0 */

/* The same by SSUBSCRIBE, unless the server is older than Redis 7. A channel is one or the other. */
sneck_status snk_redis_subscribe_sharded(snk_redis *redis, const char *channel, size_t length, sneck_error *error);
void snk_redis_unsubscribe(snk_redis *redis, const char *channel, size_t length);

/* Whether the server has confirmed the channel on the present connection; then *run_out (may be NULL) says which. */
bool snk_redis_is_subscribed(snk_redis *redis, const char *channel, size_t length, snk_redis_run *run_out);

/* Waits until that is so, until `until_ns` at the latest. False: not yet; `error` says what the trouble is. */
bool snk_redis_await_subscribed(snk_redis *redis, const char *channel, size_t length, int64_t until_ns,
                                sneck_error *error);

/* How a thread sleeps until it is told something. */
typedef struct snk_redis_nap {
    _Atomic uint32_t *word;
    uint32_t expected; /* it sleeps while the word has this value */
    int64_t until_ns;  /* SNK_NEVER_NS: as long as it takes */
    bool may_receive;  /* it may receive messages meanwhile, for everybody */
} snk_redis_nap;

/*
 * Sleeps while the word is as expected and messages are heard; may return for no reason. If it may, and nobody else does,
 * the thread receives messages itself meanwhile, and calls the listener: then what it waits for reaches it without
 * another thread between. A cancellation point, but not in the middle of a message.
 */
void snk_redis_sleep(snk_redis *redis, const snk_redis_nap *nap);

/* A word was changed. True: its sleeper receives, and will look at it; false: it must be woken as any sleeper on a word. */
bool snk_redis_rouse(snk_redis *redis, const _Atomic uint32_t *word);

/* What is known about the server of the shared connection; zeros before the first connect. */
typedef struct snk_redis_server {
    bool connected;
    snk_redis_run run;
    unsigned version; /* 7.0.15 is 70015; 0: not known */
    /*
     * When that run began, as snk_now_ns counts; never too early, but up to a second too late. Where the run is not
     * known this is not either.
     */
    int64_t started_at_ns;
    uint64_t connects;
    uint64_t failures;      /* attempts to connect that failed, and connections given up */
    uint64_t in_flight;     /* calls that are not answered, sent or not */
    sneck_error last_error; /* of the last failure; SNECK_OK when there was none */
} snk_redis_server;
void snk_redis_describe(snk_redis *redis, snk_redis_server *server_out);

/* Gives the shared connection up, as when the server is silent for too long. The next call makes another one. */
void snk_redis_reconnect(snk_redis *redis);

/* Names the server for messages: "redis 10.0.0.5:6379". Without password; lives as long as the client. */
const char *snk_redis_where(const snk_redis *redis);

/*
 * Closing in three steps. begin_close: nothing more is sent, and every call that is not done becomes NOT_SENT or
 * UNCERTAIN soon, also those submitted from now on. close: waits until each call is done and each callback has
 * returned, ends the threads, frees. Not from a callback. NULL is a no-op.
 */
void snk_redis_begin_close(snk_redis *redis);
void snk_redis_close(snk_redis *redis);

/*
 * In a child of fork(): closes the descriptors so that the parent's connections are not kept open, and touches nothing
 * else (the memory stays, because another thread may have been changing it). The object must not be used again.
 */
void snk_redis_abandon(snk_redis *redis);

#endif
