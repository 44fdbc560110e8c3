/* A cluster: locks live where their slot is, and go where it goes. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"
#include "redis_bed.h"
#include "redis_fleet.h"
#include "tls_files.h"
#include "waiter.h"

static redis_fleet fleet;

/* Three masters for all tests of the program; each test leaves the slots as they were. */
static int start(void **state)
{
    (void)state;
    fleet_start_cluster(&fleet, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fleet_stop(&fleet);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < fleet.count; i++)
        fleet_do(&fleet.servers[i], "FLUSHALL");
    return 0;
}

static sneck_client *open_client(const char *keys, int64_t lease_ms)
{
    sneck_error error;
    sneck_client *client = NULL;
    sneck_client_options options = SNECK_CLIENT_OPTIONS_INIT;
    options.lease_ms = lease_ms;
    EXPECT(SNECK_OK, sneck_open(fleet_cluster_url(&fleet, keys), &options, &client, &error));
    return client;
}

/* The slot of a lock, its server, and another one. */
typedef struct seat {
    unsigned slot;
    size_t owner;
    size_t other;
} seat;

static seat seat_of(const char *name)
{
    char key[64];
    (void)snprintf(key, sizeof key, "lock:%s", name);
    seat found = { .slot = fleet_slot(&fleet, key) };
    found.owner = fleet_owner(&fleet, found.slot);
    found.other = (found.owner + 1) % fleet.count;
    return found;
}

/* ---- Where things are ---- */

static bool count_it(void *context, const sneck_info *info)
{
    (void)info;
    (*(unsigned *)context)++;
    return true;
}

static void test_locks_are_on_all_servers_and_all_are_listed(void **state)
{
    (void)state;
    enum {
        LOCKS = 60
    };
    sneck_error error;
    sneck_client *client = open_client(NULL, 30000);
    sneck_lock *locks[LOCKS];
    for (int i = 0; i < LOCKS; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, i % 2 == 0 ? "job%d" : "{job%d}/x", i);
        locks[i] = test_mutex(client, name, NULL);
        EXPECT(SNECK_OK, sneck_acquire(locks[i], 0, &error));
    }
    unsigned listed = 0;
    EXPECT(SNECK_OK, sneck_list(client, "*job*", count_it, &listed, &error));
    assert_int_equal(listed, LOCKS);
    for (size_t i = 0; i < fleet.count; i++)
        assert_true(strtol(fleet_ask(&fleet.servers[i], "DBSIZE"), NULL, 10) > LOCKS / 4);
    for (int i = 0; i < LOCKS; i++) {
        EXPECT(SNECK_OK, sneck_release(locks[i], &error));
        sneck_lock_free(locks[i]);
    }
    sneck_close(client);
}

