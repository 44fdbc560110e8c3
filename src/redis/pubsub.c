#include "redis/pubsub_parts.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "redis/backoff.h"
#include "redis/bytes.h"
#include "redis/channels.h"
#include "redis/errors.h"
#include "redis/greet.h"

sneck_status snk_redis_pubsub_open(const snk_redis_settings *settings, int stop_fd, snk_redis_pubsub **pubsub_out,
                                   sneck_error *error)
{
    *pubsub_out = NULL;
    snk_redis_pubsub *pubsub = calloc(1, sizeof *pubsub);
    if (pubsub == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory for a connection");
    pubsub->settings = settings;
    pubsub->stop_fd = stop_fd;
    snk_redis_channels_init(&pubsub->channels);
    pubsub->random = (uint64_t)snk_wall_us() << 20 | (uint64_t)getpid() << 1 | 1;
    pubsub->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pubsub->rouse_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pubsub->wake_fd < 0 || pubsub->rouse_fd < 0) {
        sneck_status status = snk_fail(error, SNECK_LIMIT, errno, "redis: no file descriptor for a connection");
        if (pubsub->wake_fd >= 0)
            close(pubsub->wake_fd);
        if (pubsub->rouse_fd >= 0)
            close(pubsub->rouse_fd);
        free(pubsub);
        return status;
    }
    pthread_condattr_t attributes;
    /* On Linux none of these can fail. */
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&pubsub->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    (void)pthread_mutex_init(&pubsub->mutex, NULL);
    (void)snk_redis_wire_init(&pubsub->wire, NULL);
    *pubsub_out = pubsub;
    return SNECK_OK;
}

/* ---- Connecting ---- */

static sneck_status connect_wire(snk_redis_pubsub *pubsub, snk_redis_greeting *greeting, sneck_error *error)
{
    int64_t until_ns = snk_time_add(snk_now_ns(), pubsub->settings->connect_timeout_ns);
    sneck_status status = snk_redis_wire_open(&pubsub->wire, pubsub->settings, pubsub->stop_fd, until_ns, error);
    if (status != SNECK_OK)
        return status;
    status = snk_redis_parser_init(&pubsub->parser, pubsub->settings->where, error);
    if (status == SNECK_OK) {
        snk_redis_greeter greeter = { .wire = &pubsub->wire,
                                      .parser = &pubsub->parser,
                                      .settings = pubsub->settings,
                                      .stop_fd = pubsub->stop_fd,
                                      .until_ns = until_ns };
        status = snk_redis_greet(&greeter, greeting, error);
    }
    if (status == SNECK_OK)
        return SNECK_OK;
    snk_redis_parser_deinit(&pubsub->parser);
    snk_redis_wire_close(&pubsub->wire);
    return status;
}

static void connect_or_wait(snk_redis_pubsub *pubsub)
{
    snk_redis_greeting greeting = { 0 };
    sneck_error error;
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->attempts++;
    pthread_mutex_unlock(&pubsub->mutex);
    sneck_status status = connect_wire(pubsub, &greeting, &error);
    int64_t now = snk_now_ns();
    pubsub->out.length = 0;
    pubsub->sent = 0;
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->retry_at_ns = now + snk_redis_backoff_ns(pubsub->attempts, &pubsub->random);
    pubsub->received_at_ns = now;
    pubsub->asked_at_ns = 0;
    pubsub->failed = false;
    atomic_store_explicit(&pubsub->hushed, false, memory_order_release);
    pubsub->connected = status == SNECK_OK;
    pubsub->run = greeting.run;
    pubsub->version = greeting.version;
    if (status != SNECK_OK)
        pubsub->last_error = error;
    pthread_cond_broadcast(&pubsub->changed);
    pthread_mutex_unlock(&pubsub->mutex);
    if (status != SNECK_OK)
        snk_redis_log(pubsub->settings, SNECK_LOG_WARNING, "event=subscriber-connect-failed server=\"%s\" error=\"%s\"",
                      pubsub->settings->where, error.message);
}

