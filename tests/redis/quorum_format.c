/* A quorum of nodes: what stands in them, what is said, what is refused, what is shown. */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bed.h"
#include "quorum_bed.h"
#include "tls_files.h"

/* The nodes of all tests; emptied before each. */
static quorum_bed nodes;

static int clear(void **state)
{
    (void)state;
    quorum_bed_clear(&nodes);
    return 0;
}

static sneck_status open_url(const char *url, sneck_error *error)
{
    sneck_client *client = NULL;
    sneck_status status = sneck_open(url, NULL, &client, error);
    sneck_close(client);
    return status;
}

/* ---- On the nodes ---- */

static void test_each_node_has_the_hash_that_other_programs_read(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.why = "a test";
    sneck_lock *lock = test_mutex(client, "order/42", &options);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    quorum_bed_await_votes(&nodes, "order/42", QUORUM_NODES);
    char token[32];
    (void)snprintf(token, sizeof token, "%llu", (unsigned long long)sneck_token(lock));
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        redis_bed *node = &nodes.nodes[i];
        assert_string_equal(redis_bed_keys(node), "lock:order/42 {lock:order/42}:token {lock:}:quorum");
        assert_string_equal(redis_bed_text(node, "HGET lock:order/42 ~token"), token);
        assert_string_equal(redis_bed_text(node, "GET {lock:order/42}:token"), token);
        assert_string_equal(redis_bed_text(node, "HGET lock:order/42 ~why"), "a test");
        assert_int_equal(redis_bed_number(node, "HGET lock:order/42 ~pid"), getpid());
        char owner[128];
        (void)snprintf(owner, sizeof owner, "%s", redis_bed_text(node, "HGET lock:order/42 ~owner"));
        assert_int_equal(redis_bed_number(node, "HGET lock:order/42 %s", owner), 1);
        assert_int_equal(owner[36], ':');
        assert_in_range(redis_bed_number(node, "PTTL lock:order/42"), 1, QUORUM_LEASE_MAX_MS);
        redis_bed_expect_limits(node);
    }
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    quorum_bed_await_votes(&nodes, "order/42", 0);
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_each_node_tells_the_world_that_the_lock_is_free(void **state)
{
    (void)state;
    sneck_error error;
    redisContext *listeners[QUORUM_NODES];
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        listeners[i] = redisConnectUnix(nodes.nodes[i].server.socket);
        freeReplyObject(redisCommand(listeners[i], "SUBSCRIBE %s", "lock:release:a\"b"));
    }
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "a\"b", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    char owner[128];
    quorum_bed_await_votes(&nodes, "a\"b", QUORUM_NODES);
    (void)snprintf(owner, sizeof owner, "%s", redis_bed_text(&nodes.nodes[0], "HGET %s ~owner", "lock:a\"b"));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        redisReply *reply = NULL;
        assert_int_equal(redisGetReply(listeners[i], (void **)&reply), REDIS_OK);
        char time[32] = "";
        char holder[128] = "";
        int matched =
            sscanf(reply->element[2]->str, "{\"lockKey\":\"a\\\"b\",\"releaseTime\":%31[0-9],\"holder\":\"%127[^\"]\"}",
                   time, holder);
        assert_int_equal(matched, 2);
        long long time_ms = strtoll(time, NULL, 10);
        assert_string_equal(holder, owner);
        assert_in_range(time_ms, snk_wall_us() / 1000 - 60000, snk_wall_us() / 1000 + 60000);
        freeReplyObject(reply);
        redisFree(listeners[i]);
    }
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_a_lock_of_another_kind_of_client_is_respected(void **state)
{
    (void)state;
    sneck_error error;
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        redis_bed_do(&nodes.nodes[i], "HSET lock:theirs 7f3c1b52-3f0e-4a4c-9b55-0c4b7f2f9f10:1 1");
        redis_bed_do(&nodes.nodes[i], "PEXPIRE lock:theirs 60000");
    }
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "theirs", NULL);
    EXPECT(SNECK_BUSY, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_TIMEOUT, sneck_acquire(lock, 50, &error));
    assert_int_equal(quorum_bed_votes(&nodes, "theirs"), QUORUM_NODES);
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        redis_bed_do(&nodes.nodes[i], "DEL lock:theirs");
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_data_of_others_is_never_touched(void **state)
{
    (void)state;
    sneck_error error;
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        redis_bed_do(&nodes.nodes[i], "SET lock:text something");
        redis_bed_do(&nodes.nodes[i], "HSET lock:hash name value");
        redis_bed_do(&nodes.nodes[i], "RPUSH {lock:counter}:token 1");
    }
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    static const char *const names[] = { "text", "hash", "counter" };
    for (size_t i = 0; i < 3; i++) {
        sneck_lock *lock = test_mutex(client, names[i], NULL);
        EXPECT(SNECK_INVALID, sneck_acquire(lock, 0, &error));
        EXPECT(SNECK_INVALID, sneck_acquire(lock, 100, &error));
        sneck_lock_free(lock);
    }
    sneck_close(client);
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        assert_string_equal(redis_bed_text(&nodes.nodes[i], "GET lock:text"), "something");
        assert_string_equal(redis_bed_text(&nodes.nodes[i], "HGET lock:hash name"), "value");
        assert_int_equal(redis_bed_number(&nodes.nodes[i], "PTTL lock:hash"), -1);
        assert_int_equal(redis_bed_number(&nodes.nodes[i], "LLEN {lock:counter}:token"), 1);
    }
}