/* What a subscriber hears of one release. */
static void expect_announced(const char *keys, const char *command, const char *name, const char *channel)
{
    sneck_error error;
    seat place = seat_of(name);
    redisContext *ear = redisConnectUnix(fleet.servers[place.owner].socket);
    freeReplyObject(redisCommand(ear, "%s %s", command, channel));
    sneck_client *client = open_client(keys, 30000);
    sneck_lock *lock = test_mutex(client, name, NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    struct timeval patience = { .tv_sec = 10 };
    (void)redisSetTimeout(ear, patience);
    void *heard = NULL;
    assert_int_equal(redisGetReply(ear, &heard), REDIS_OK);
    redisReply *message = heard;
    char begin[64];
    (void)snprintf(begin, sizeof begin, "{\"lockKey\":\"%s\",\"releaseTime\":", name);
    assert_string_equal(message->element[1]->str, channel);
    assert_memory_equal(message->element[2]->str, begin, strlen(begin));
    freeReplyObject(heard);
    redisFree(ear);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_release_is_announced_in_the_slot_of_its_lock(void **state)
{
    (void)state;
    expect_announced(NULL, "SSUBSCRIBE", "a", "lock:release:{lock:a}");
    expect_announced(NULL, "SSUBSCRIBE", "{b}/1", "lock:release:lock:{b}/1");
    expect_announced("announce=plain", "SUBSCRIBE", "a", "lock:release:a");
}

static void test_who_waits_listens_on_the_server_of_the_lock_alone(void **state)
{
    (void)state;
    sneck_error error;
    seat place = seat_of("a");
    sneck_client *holder = open_client(NULL, 30000);
    sneck_client *other = open_client(NULL, 30000);
    sneck_lock *held = test_mutex(holder, "a", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    test_waiter waiting;
    sneck_lock *wanted = test_mutex(other, "a", NULL);
    test_waiter_start(&waiting, wanted, 20000);
    fleet_await(&fleet.servers[place.owner], "lock:wake:", "PUBSUB SHARDCHANNELS");
    for (size_t i = 0; i < fleet.count; i++) {
        if (i != place.owner)
            assert_string_equal(fleet_ask(&fleet.servers[i], "PUBSUB SHARDCHANNELS"), "");
        assert_string_equal(fleet_ask(&fleet.servers[i], "PUBSUB CHANNELS"), "");
    }
    redis_bed_pause(50);
    int64_t begin_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(held, &error));
    test_waiter_join(&waiting);
    assert_true(waiting.served_at_ms - begin_ms < 1000);
    sneck_lock_free(wanted);
    sneck_lock_free(held);
    sneck_close(other);
    sneck_close(holder);
}

/* A client of another kind holds the lock, and says on the public channel that it is free. */
static void test_the_message_of_a_foreign_holder_wakes(void **state)
{
    (void)state;
    seat place = seat_of("foreign");
    const redis_server *server = &fleet.servers[place.owner];
    fleet_do(server, "HSET lock:foreign somebody:1 1");
    fleet_do(server, "PEXPIRE lock:foreign 60000");
    sneck_client *client = open_client(NULL, 60000);
    sneck_lock *lock = test_mutex(client, "foreign", NULL);
    test_waiter waiting;
    test_waiter_start(&waiting, lock, 20000);
    fleet_await(server, "lock:release:{lock:foreign}", "PUBSUB SHARDCHANNELS");
    redis_bed_pause(50);
    int64_t begin_ms = test_now_ms();
    fleet_do(server, "DEL lock:foreign");
    fleet_do(server, "SPUBLISH lock:release:{lock:foreign} free");
    test_waiter_join(&waiting);
    assert_true(waiting.served_at_ms - begin_ms < 1000);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- Slots that move ---- */

static void move_slot(const seat *place)
{
    fleet_begin_move(&fleet, place->slot, place->owner, place->other);
    fleet_move_keys(&fleet, place->slot, place->owner, place->other);
    fleet_end_move(&fleet, place->slot, place->owner, place->other);
}

static void move_back(const seat *place)
{
    seat back = { .slot = place->slot, .owner = place->other, .other = place->owner };
    move_slot(&back);
}

static long redirections(const redis_server *server)
{
    const char *found = strstr(fleet_ask(server, "INFO errorstats"), "errorstat_MOVED:count=");
    return found == NULL ? 0 : strtol(found + strlen("errorstat_MOVED:count="), NULL, 10);
}

static void test_a_slot_that_moved_is_followed_and_remembered(void **state)
{
    (void)state;
    sneck_error error;
    seat place = seat_of("moved");
    sneck_client *client = open_client(NULL, 30000);
    sneck_lock *lock = test_mutex(client, "moved", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    move_slot(&place);
    EXPECT(SNECK_OK, sneck_extend(lock, 30000, &error));
    assert_true(sneck_token(lock) == token);
    long before = redirections(&fleet.servers[place.owner]);
    assert_true(before > 0);
    for (int i = 0; i < 20; i++) {
        EXPECT(SNECK_OK, sneck_release(lock, &error));
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    }
    assert_int_equal(redirections(&fleet.servers[place.owner]), before);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    move_back(&place);
}

#define MOVED_LEASE_MS 1500
#define MOVED_PAUSE_MS 2000

/* Half of the keys here, half there, for longer than the lease: the hold goes on, and whoever waits is served after. */
static void move_while_held(const char *keys)
{
    sneck_error error;
    seat place = seat_of("held");
    sneck_client *holder = open_client(keys, MOVED_LEASE_MS);
    sneck_client *other = open_client(keys, 30000);
    sneck_lock *held = test_mutex(holder, "held", NULL);
    sneck_lock *wanted = test_mutex(other, "held", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    uint64_t token = sneck_token(held);
    test_waiter waiting;
    test_waiter_start(&waiting, wanted, 25000);
    fleet_await(&fleet.servers[place.owner], "1", "ZCARD {lock:held}:queue");
    fleet_begin_move(&fleet, place.slot, place.owner, place.other);
    redis_bed_pause(MOVED_PAUSE_MS);
    assert_true(sneck_token(held) == token);
    fleet_move_keys(&fleet, place.slot, place.owner, place.other);
    redis_bed_pause(MOVED_PAUSE_MS);
    assert_true(sneck_token(held) == token);
    fleet_end_move(&fleet, place.slot, place.owner, place.other);
    redis_bed_pause(MOVED_PAUSE_MS);
    assert_true(sneck_token(held) == token);
    fleet_await(&fleet.servers[place.other], "lock:wake:", "PUBSUB SHARDCHANNELS");
    int64_t begin_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_release(held, &error));
    test_waiter_join(&waiting);
    assert_true(waiting.served_at_ms - begin_ms < 1000); /* its own look would come after 10 s */
    assert_true(waiting.token > token);
    sneck_lock_free(wanted);
    sneck_lock_free(held);
    sneck_close(other);
    sneck_close(holder);
    move_back(&place);
}

static void test_a_held_lock_survives_the_move_of_its_slot(void **state)
{
    (void)state;
    move_while_held("layout=hash");
    move_while_held("layout=string");
}

typedef struct mover {
    seat place;
    int64_t after_ms;
} mover;

static void *end_move_later(void *argument)
{
    const mover *self = argument;
    redis_bed_pause(self->after_ms);
    fleet_move_keys(&fleet, self->place.slot, self->place.owner, self->place.other);
    fleet_end_move(&fleet, self->place.slot, self->place.owner, self->place.other);
    return NULL;
}

static void test_while_a_slot_moves_its_locks_are_waited_for(void **state)
{
    (void)state;
    sneck_error error;
    mover self = { .place = seat_of("free"), .after_ms = 400 };
    sneck_client *client = open_client("timeout=2000", 30000);
    sneck_lock *lock = test_mutex(client, "free", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error)); /* so that some keys are here */
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    fleet_begin_move(&fleet, self.place.slot, self.place.owner, self.place.other);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_move_later, &self), 0);
    int64_t begin_ms = test_now_ms();
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_true(test_now_ms() - begin_ms >= 350);
    assert_int_equal(pthread_join(thread, NULL), 0);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    move_back(&self.place);
    /* For ever is too long. */
    fleet_begin_move(&fleet, self.place.slot, self.place.owner, self.place.other);
    begin_ms = test_now_ms();
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, 0, &error));
    assert_non_null(strstr(error.message, "TRYAGAIN"));
    assert_true(test_now_ms() - begin_ms < 4000);
    fleet_do(&fleet.servers[self.place.owner], "CLUSTER SETSLOT %u STABLE", self.place.slot);
    fleet_do(&fleet.servers[self.place.other], "CLUSTER SETSLOT %u STABLE", self.place.slot);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void *close_client(void *client)
{
    sneck_close(client);
    return NULL;
}