static void cut(snk_redis_pubsub *pubsub, const sneck_error *why)
{
    pthread_mutex_lock(&pubsub->mutex);
    snk_redis_hearing_hush_locked(pubsub);
    pubsub->connected = false;
    pthread_mutex_unlock(&pubsub->mutex);
    snk_redis_wire_close(&pubsub->wire);
    snk_redis_parser_deinit(&pubsub->parser);
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->retry_at_ns = snk_now_ns() + snk_redis_backoff_ns(pubsub->attempts, &pubsub->random);
    pubsub->run = 0;
    pubsub->last_error = *why;
    snk_redis_channels_cut(&pubsub->channels);
    bool closing = pubsub->closing;
    pthread_cond_broadcast(&pubsub->changed);
    pthread_mutex_unlock(&pubsub->mutex);
    if (closing)
        return;
    snk_redis_log(pubsub->settings, SNECK_LOG_WARNING, "event=subscriber-cut server=\"%s\" error=\"%s\"",
                  pubsub->settings->where, why->message);
    if (pubsub->settings->listener.deafened != NULL)
        pubsub->settings->listener.deafened(pubsub->settings->listener.context);
}

/* ---- Sending ---- */

static bool add_command(snk_redis_pubsub *pubsub, size_t count, const char *const words[], const size_t lengths[])
{
    snk_redis_call call;
    snk_redis_call_init(&call);
    bool added = snk_redis_call_format(&call, count, words, lengths, NULL) == SNECK_OK &&
                 snk_redis_bytes_add(&pubsub->out, call.command, call.command_length);
    snk_redis_call_deinit(&call);
    return added;
}

static const char *command_for(const snk_redis_pubsub *pubsub, const snk_redis_channel *channel, bool join)
{
    /* A server that does not tell its version is taken for a new one. */
    if (channel->sharded && (pubsub->version == 0 || pubsub->version >= SNK_REDIS_SHARDED_SINCE))
        return join ? "SSUBSCRIBE" : "SUNSUBSCRIBE";
    return join ? "SUBSCRIBE" : "UNSUBSCRIBE";
}

/* Writes down what is to be sent. False: no memory, so that what was counted as sent is not. */
static bool gather(snk_redis_pubsub *pubsub, int64_t now)
{
    bool fine = true;
    snk_redis_channel *channel;
    bool join;
    pthread_mutex_lock(&pubsub->mutex);
    while (fine && snk_redis_channels_next(&pubsub->channels, &channel, &join)) {
        const char *words[] = { command_for(pubsub, channel, join), channel->name };
        const size_t lengths[] = { strlen(words[0]), channel->length };
        fine = add_command(pubsub, 2, words, lengths);
        if (pubsub->asked_at_ns == 0)
            pubsub->asked_at_ns = now;
    }
    /* Silence is no proof of life: ask. */
    if (fine && pubsub->asked_at_ns == 0 && now - pubsub->received_at_ns >= SNK_REDIS_KEEPALIVE_NS) {
        fine = add_command(pubsub, 1, (const char *const[]){ "PING" }, NULL);
        pubsub->asked_at_ns = now;
    }
    pthread_mutex_unlock(&pubsub->mutex);
    return fine;
}

static bool send_out(snk_redis_pubsub *pubsub, sneck_error *error)
{
    while (pubsub->sent < pubsub->out.length) {
        ssize_t count = snk_redis_wire_send(&pubsub->wire, pubsub->out.data + pubsub->sent,
                                            pubsub->out.length - pubsub->sent, error);
        if (count < 0)
            return false;
        if (count == 0)
            return true;
        pubsub->sent += (size_t)count;
    }
    pubsub->out.length = 0;
    pubsub->sent = 0;
    return true;
}

/* ---- Receiving ---- */