static void test_scripts_that_nodes_forgot_are_sent_again(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "scripts", NULL);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < QUORUM_NODES; i++)
            redis_bed_do(&nodes.nodes[i], "SCRIPT FLUSH");
        EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
        for (uint32_t i = 0; i < QUORUM_NODES; i++)
            redis_bed_do(&nodes.nodes[i], "SCRIPT FLUSH");
        EXPECT(SNECK_OK, sneck_extend(lock, QUORUM_LEASE_MAX_MS, &error));
        EXPECT(SNECK_OK, sneck_release(lock, &error));
    }
    quorum_bed_await_votes(&nodes, "scripts", 0);
    sneck_lock_free(lock);
    sneck_close(client);
}

/* ---- What is refused ---- */

static void test_what_a_quorum_cannot_do_is_said(void **state)
{
    (void)state;
    sneck_error error;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock_options options = SNECK_LOCK_OPTIONS_INIT;
    options.fair = true;
    sneck_lock *lock = test_mutex(client, "fair", &options);
    EXPECT(SNECK_UNSUPPORTED, sneck_acquire(lock, 0, &error));
    assert_non_null(strstr(error.message, "fair"));
    EXPECT(SNECK_UNSUPPORTED, sneck_acquire(lock, 1000, &error));
    sneck_lock_free(lock);
    options = (sneck_lock_options)SNECK_LOCK_OPTIONS_INIT;
    options.lease_ms = QUORUM_LEASE_MAX_MS + 1;
    lock = test_mutex(client, "long", &options);
    EXPECT(SNECK_INVALID, sneck_acquire(lock, 0, &error));
    assert_non_null(strstr(error.message, "lease_max"));
    sneck_lock_free(lock);
    lock = test_mutex(client, "extended", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_INVALID, sneck_extend(lock, QUORUM_LEASE_MAX_MS + 1, &error));
    assert_true(sneck_is_held(lock));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    assert_int_equal(quorum_bed_votes(&nodes, "fair") + quorum_bed_votes(&nodes, "long"), 0);
}

static void test_it_knows_mutexes_only(void **state)
{
    (void)state;
    sneck_error error;
    sneck_lock *lock = NULL;
    sneck_semaphore *semaphore = NULL;
    sneck_latch *latch = NULL;
    uint64_t version = 0;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    EXPECT(SNECK_UNSUPPORTED, sneck_read_lock(client, "kinds", NULL, &lock, &error));
    assert_non_null(strstr(error.message, "redlock"));
    EXPECT(SNECK_UNSUPPORTED, sneck_write_lock(client, "kinds", NULL, &lock, &error));
    EXPECT(SNECK_UNSUPPORTED, sneck_semaphore_open(client, "kinds", NULL, &semaphore, &error));
    EXPECT(SNECK_UNSUPPORTED, sneck_latch_open(client, "kinds", NULL, &latch, &error));
    EXPECT(SNECK_UNSUPPORTED, sneck_version_get(client, "kinds", &version, &error));
    assert_int_equal(quorum_bed_votes(&nodes, "kinds"), 0);
    sneck_close(client);
}

static void test_clients_must_agree_about_the_longest_lease(void **state)
{
    (void)state;
    sneck_error error;
    char url[512];
    quorum_bed other = nodes;
    other.lease_max_ms = QUORUM_LEASE_MAX_MS + 1000;
    (void)snprintf(url, sizeof url, "%s", quorum_bed_url(&other, NULL));
    EXPECT(SNECK_INVALID, open_url(url, &error));
    assert_non_null(strstr(error.message, "lease_max=3000ms"));
    /* Also one that was there before the nodes were told otherwise. */
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "agreed", NULL);
    for (uint32_t i = 0; i < QUORUM_NODES; i++)
        redis_bed_do(&nodes.nodes[i], "SET {lock:}:quorum %s", "9999 1000");
    EXPECT(SNECK_INVALID, sneck_acquire(lock, 0, &error));
    assert_non_null(strstr(error.message, "9999"));
    quorum_bed_await_ripe(&nodes);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