/* The server that a slot is moved to has forgotten that: one says ASK, the other says MOVED. */
static void test_a_client_whose_renewals_were_sent_to_and_fro_closes(void **state)
{
    (void)state;
    sneck_error error;
    seat place = seat_of("astray");
    sneck_client *client = open_client(NULL, 1500);
    assert_true(sneck_event_fd(client) >= 0);
    sneck_lock *lock = test_mutex(client, "astray", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    char other[64];
    (void)snprintf(other, sizeof other, "%s", fleet_ask(&fleet.servers[place.other], "CLUSTER MYID"));
    fleet_do(&fleet.servers[place.owner], "CLUSTER SETSLOT %u MIGRATING %s", place.slot, other);
    fleet_do(&fleet.servers[place.owner], "FLUSHALL");
    (void)test_await_event(client, SNECK_EVENT_LOST);
    fleet_do(&fleet.servers[place.owner], "CLUSTER SETSLOT %u STABLE", place.slot);
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    sneck_lock_free(lock);
    pthread_t thread;
    struct timespec limit;
    assert_int_equal(pthread_create(&thread, NULL, close_client, client), 0);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &limit), 0);
    limit.tv_sec += TEST_PATIENCE_MS / 1000;
    assert_int_equal(pthread_timedjoin_np(thread, NULL, &limit), 0);
}

/* ---- Slots that nobody serves ---- */