/* The server has not, or no longer, subscribed us to the channel (NULL: no memory for its name). */
static void lose(const snk_redis_pubsub *pubsub, const char *channel, size_t length, const sneck_error *why)
{
    const snk_redis_listener *listener = &pubsub->settings->listener;
    snk_redis_log(pubsub->settings, SNECK_LOG_ERROR, "event=subscription-refused error=\"%s\"", why->message);
    if (channel != NULL && listener->unsubscribed != NULL)
        listener->unsubscribed(listener->context, channel, length, why);
}

/* The name of a channel that may be gone once the mutex is free. NULL when out of memory. */
static char *copy_name_locked(const snk_redis_channel *channel, size_t *length_out)
{
    char *name = malloc(channel->length + 1);
    if (name != NULL)
        memcpy(name, channel->name, channel->length + 1);
    *length_out = channel->length;
    return name;
}

static void hear_answer(snk_redis_pubsub *pubsub, const sneck_error *refusal)
{
    size_t length = 0;
    pthread_mutex_lock(&pubsub->mutex);
    const snk_redis_channel *channel = snk_redis_channels_answered(&pubsub->channels, refusal);
    bool settled = channel != NULL;
    char *name = settled ? copy_name_locked(channel, &length) : NULL;
    snk_redis_run run = pubsub->run;
    pthread_cond_broadcast(&pubsub->changed);
    pthread_mutex_unlock(&pubsub->mutex);
    const snk_redis_listener *listener = &pubsub->settings->listener;
    if (settled && refusal != NULL)
        lose(pubsub, name, length, refusal);
    else if (name != NULL && listener->subscribed != NULL)
        listener->subscribed(listener->context, name, length, run);
    free(name);
}

/* A channel was left: because we wanted to, or because the server has given its slot away. */
static void hear_left(snk_redis_pubsub *pubsub, const redisReply *name)
{
    if (name->type != REDIS_REPLY_STRING)
        return;
    snk_redis_channel *channel = NULL;
    pthread_mutex_lock(&pubsub->mutex);
    bool ended = snk_redis_channels_ended(&pubsub->channels, name->str, (size_t)name->len, &channel);
    pthread_mutex_unlock(&pubsub->mutex);
    sneck_error why;
    if (!ended) {
        hear_answer(pubsub, NULL);
    } else if (channel != NULL) {
        snk_fail(&why, SNECK_UNAVAILABLE, 0, "%s: the channel is elsewhere now", pubsub->settings->where);
        lose(pubsub, name->str, (size_t)name->len, &why);
    }
}

static void hear_message(const snk_redis_pubsub *pubsub, const redisReply *channel, const redisReply *payload,
                         bool sharded)
{
    const snk_redis_listener *listener = &pubsub->settings->listener;
    if (listener->message == NULL || channel->type != REDIS_REPLY_STRING || payload->type != REDIS_REPLY_STRING)
        return;
    /* `run` changes only while nobody receives. */
    snk_redis_message message = { .channel = channel->str,
                                  .channel_length = (size_t)channel->len,
                                  .payload = payload->str,
                                  .payload_length = (size_t)payload->len,
                                  .run = pubsub->run,
                                  .sharded = sharded };
    listener->message(listener->context, &message);
}

static void hear(snk_redis_pubsub *pubsub, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        sneck_error refusal;
        snk_redis_error_explain(reply, pubsub->settings->where, &refusal);
        hear_answer(pubsub, &refusal);
        return;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 || reply->element[0]->type != REDIS_REPLY_STRING)
        return;
    const char *kind = reply->element[0]->str;
    bool sharded = kind[0] == 's' && strncmp(kind, "subscribe", strlen("subscribe")) != 0;
    if (sharded)
        kind++;
    if (strcmp(kind, "message") == 0 && reply->elements == 3)
        hear_message(pubsub, reply->element[1], reply->element[2], sharded);
    else if (strcmp(kind, "subscribe") == 0)
        hear_answer(pubsub, NULL);
    else if (strcmp(kind, "unsubscribe") == 0)
        hear_left(pubsub, reply->element[1]);
}