static void test_wrong_urls_are_refused(void **state)
{
    (void)state;
    sneck_error error;
    char url[512];
    int port = nodes.nodes[0].server.port;
    (void)snprintf(url, sizeof url, "redlock://127.0.0.1:%d,127.0.0.1:%d", port, port);
    EXPECT(SNECK_INVALID, open_url(url, &error));
    assert_non_null(strstr(error.message, "twice"));
    (void)snprintf(url, sizeof url, "redlock://sneck:secret@127.0.0.1:%d,[::1]:%d?lease_max=3s", port, port);
    EXPECT(SNECK_INVALID, open_url(url, &error));
    assert_non_null(strstr(error.message, "same server"));
    EXPECT(SNECK_INVALID, open_url("redlock://", &error));
    EXPECT(SNECK_INVALID, open_url("redlock://127.0.0.1?lease_max=1ms", &error));
    EXPECT(SNECK_INVALID, open_url("redlock://127.0.0.1?lease_maximum=1s", &error));
    EXPECT(SNECK_UNSUPPORTED, open_url("redlock://127.0.0.1?layout=string", &error));
    EXPECT(SNECK_UNSUPPORTED, open_url("redlock://127.0.0.1?wake=grant", &error));
    EXPECT(SNECK_INVALID, open_url("redlock://127.0.0.1/x", &error));
    (void)snprintf(url, sizeof url, "redlock://sneck:wrong@127.0.0.1:%d", port);
    EXPECT(SNECK_DENIED, open_url(url, &error));
    (void)snprintf(url, sizeof url, "redlock://sneck:secret@127.0.0.1:%d,127.0.0.1:1,127.0.0.1:2?lease_max=3s", port);
    EXPECT(SNECK_UNAVAILABLE, open_url(url, &error));
    assert_non_null(strstr(error.message, "only 1 of 3"));
}

/* ---- What is shown ---- */

static void test_inspect_shows_the_holder_and_each_node(void **state)
{
    (void)state;
    sneck_error error;
    sneck_info *info = NULL;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "shown", NULL);
    EXPECT(SNECK_OK, sneck_inspect(client, "shown", &info, &error));
    assert_false(info->held);
    assert_int_equal(info->node_count, QUORUM_NODES);
    sneck_info_free(info);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    quorum_bed_await_votes(&nodes, "shown", QUORUM_NODES);
    EXPECT(SNECK_OK, sneck_inspect(client, "shown", &info, &error));
    assert_true(info->held);
    assert_true(info->token == sneck_token(lock));
    assert_int_equal(info->holder.pid, getpid());
    assert_in_range(info->holder.remaining_ms, 1, QUORUM_LEASE_MAX_MS);
    assert_in_range(info->holder.age_ms, 0, 20000);
    for (size_t i = 0; i < QUORUM_NODES; i++) {
        const sneck_node *node = &info->nodes[i];
        char name[32];
        (void)snprintf(name, sizeof name, "127.0.0.1:%d", nodes.nodes[i].server.port);
        assert_string_equal(node->name, name);
        assert_string_equal(node->state, "counts");
        assert_string_equal(node->trouble, "");
        assert_true(node->holds);
        assert_in_range(node->latency_us, 1, 10000000);
        assert_in_range(node->clock_offset_us + 10000000, 0, 20000000); /* one machine has one clock */
        assert_int_equal(node->counts_in_ms, 0);
    }
    sneck_info_free(info);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
}

/* What sneck_metrics_write writes. */
typedef struct metrics_text {
    size_t length;
    char text[65536];
} metrics_text;

static void keep_text(void *context, const char *text, size_t length)
{
    metrics_text *self = context;
    assert_true(self->length + length < sizeof self->text);
    memcpy(self->text + self->length, text, length);
    self->length += length;
    self->text[self->length] = '\0';
}

/* The value of a sample of one node. */
static double find_sample(const metrics_text *metrics, const char *family, uint32_t node)
{
    char sample[128];
    (void)snprintf(sample, sizeof sample, "\n%s{node=\"127.0.0.1:%d\"} ", family, nodes.nodes[node].server.port);
    const char *found = strstr(metrics->text, sample);
    if (found == NULL)
        fail_msg("no%s", sample);
    return strtod(found + strlen(sample), NULL);
}

