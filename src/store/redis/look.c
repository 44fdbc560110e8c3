/* Looking at locks, and breaking holds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/redis/entries.h"
#include "store/redis/names.h"
#include "store/redis/run.h"
#include "store/view.h"

/* A look that was not answered has changed nothing: what may have happened did not matter. */
static sneck_status settle_look(sneck_status status, bool uncertain, sneck_error *error)
{
    if (status == SNECK_OK || !uncertain)
        return status;
    if (error != NULL)
        error->status = SNECK_UNAVAILABLE;
    return SNECK_UNAVAILABLE;
}

/* ---- One lock ---- */

/* What the inspect script answers, in this order. */
enum {
    SHOWN_NOW,
    SHOWN_TTL,
    SHOWN_LOCK,
    SHOWN_COUNTER,
    SHOWN_WAITERS,
    SHOWN_LOG,
    SHOWN_HOLDERS,
    SHOWN_PERMITS,
    SHOWN_COUNT
};

static bool is_sound(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == SHOWN_COUNT &&
           reply->element[SHOWN_NOW]->type == REDIS_REPLY_INTEGER &&
           reply->element[SHOWN_TTL]->type == REDIS_REPLY_INTEGER &&
           reply->element[SHOWN_LOCK]->type == REDIS_REPLY_ARRAY &&
           reply->element[SHOWN_COUNTER]->type == REDIS_REPLY_STRING &&
           reply->element[SHOWN_WAITERS]->type == REDIS_REPLY_ARRAY &&
           reply->element[SHOWN_LOG]->type == REDIS_REPLY_ARRAY &&
           reply->element[SHOWN_HOLDERS]->type == REDIS_REPLY_ARRAY &&
           reply->element[SHOWN_PERMITS]->type == REDIS_REPLY_INTEGER;
}

static void show_one(snk_holder_entry *holder, int64_t now_ms, int64_t remaining_ms, snk_view *view)
{
    holder->party.age_ms = holder->since_ms > 0 && now_ms > holder->since_ms ? now_ms - holder->since_ms : 0;
    holder->party.remaining_ms = remaining_ms;
    snk_view_hold(view, &holder->party, holder->token, holder->fair);
}

/* Several holders; false when there are none. */
static bool show_many(const redisReply *reply, snk_view *view)
{
    int64_t now_ms = reply->element[SHOWN_NOW]->integer;
    const redisReply *holders = reply->element[SHOWN_HOLDERS];
    for (size_t i = 0; i + 1 < holders->elements; i += 2) {
        snk_holder_entry holder;
        if (holders->element[i]->type == REDIS_REPLY_STRING &&
            snk_entry_read_one_of_many(holders->element[i + 1], &holder))
            show_one(&holder, now_ms, strtoll(holders->element[i]->str, NULL, 10) - now_ms, view);
    }
    return holders->elements > 0;
}

static void show_holder(const snk_redis_store *store, const redisReply *reply, snk_view *view)
{
    snk_holder_entry holder;
    int64_t now_ms = reply->element[SHOWN_NOW]->integer;
    const redisReply *lock = reply->element[SHOWN_LOCK];
    const char *counter = reply->element[SHOWN_COUNTER]->str;
    view->info.token = strtoull(counter, NULL, 10);
    view->info.permits = reply->element[SHOWN_PERMITS]->integer;
    if (show_many(reply, view))
        return;
    bool held = store->options.layout == SNK_LAYOUT_HASH ? snk_entry_read_hash(lock, &holder)
                                                         : snk_entry_read_string(lock, counter, &holder);
    if (held)
        show_one(&holder, now_ms, reply->element[SHOWN_TTL]->integer, view);
}