static void test_a_slot_that_nobody_serves_is_unavailable_until_somebody_does(void **state)
{
    (void)state;
    sneck_error error;
    seat place = seat_of("lonely");
    sneck_client *client = open_client("timeout=500", 30000);
    sneck_lock *lock = test_mutex(client, "lonely", NULL);
    for (size_t i = 0; i < fleet.count; i++)
        fleet_do(&fleet.servers[i], "CLUSTER DELSLOTS %u", place.slot);
    int64_t begin_ms = test_now_ms();
    EXPECT(SNECK_UNAVAILABLE, sneck_acquire(lock, 0, &error));
    assert_true(test_now_ms() - begin_ms < 3000);
    fleet_do(&fleet.servers[place.owner], "CLUSTER ADDSLOTS %u", place.slot);
    for (size_t i = 0; i < fleet.count; i++)
        fleet_await(&fleet.servers[i], "cluster_state:ok", "CLUSTER INFO");
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- Several locks ---- */

/* Names that share no slot: no script can see all of them, and yet it is all or none. */
static void test_several_locks_in_different_slots_are_all_or_none(void **state)
{
    (void)state;
    enum {
        EACH = 2,
        MEMBERS = 3 * EACH
    };
    sneck_error error;
    sneck_client *client = open_client(NULL, 30000);
    sneck_client *rival = open_client(NULL, 30000);
    sneck_lock *members[MEMBERS];
    char names[MEMBERS][32];
    for (unsigned i = 0; i < MEMBERS; i++)
        members[i] = test_mutex(client, fleet_name_on(&fleet, i % 3, i, names[i]), NULL);
    sneck_lock *all = NULL;
    EXPECT(SNECK_OK, sneck_multi_lock(members, MEMBERS, &all, &error));
    for (unsigned busy = 0; busy < MEMBERS; busy++) {
        sneck_lock *held = test_mutex(rival, names[busy], NULL);
        EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
        EXPECT(SNECK_BUSY, sneck_acquire(all, 0, &error));
        for (unsigned i = 0; i < MEMBERS; i++)
            assert_int_equal(test_is_held_in_store(client, names[i]), i == busy);
        EXPECT(SNECK_OK, sneck_release(held, &error));
        sneck_lock_free(held);
        EXPECT(SNECK_OK, sneck_acquire(all, TEST_PATIENCE_MS, &error));
        for (unsigned i = 0; i < MEMBERS; i++)
            assert_true(test_is_held_in_store(client, names[i]) && sneck_token(members[i]) > 0);
        EXPECT(SNECK_OK, sneck_release(all, &error));
    }
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_false(test_is_held_in_store(client, names[i]));
    sneck_lock_free(all);
    for (unsigned i = 0; i < MEMBERS; i++)
        sneck_lock_free(members[i]);
    sneck_close(rival);
    sneck_close(client);
}

/* Scripts that all servers ran. */
static unsigned scripts_run(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < 3; i++) {
        const char *found = strstr(fleet_ask(&fleet.servers[i], "INFO commandstats"), "cmdstat_evalsha:calls=");
        count += found == NULL ? 0 : (unsigned)strtoul(strchr(found, '=') + 1, NULL, 10);
    }
    return count;
}

static void forget_scripts_run(void)
{
    for (unsigned i = 0; i < 3; i++)
        (void)fleet_ask(&fleet.servers[i], "CONFIG RESETSTAT");
}

static void test_locks_that_share_a_slot_are_taken_in_one_script(void **state)
{
    (void)state;
    static const char *const names[] = { "{here}a", "{here}b", "{here}c", "{there}a", "{there}b", "alone" };
    enum {
        MEMBERS = sizeof names / sizeof names[0],
        SLOTS = 3
    };
    sneck_error error;
    sneck_client *client = open_client("history=off", 30000);
    sneck_client *rival = open_client("history=off", 30000);
    sneck_lock *members[MEMBERS];
    for (unsigned i = 0; i < MEMBERS; i++)
        members[i] = test_mutex(client, names[i], NULL);
    sneck_lock *all = NULL;
    EXPECT(SNECK_OK, sneck_multi_lock(members, MEMBERS, &all, &error));
    EXPECT(SNECK_OK, sneck_acquire(all, 0, &error)); /* the servers know the script now */
    EXPECT(SNECK_OK, sneck_release(all, &error));
    forget_scripts_run();
    EXPECT(SNECK_OK, sneck_acquire(all, 0, &error));
    assert_int_equal(scripts_run(), SLOTS);
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_true(test_is_held_in_store(rival, names[i]) && sneck_token(members[i]) > 0);
    EXPECT(SNECK_OK, sneck_release(all, &error));

    sneck_lock *held = test_mutex(rival, "{there}b", NULL);
    EXPECT(SNECK_OK, sneck_acquire(held, 0, &error));
    EXPECT(SNECK_BUSY, sneck_acquire(all, 0, &error));
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_int_equal(test_is_held_in_store(rival, names[i]), strcmp(names[i], "{there}b") == 0);
    EXPECT(SNECK_OK, sneck_release(held, &error));
    EXPECT(SNECK_OK, sneck_acquire(all, TEST_PATIENCE_MS, &error));
    EXPECT(SNECK_OK, sneck_release(all, &error));
    sneck_lock_free(held);
    sneck_lock_free(all);
    for (unsigned i = 0; i < MEMBERS; i++)
        sneck_lock_free(members[i]);
    sneck_close(rival);
    sneck_close(client);
}