static bool hear_all(snk_redis_pubsub *pubsub, sneck_error *error)
{
    for (;;) {
        redisReply *reply;
        if (!snk_redis_parser_next(&pubsub->parser, &reply, error))
            return false;
        if (reply == NULL)
            return true;
        hear(pubsub, reply);
        freeReplyObject(reply);
    }
}

static void note_received(snk_redis_pubsub *pubsub)
{
    int64_t now = snk_now_ns();
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->received_at_ns = now;
    pubsub->attempts = 0;
    bool answered = pubsub->channels.sent_head == pubsub->channels.sent_tail;
    pubsub->asked_at_ns = answered ? 0 : now;
    pthread_mutex_unlock(&pubsub->mutex);
}

bool snk_redis_pubsub_receive(snk_redis_pubsub *pubsub, sneck_error *error)
{
    do {
        ssize_t count = snk_redis_wire_receive_now(&pubsub->wire, pubsub->received, sizeof pubsub->received, error);
        if (count <= 0)
            return count == 0;
        if (!snk_redis_parser_feed(&pubsub->parser, pubsub->received, (size_t)count, error) || !hear_all(pubsub, error))
            return false;
        note_received(pubsub);
        /* No more than must be: the receiver has its own limits, however fast others publish. */
    } while (snk_redis_wire_has_pending(&pubsub->wire));
    return true;
}

/* ---- The thread ---- */

/* False: a sleeper found the connection over, or the server is silent. */
static bool check_health(snk_redis_pubsub *pubsub, int64_t now, sneck_error *error)
{
    pthread_mutex_lock(&pubsub->mutex);
    bool failed = pubsub->failed;
    bool silent = pubsub->asked_at_ns != 0 && now - pubsub->asked_at_ns >= pubsub->settings->command_timeout_ns;
    if (failed)
        snk_fail_as(error, &pubsub->last_error);
    else if (silent)
        snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: the server did not answer in time", pubsub->settings->where);
    pthread_mutex_unlock(&pubsub->mutex);
    return !failed && !silent;
}

/* When to look again, and whether at the socket too. */
static int64_t plan_locked(snk_redis_pubsub *pubsub, bool *looks_out)
{
    pubsub->thread_looks = snk_redis_hearing_is_needed_locked(pubsub);
    *looks_out = pubsub->thread_looks;
    return pubsub->asked_at_ns != 0 ? snk_time_add(pubsub->asked_at_ns, pubsub->settings->command_timeout_ns)
                                    : pubsub->received_at_ns + SNK_REDIS_KEEPALIVE_NS;
}

static bool wait_and_receive(snk_redis_pubsub *pubsub, sneck_error *error)
{
    bool looks = false;
    pthread_mutex_lock(&pubsub->mutex);
    int64_t until_ns = plan_locked(pubsub, &looks);
    pthread_mutex_unlock(&pubsub->mutex);
    short events = (short)((looks ? POLLIN : 0) | (pubsub->out.length > 0 ? POLLOUT : 0));
    struct pollfd polled[] = { { .fd = events != 0 ? pubsub->wire.fd : -1, .events = events },
                               { .fd = pubsub->wake_fd, .events = POLLIN } };
    int count = poll(polled, 2, snk_redis_poll_ms(until_ns));
    if (count > 0 && polled[1].revents != 0) {
        eventfd_t value;
        eventfd_read(pubsub->wake_fd, &value);
    }
    if (count <= 0 || (polled[0].revents & ~POLLOUT) == 0 || !snk_redis_hearing_begin(pubsub))
        return true;
    bool fine = snk_redis_pubsub_receive(pubsub, error);
    snk_redis_hearing_end(pubsub);
    return fine;
}