static void show_waiters(const redisReply *reply, snk_view *view)
{
    int64_t now_ms = reply->element[SHOWN_NOW]->integer;
    const redisReply *waiters = reply->element[SHOWN_WAITERS];
    for (size_t i = 0; i + 1 < waiters->elements; i += 2) {
        snk_waiter_entry waiter;
        if (waiters->element[i]->type != REDIS_REPLY_STRING || !snk_entry_read_waiter(waiters->element[i + 1], &waiter))
            continue;
        waiter.party.age_ms = now_ms > waiter.since_ms ? now_ms - waiter.since_ms : 0;
        waiter.party.remaining_ms = strtoll(waiters->element[i]->str, NULL, 10) - now_ms;
        snk_view_waiter(view, &waiter.party);
    }
}

static void show_log(const redisReply *reply, snk_view *view)
{
    const redisReply *log = reply->element[SHOWN_LOG];
    for (size_t i = 0; i < log->elements; i++) {
        snk_log_entry entry;
        if (!snk_entry_read_log(log->element[i], &entry))
            continue;
        /* Nobody wrote down how it ended: it is the present hold, which is shown already, or has ended with its lease. */
        bool is_open = strcmp(entry.incident.kind, "acquired") == 0;
        if (is_open && view->info.held && entry.incident.token == view->info.token)
            continue;
        snk_log_entry next;
        if (is_open && i + 1 < log->elements && snk_entry_read_log(log->element[i + 1], &next))
            entry.incident.time_ms = next.since_ms;
        if (is_open)
            entry.incident.kind = "expired";
        snk_view_incident(view, &entry.incident);
    }
}

sneck_status snk_redis_store_inspect(snk_store *base, const char *name, snk_view *view, sneck_error *error)
{
    snk_redis_store *store = snk_redis_store_of(base);
    snk_keys keys;
    sneck_status status = snk_keys_make(&keys, store->prefix, name, error);
    if (status != SNECK_OK)
        return status;
    snk_run run = { .script = SNK_SCRIPT_INSPECT, .keys = &keys };
    snk_redis_call call;
    snk_redis_call_init(&call);
    snk_view_reset(view);
    snk_view_name(view, name);
    bool uncertain = false;
    status = snk_run_one(store, &run, &call, &uncertain, error);
    status = settle_look(status, uncertain, error);
    if (status == SNECK_OK && is_sound(call.reply)) {
        show_holder(store, call.reply, view);
        show_waiters(call.reply, view);
        show_log(call.reply, view);
    } else if (status == SNECK_OK) {
        status = snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the answer to a script makes no sense", store->where);
    }
    snk_redis_call_deinit(&call);
    if (status == SNECK_OK && view->out_of_memory)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    return status == SNECK_OK ? snk_ok(error) : status;
}

/* ---- Breaking ---- */

sneck_status snk_redis_store_break(snk_store *base, const char *name, uint64_t token, const char *reason,
                                   sneck_error *error)
{
    snk_redis_store *store = snk_redis_store_of(base);
    snk_keys keys;
    sneck_status status = snk_keys_make(&keys, store->prefix, name, error);
    if (status != SNECK_OK)
        return status;
    char token_text[24];
    char text[SNK_WHY_LENGTH_MAX + SNK_HOST_LENGTH_MAX + 48];
    (void)snprintf(token_text, sizeof token_text, "%" PRIu64, token);
    (void)snprintf(text, sizeof text, "%.200s (by pid %lld on %s)", reason, (long long)store->identity.pid,
                   store->host);
    snk_announcement announcement;
    snk_announcement_make(store, name, &keys, &announcement);
    snk_run run = {
        .script = SNK_SCRIPT_BREAK,
        .keys = &keys,
        .count = 6,
        .arguments = { token_text, text, store->options.history ? "1" : "0", announcement.channel, announcement.message,
                       announcement.command },
    };
    snk_redis_call call;
    snk_redis_call_init(&call);
    bool uncertain = false;
    status = snk_run_one(store, &run, &call, &uncertain, error);
    bool broken = status == SNECK_OK && call.reply->type == REDIS_REPLY_ARRAY && call.reply->elements > 0 &&
                  call.reply->element[0]->integer == 5;
    snk_redis_call_deinit(&call);
    if (status != SNECK_OK) {
        if (uncertain && error != NULL)
            error->status = SNECK_UNKNOWN;
        return uncertain ? SNECK_UNKNOWN : status;
    }
    if (!broken)
        return snk_fail(error, SNECK_CONFLICT, 0, "%.120s is not held with token %" PRIu64, name, token);
    return snk_ok(error);
}