static void test_metrics_tell_latency_and_clock_of_each_node(void **state)
{
    (void)state;
    sneck_error error;
    metrics_text *metrics = calloc(1, sizeof *metrics);
    assert_non_null(metrics);
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "measured", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    quorum_bed_await_votes(&nodes, "measured", QUORUM_NODES);
    sneck_info *info = NULL;
    EXPECT(SNECK_OK, sneck_inspect(client, "measured", &info, &error)); /* all of them have answered */
    sneck_info_free(info);
    assert_int_equal(sneck_metrics_write(client, keep_text, metrics), SNECK_OK);
    assert_non_null(strstr(metrics->text, "\nsneck_quorum_nodes{state=\"all\"} 5\n"));
    assert_non_null(strstr(metrics->text, "\nsneck_quorum_nodes{state=\"up\"} 5\n"));
    assert_non_null(strstr(metrics->text, "\nsneck_backend_up 1\n"));
    for (uint32_t i = 0; i < QUORUM_NODES; i++) {
        assert_true(find_sample(metrics, "sneck_quorum_node_up", i) == 1);
        assert_true(find_sample(metrics, "sneck_quorum_node_counts", i) == 1);
        double latency = find_sample(metrics, "sneck_quorum_node_latency_seconds", i);
        assert_true(latency > 0 && latency < 10);
        double offset = find_sample(metrics, "sneck_quorum_node_clock_offset_seconds", i);
        assert_true(offset > -10 && offset < 10); /* one machine has one clock */
    }
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(client);
    free(metrics);
}

static void test_a_broken_hold_is_told_and_noted(void **state)
{
    (void)state;
    sneck_error error;
    sneck_info *info = NULL;
    sneck_client *client = quorum_bed_open(&nodes, NULL);
    sneck_client *other = quorum_bed_open(&nodes, NULL);
    sneck_lock *lock = test_mutex(client, "broken", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    uint64_t token = sneck_token(lock);
    EXPECT(SNECK_CONFLICT, sneck_break(other, "broken", token + 1, "no", &error));
    EXPECT(SNECK_OK, sneck_break(other, "broken", token, "stuck since noon", &error));
    EXPECT(SNECK_LOST, sneck_release(lock, &error));
    EXPECT(SNECK_OK, sneck_inspect(other, "broken", &info, &error));
    assert_false(info->held);
    assert_int_equal(info->incident_count, 1); /* though five nodes have noted it */
    assert_string_equal(info->incidents[0].kind, "broken");
    assert_true(info->incidents[0].token == token);
    assert_non_null(strstr(info->incidents[0].text, "stuck since noon"));
    sneck_info_free(info);
    EXPECT(SNECK_OK, sneck_acquire(lock, 0, &error));
    assert_true(sneck_token(lock) > token);
    EXPECT(SNECK_OK, sneck_release(lock, &error));
    sneck_lock_free(lock);
    sneck_close(other);
    sneck_close(client);
}

/* ---- TLS ---- */

static void test_nodes_can_be_reached_by_tls(void **state)
{
    (void)state;
    sneck_error error;
    redis_server server = { .pid = 0 };
    char directory[64];
    if (!tls_files_make(directory, "DNS:localhost,IP:127.0.0.1"))
        test_skip("no certificates can be made here");
    assert_true(redis_server_start_tls(&server, directory, false));
    char url[256];
    (void)snprintf(url, sizeof url, "redlocks://localhost:%d?lease_max=100ms&lease=100ms&ca=%s/ca.crt", server.tls_port,
                   directory);
    sneck_client *client = NULL;
    EXPECT(SNECK_OK, sneck_open(url, NULL, &client, &error));
    sneck_lock *lock = test_mutex(client, "secret", NULL);
    EXPECT(SNECK_OK, sneck_acquire(lock, TEST_PATIENCE_MS, &error)); /* it counts after two seconds */
    (void)sneck_release(lock, &error);
    sneck_lock_free(lock);
    sneck_close(client);
    redis_server_stop(&server);
    tls_files_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_each_node_has_the_hash_that_other_programs_read, clear),
        cmocka_unit_test_setup(test_each_node_tells_the_world_that_the_lock_is_free, clear),
        cmocka_unit_test_setup(test_a_lock_of_another_kind_of_client_is_respected, clear),
        cmocka_unit_test_setup(test_data_of_others_is_never_touched, clear),
        cmocka_unit_test_setup(test_scripts_that_nodes_forgot_are_sent_again, clear),
        cmocka_unit_test_setup(test_what_a_quorum_cannot_do_is_said, clear),
        cmocka_unit_test_setup(test_it_knows_mutexes_only, clear),
        cmocka_unit_test_setup(test_clients_must_agree_about_the_longest_lease, clear),
        cmocka_unit_test_setup(test_wrong_urls_are_refused, clear),
        cmocka_unit_test_setup(test_inspect_shows_the_holder_and_each_node, clear),
        cmocka_unit_test_setup(test_metrics_tell_latency_and_clock_of_each_node, clear),
        cmocka_unit_test_setup(test_a_broken_hold_is_told_and_noted, clear),
        cmocka_unit_test(test_nodes_can_be_reached_by_tls),
    };
    quorum_bed_choose(&nodes, QUORUM_LEASE_MAX_MS, false);
    return cmocka_run_group_tests(tests, quorum_bed_set_up, quorum_bed_tear_down);
}