/* One turn on a connection that stands. False: it is over. */
static bool serve(snk_redis_pubsub *pubsub, sneck_error *error)
{
    int64_t now = snk_now_ns();
    if (!check_health(pubsub, now, error))
        return false;
    if (!gather(pubsub, now)) {
        snk_fail(error, SNECK_NO_MEMORY, ENOMEM, "redis: no memory to subscribe");
        return false;
    }
    return send_out(pubsub, error) && wait_and_receive(pubsub, error);
}

/* Sleeps while there is nothing to connect for, or until the next attempt. */
static void idle(snk_redis_pubsub *pubsub, int64_t until_ns)
{
    struct pollfd polled = { .fd = pubsub->wake_fd, .events = POLLIN };
    eventfd_t value;
    if (poll(&polled, 1, snk_redis_poll_ms(until_ns)) > 0)
        eventfd_read(pubsub->wake_fd, &value);
}

static void *run(void *argument)
{
    snk_redis_pubsub *pubsub = argument;
    for (;;) {
        pthread_mutex_lock(&pubsub->mutex);
        bool closing = pubsub->closing;
        bool connected = pubsub->connected;
        bool wanted = pubsub->channels.count > 0;
        pthread_mutex_unlock(&pubsub->mutex);
        sneck_error error;
        if (closing)
            break;
        if (connected) {
            if (!serve(pubsub, &error))
                cut(pubsub, &error);
        } else if (!wanted) {
            idle(pubsub, SNK_NEVER_NS);
        } else if (snk_now_ns() < pubsub->retry_at_ns) {
            idle(pubsub, pubsub->retry_at_ns);
        } else {
            connect_or_wait(pubsub);
        }
    }
    return NULL;
}

static sneck_status start_locked(snk_redis_pubsub *pubsub, sneck_error *error)
{
    if (pubsub->closing)
        return snk_fail(error, SNECK_UNAVAILABLE, ECANCELED, "%s: the client is being closed", pubsub->settings->where);
    if (pubsub->thread_started)
        return SNECK_OK;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pubsub->thread_started = pthread_create(&pubsub->thread, NULL, run, pubsub) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!pubsub->thread_started)
        return snk_fail(error, SNECK_NO_MEMORY, EAGAIN, "redis: cannot start a thread");
    return SNECK_OK;
}

/* ---- For all threads ---- */

sneck_status snk_redis_pubsub_subscribe(snk_redis_pubsub *pubsub, const char *channel, size_t length, bool sharded,
                                        sneck_error *error)
{
    pthread_mutex_lock(&pubsub->mutex);
    sneck_status status = start_locked(pubsub, error);
    if (status == SNECK_OK)
        status = snk_redis_channels_want(&pubsub->channels, channel, length, error);
    if (status == SNECK_OK)
        snk_redis_channels_find(&pubsub->channels, channel, length)->sharded = sharded;
    pthread_mutex_unlock(&pubsub->mutex);
    eventfd_write(pubsub->wake_fd, 1);
    return status;
}

void snk_redis_pubsub_unsubscribe(snk_redis_pubsub *pubsub, const char *channel, size_t length)
{
    pthread_mutex_lock(&pubsub->mutex);
    snk_redis_channels_unwant(&pubsub->channels, channel, length);
    pthread_mutex_unlock(&pubsub->mutex);
    eventfd_write(pubsub->wake_fd, 1);
}

bool snk_redis_pubsub_is_subscribed(snk_redis_pubsub *pubsub, const char *channel, size_t length,
                                    snk_redis_run *run_out)
{
    pthread_mutex_lock(&pubsub->mutex);
    const snk_redis_channel *found = snk_redis_channels_find(&pubsub->channels, channel, length);
    bool confirmed = found != NULL && found->wanted > 0 && found->confirmed;
    if (run_out != NULL)
        *run_out = confirmed ? pubsub->run : 0;
    pthread_mutex_unlock(&pubsub->mutex);
    return confirmed;
}