/* ---- All locks ---- */

#define SCANS_MAX 3

/* What is looked for on every server. */
typedef struct search {
    snk_redis_store *store;
    const char *pattern;
    snk_names found;
    sneck_error error;
} search;

/* One page of keys; the cursor moves on, and is "0" after the last. */
static sneck_status scan_page(search *self, snk_redis *redis, char cursor[24])
{
    const snk_redis_store *store = self->store;
    sneck_error *error = &self->error;
    char scan_pattern[SNK_NAMES_PATTERN_SIZE];
    snk_names_pattern(store->prefix, scan_pattern);
    const char *const arguments[] = { "SCAN", cursor, "MATCH", scan_pattern, "COUNT", "1000" };
    snk_redis_call call;
    snk_redis_call *const calls[] = { &call };
    snk_redis_call_init(&call);
    sneck_status status = snk_redis_call_format(&call, 6, arguments, NULL, error);
    if (status == SNECK_OK) {
        bool uncertain = false;
        snk_redis_drive(redis, calls, 1);
        status = snk_run_result(store, &call, &uncertain, error);
        status = settle_look(status, uncertain, error);
    }
    if (status == SNECK_OK) {
        const redisReply *reply = call.reply;
        bool sound = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                     reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_ARRAY;
        if (!sound)
            status = snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: the answer to SCAN makes no sense", store->where);
        else if (!snk_names_add_page(&self->found, reply->element[1], store->prefix, self->pattern))
            status = snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory, or more than %d locks", SNK_NAMES_MAX);
        else
            (void)snk_copy_text(cursor, 24, reply->element[0]->str);
    }
    snk_redis_call_deinit(&call);
    return status;
}

static sneck_status scan_server(void *context, snk_redis *redis)
{
    search *self = context;
    char cursor[24] = "0";
    sneck_status status = SNECK_OK;
    do {
        status = scan_page(self, redis, cursor);
    } while (status == SNECK_OK && strcmp(cursor, "0") != 0);
    return status;
}

/* Keys that move from a server which was not scanned yet to one that was would be missed: then all is scanned again. */
static sneck_status scan_all(search *self)
{
    sneck_status status = SNECK_OK;
    bool changed = true;
    for (int i = 0; i < SCANS_MAX && changed; i++)
        status = snk_topology_visit(self->store->topology, scan_server, self, &changed, &self->error);
    return status;
}

static sneck_status show_all(snk_redis_store *store, const snk_names *found, snk_view_fn callback, void *context,
                             sneck_error *error)
{
    snk_view *view = snk_view_new();
    if (view == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sneck_status status = SNECK_OK;
    for (size_t i = 0; i < found->count && status == SNECK_OK; i++) {
        status = snk_redis_store_inspect(&store->base, found->list[i], view, error);
        if (status == SNECK_CONFLICT || status == SNECK_INVALID) {
            status = SNECK_OK; /* something else than a lock */
            continue;
        }
        if (status == SNECK_OK && (view->info.held || view->info.waiter_count > 0) && !callback(context, view))
            break;
    }
    snk_view_free(view);
    return status;
}

sneck_status snk_redis_store_list(snk_store *base, const char *pattern, snk_view_fn callback, void *context,
                                  sneck_error *error)
{
    snk_redis_store *store = snk_redis_store_of(base);
    search self = { .store = store, .pattern = pattern };
    sneck_status status = scan_all(&self);
    snk_names_sort(&self.found);
    if (status == SNECK_OK)
        status = show_all(store, &self.found, callback, context, &self.error);
    snk_names_deinit(&self.found);
    return status == SNECK_OK ? snk_ok(error) : snk_fail_as(error, &self.error);
}