/* ---- Opening ---- */

static void expect_open(sneck_status status, const char *url, const char *words)
{
    sneck_error error;
    sneck_client *client = NULL;
    EXPECT(status, sneck_open(url, NULL, &client, &error));
    if (status == SNECK_OK)
        sneck_close(client);
    else if (strstr(error.message, words) == NULL)
        fail_msg("it does not say %s: %s", words, error.message);
}

static void test_what_cannot_be_opened_says_why(void **state)
{
    (void)state;
    char url[256];
    (void)snprintf(url, sizeof url, "redis+cluster://sneck:wrong-word@127.0.0.1:%d", fleet.servers[0].port);
    expect_open(SNECK_DENIED, url, "wrong user or password");
    (void)snprintf(url, sizeof url, "redis+cluster://sneck:secret@127.0.0.1:%d/1", fleet.servers[0].port);
    expect_open(SNECK_INVALID, url, "from 0 to 0");
    (void)snprintf(url, sizeof url, "redis+cluster://sneck:secret@127.0.0.1:1,127.0.0.1:%d", fleet.servers[0].port);
    expect_open(SNECK_OK, url, ""); /* one of those that are named is enough */
    redis_bed bed;
    redis_bed_start(&bed);
    (void)snprintf(url, sizeof url, "redis+cluster://sneck:secret@127.0.0.1:%d", bed.server.port);
    expect_open(SNECK_INVALID, url, "not part of a cluster");
    redis_bed_stop(&bed);
}

static void test_a_cluster_is_spoken_to_by_tls(void **state)
{
    (void)state;
    char files[64];
    char paths[3][96];
    char ports[2][16];
    redis_server server = { 0 };
    assert_true(tls_files_make(files, "DNS:localhost,IP:127.0.0.1"));
    const char *const names[] = { "server.crt", "server.key", "ca.crt" };
    for (size_t i = 0; i < 3; i++)
        (void)snprintf(paths[i], sizeof paths[i], "%s/%s", files, names[i]);
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(ports[i], sizeof ports[i], "%d", redis_server_free_port());
    const char *const options[] = {
        "--tls-port",
        ports[0],
        "--tls-cert-file",
        paths[0],
        "--tls-key-file",
        paths[1],
        "--tls-ca-cert-file",
        paths[2],
        "--tls-auth-clients",
        "no",
        "--tls-cluster",
        "yes",
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        ports[1],
        NULL,
    };
    assert_true(redis_server_start(&server, options));
    fleet_do(&server, "CLUSTER ADDSLOTSRANGE 0 16383");
    fleet_await(&server, "cluster_state:ok", "CLUSTER INFO");
    char url[256];
    (void)snprintf(url, sizeof url, "rediss+cluster://127.0.0.1:%s?ca=%s", ports[0], paths[2]);
    expect_open(SNECK_OK, url, "");
    redis_server_stop(&server);
    tls_files_remove(files);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup(function, clear)
    const struct CMUnitTest tests[] = {
        TEST(test_locks_are_on_all_servers_and_all_are_listed),
        TEST(test_a_release_is_announced_in_the_slot_of_its_lock),
        TEST(test_who_waits_listens_on_the_server_of_the_lock_alone),
        TEST(test_the_message_of_a_foreign_holder_wakes),
        TEST(test_a_slot_that_moved_is_followed_and_remembered),
        TEST(test_a_held_lock_survives_the_move_of_its_slot),
        TEST(test_while_a_slot_moves_its_locks_are_waited_for),
        TEST(test_a_client_whose_renewals_were_sent_to_and_fro_closes),
        TEST(test_a_slot_that_nobody_serves_is_unavailable_until_somebody_does),
        TEST(test_several_locks_in_different_slots_are_all_or_none),
        TEST(test_locks_that_share_a_slot_are_taken_in_one_script),
        TEST(test_what_cannot_be_opened_says_why),
        TEST(test_a_cluster_is_spoken_to_by_tls),
    };
    const char *only = getenv("SNECK_TEST_ONLY");
    if (only != NULL)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, start, stop);
}