/* Whether there is anything to wait for; fills `error` when not. */
static bool is_hopeful_locked(const snk_redis_pubsub *pubsub, const snk_redis_channel *channel, sneck_error *error)
{
    const char *where = pubsub->settings->where;
    if (pubsub->closing)
        snk_fail(error, SNECK_UNAVAILABLE, ECANCELED, "%s: the client is being closed", where);
    else if (channel == NULL || channel->wanted == 0)
        snk_fail(error, SNECK_INVALID, 0, "%s: waiting for a channel that nobody subscribed to", where);
    else if (channel->refused.status != SNECK_OK)
        snk_fail_as(error, &channel->refused);
    else
        return true;
    return false;
}

bool snk_redis_pubsub_await(snk_redis_pubsub *pubsub, const char *channel, size_t length, int64_t until_ns,
                            sneck_error *error)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    bool confirmed = false;
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->waiters++;
    for (;;) {
        const snk_redis_channel *found = snk_redis_channels_find(&pubsub->channels, channel, length);
        confirmed = found != NULL && found->wanted > 0 && found->confirmed;
        if (confirmed || !is_hopeful_locked(pubsub, found, error))
            break;
        int64_t left_ns = until_ns - snk_now_ns();
        if (left_ns <= 0) {
            snk_fail(error, SNECK_UNAVAILABLE, ETIMEDOUT, "%s: no subscription in time%s%.120s",
                     pubsub->settings->where, pubsub->last_error.status != SNECK_OK ? "; last: " : "",
                     pubsub->last_error.message);
            break;
        }
        struct timespec until = snk_timespec(snk_time_add(snk_clock_read_ns(CLOCK_MONOTONIC), left_ns));
        pthread_cond_timedwait(&pubsub->changed, &pubsub->mutex, &until);
    }
    pubsub->waiters--;
    pthread_cond_broadcast(&pubsub->changed);
    pthread_mutex_unlock(&pubsub->mutex);
    if (confirmed)
        snk_ok(error);
    pthread_setcancelstate(cancel_state, NULL);
    return confirmed;
}

void snk_redis_pubsub_begin_close(snk_redis_pubsub *pubsub)
{
    pthread_mutex_lock(&pubsub->mutex);
    pubsub->closing = true;
    atomic_store_explicit(&pubsub->hushed, true, memory_order_release);
    pthread_cond_broadcast(&pubsub->changed);
    pthread_mutex_unlock(&pubsub->mutex);
    eventfd_write(pubsub->rouse_fd, 1);
    eventfd_write(pubsub->wake_fd, 1);
}

void snk_redis_pubsub_close(snk_redis_pubsub *pubsub)
{
    if (pubsub == NULL)
        return;
    snk_redis_pubsub_begin_close(pubsub);
    if (pubsub->thread_started)
        pthread_join(pubsub->thread, NULL);
    pthread_mutex_lock(&pubsub->mutex);
    while (pubsub->waiters > 0)
        pthread_cond_wait(&pubsub->changed, &pubsub->mutex);
    pthread_mutex_unlock(&pubsub->mutex);
    snk_redis_parser_deinit(&pubsub->parser);
    snk_redis_wire_deinit(&pubsub->wire);
    snk_redis_channels_deinit(&pubsub->channels);
    snk_redis_bytes_free(&pubsub->out);
    pthread_cond_destroy(&pubsub->changed);
    pthread_mutex_destroy(&pubsub->mutex);
    close(pubsub->wake_fd);
    close(pubsub->rouse_fd);
    free(pubsub);
}

void snk_redis_pubsub_abandon(snk_redis_pubsub *pubsub)
{
    close(pubsub->wake_fd);
    close(pubsub->rouse_fd);
    int fd = atomic_load_explicit(&pubsub->wire.fd, memory_order_relaxed);
    if (fd >= 0)
        close(fd);
}
