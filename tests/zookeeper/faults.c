/* A ZooKeeper server that dies, freezes, forgets its client, or is behind a bad network. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "bed.h"
#include "claims.h"
#include "proxy.h"
#include "zookeeper_bed.h"

/* How soon a server that has just begun greets its clients is not the question here. */
#define PATIENT "timeout=30s"

/* ---- The server dies and comes back ---- */

static void test_a_hold_survives_a_restart(void **state)
{
    (void)state;
    sneck_error error;
    zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(server->port, PATIENT), 30000);
    zookeeper_scene other = zookeeper_scene_open(zookeeper_bed_url(server->port, PATIENT), 30000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t token = sneck_token(made.lock);
    assert_true(zookeeper_server_restart(server));
    EXPECT(SNECK_OK, sneck_extend(made.lock, 30000, &error)); /* the same session goes on */
    assert_true(sneck_token(made.lock) == token);
    EXPECT(SNECK_BUSY, sneck_acquire(other.lock, 0, &error));
    EXPECT(SNECK_OK, sneck_release(made.lock, &error));
    assert_true(zookeeper_scene_pair(&other) > token);
    zookeeper_scene_close(&other);
    zookeeper_scene_close(&made);
}

typedef struct waiting {
    const zookeeper_scene *made;
    uint64_t token;
} waiting;

static void *wait_for_lock(void *argument)
{
    waiting *self = argument;
    self->token = zookeeper_scene_pair(self->made);
    return NULL;
}

static void test_a_waiter_is_served_after_a_restart(void **state)
{
    (void)state;
    sneck_error error;
    zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene holder = zookeeper_scene_open(zookeeper_bed_url(server->port, PATIENT), 20000);
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(server->port, PATIENT), 20000);
    EXPECT(SNECK_OK, sneck_acquire(holder.lock, 0, &error));
    uint64_t token = sneck_token(holder.lock);
    waiting self = { .made = &made };
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lock, &self), 0);
    zookeeper_scene_await_claims(&holder, 2);
    assert_true(zookeeper_server_restart(server));
    EXPECT(SNECK_OK, sneck_release(holder.lock, &error));
    int64_t begin_ms = test_now_ms();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(self.token > token);
    assert_true(test_now_ms() - begin_ms < 6000); /* told, and not only by its next look */
    zookeeper_scene_close(&made);
    zookeeper_scene_close(&holder);
}

/* ---- The connection is cut ---- */

typedef struct behind_proxy {
    fault_proxy proxy;
    zookeeper_scene made;   /* behind the proxy */
    zookeeper_scene direct; /* not */
} behind_proxy;

static void open_behind(behind_proxy *scene, const char *keys, int64_t lease_ms)
{
    const zookeeper_server *server = zookeeper_bed_server();
    assert_true(proxy_start(&scene->proxy, server->port));
    scene->made = zookeeper_scene_open(zookeeper_bed_url(scene->proxy.port, keys), lease_ms);
    scene->direct = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), lease_ms);
}

static void close_behind(behind_proxy *scene)
{
    zookeeper_scene_close(&scene->direct);
    zookeeper_scene_close(&scene->made);
    proxy_stop(&scene->proxy);
}

static void await_cut(const fault_proxy *proxy, int before)
{
    int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS;
    while (atomic_load(&proxy->cuts) == before && test_now_ms() < limit_ms)
        sched_yield();
}

/* A proxy that cuts a connection once. */
typedef struct cutter {
    behind_proxy *scene;
    int before; /* cuts so far */
    pthread_t thread;
} cutter;

/* Heals as soon as it has cut. */
static void *heal(void *argument)
{
    cutter *self = argument;
    await_cut(&self->scene->proxy, self->before);
    proxy_harm(&self->scene->proxy, PROXY_PASS, "");
    return NULL;
}

/* The next request that names a lock's node is cut off; then it works again. To be joined. */
static void cut_once(cutter *self, behind_proxy *scene, proxy_mode mode)
{
    *self = (cutter){ .scene = scene, .before = atomic_load(&scene->proxy.cuts) };
    proxy_harm(&scene->proxy, mode, "/lock-");
    assert_int_equal(pthread_create(&self->thread, NULL, heal, self), 0);
}

static void expect_held_once(behind_proxy *scene, proxy_mode mode)
{
    sneck_error error;
    cutter self;
    (void)zookeeper_scene_pair(&scene->made); /* its folder is there */
    cut_once(&self, scene, mode);
    EXPECT(SNECK_OK, sneck_acquire(scene->made.lock, TEST_PATIENCE_MS, &error));
    assert_int_equal(pthread_join(self.thread, NULL), 0);
    zookeeper_scene_await_claims(&scene->direct, 1);
    EXPECT(SNECK_BUSY, sneck_acquire(scene->direct.lock, 0, &error));
    uint64_t token = sneck_token(scene->made.lock);
    EXPECT(SNECK_OK, sneck_release(scene->made.lock, &error));
    zookeeper_scene_await_claims(&scene->direct, 0);
    assert_true(zookeeper_scene_pair(&scene->direct) > token);
}

static void test_an_acquire_whose_answer_is_cut_off_finds_its_own_node(void **state)
{
    (void)state;
    behind_proxy scene;
    open_behind(&scene, NULL, 20000);
    expect_held_once(&scene, PROXY_CUT_AFTER);
    close_behind(&scene);
}

static void test_an_acquire_that_is_cut_off_is_made_again(void **state)
{
    (void)state;
    behind_proxy scene;
    open_behind(&scene, NULL, 20000);
    expect_held_once(&scene, PROXY_CUT_BEFORE);
    close_behind(&scene);
}

static void test_a_release_whose_answer_is_cut_off_is_done(void **state)
{
    (void)state;
    sneck_error error;
    behind_proxy scene;
    open_behind(&scene, NULL, 20000);
    EXPECT(SNECK_OK, sneck_acquire(scene.made.lock, 0, &error));
    cutter self;
    cut_once(&self, &scene, PROXY_CUT_AFTER);
    EXPECT(SNECK_OK, sneck_release(scene.made.lock, &error));
    assert_int_equal(pthread_join(self.thread, NULL), 0);
    EXPECT(SNECK_OK, sneck_acquire(scene.direct.lock, 0, &error));
    close_behind(&scene);
}

/* Somebody who takes the lock while the answer to a release is still to come. */
typedef struct rival {
    behind_proxy *scene;
    pthread_t thread;
    int cuts_before;
    _Atomic bool is_released; /* by the other one, as it was answered */
    sneck_status status;      /* of its own release */
} rival;

/* The lock's folder is taken away by the server when it is empty; its nodes are counted from 0 again. */
static void await_no_folder(const zookeeper_scene *scene)
{
    uint64_t token = 1;
    for (int64_t limit_ms = test_now_ms() + TEST_PATIENCE_MS; token != 0 && test_now_ms() < limit_ms; sched_yield()) {
        sneck_info *info = NULL;
        if (sneck_inspect(scene->client, "a", &info, NULL) == SNECK_OK)
            token = info->token;
        sneck_info_free(info);
    }
}

static void *come_between(void *argument)
{
    rival *self = argument;
    behind_proxy *scene = self->scene;
    await_cut(&scene->proxy, self->cuts_before);
    proxy_harm(&scene->proxy, PROXY_CUT_BEFORE, "");
    await_no_folder(&scene->direct);
    self->status = sneck_acquire(scene->direct.lock, 0, NULL);
    proxy_harm(&scene->proxy, PROXY_PASS, "");
    while (!atomic_load(&self->is_released))
        sched_yield();
    if (self->status == SNECK_OK)
        self->status = sneck_release(scene->direct.lock, NULL);
    return NULL;
}

/* What is at the path when the release is asked again was made by another, and has the same name. */
static void test_a_release_that_is_asked_again_spares_who_came_after(void **state)
{
    (void)state;
    sneck_error error;
    behind_proxy scene;
    open_behind(&scene, "timeout=30s", 20000);
    EXPECT(SNECK_OK, sneck_acquire(scene.made.lock, 0, &error));
    rival self = { .scene = &scene, .cuts_before = atomic_load(&scene.proxy.cuts) };
    proxy_harm(&scene.proxy, PROXY_CUT_AFTER, "/lock-");
    assert_int_equal(pthread_create(&self.thread, NULL, come_between, &self), 0);
    EXPECT(SNECK_OK, sneck_release(scene.made.lock, &error));
    atomic_store(&self.is_released, true);
    assert_int_equal(pthread_join(self.thread, NULL), 0);
    assert_int_equal(self.status, SNECK_OK);
    close_behind(&scene);
}

/* A node is found again by its claim, among those of its own session alone. */
static void test_a_node_of_another_session_is_not_taken_for_ones_own(void **state)
{
    (void)state;
    behind_proxy scene;
    cutter self;
    snk_id claim = test_id();
    const test_ask ask = { .lease_ms = 5000, .tokens = 1 };
    open_behind(&scene, NULL, 20000);
    snk_store *earlier = test_store(zookeeper_bed_url(zookeeper_bed_server()->port, NULL));
    snk_store *later = test_store(zookeeper_bed_url(scene.proxy.port, NULL));
    test_expect_answer(test_acquire(earlier, "a", &claim, ask), SNK_ANSWER_HELD);
    cut_once(&self, &scene, PROXY_CUT_BEFORE);
    test_expect_answer(test_acquire(later, "a", &claim, ask), SNK_ANSWER_BUSY);
    assert_int_equal(pthread_join(self.thread, NULL), 0);
    test_store_close(later);
    test_store_close(earlier);
    close_behind(&scene);
}

static void test_an_acquire_that_nobody_answers_leaves_nothing_behind(void **state)
{
    (void)state;
    sneck_error error;
    behind_proxy scene;
    open_behind(&scene, "timeout=300", 20000);
    (void)zookeeper_scene_pair(&scene.made);
    proxy_harm(&scene.proxy, PROXY_STALL_REPLIES, "");
    sneck_status status = sneck_acquire(scene.made.lock, 500, &error);
    assert_true(status == SNECK_UNKNOWN || status == SNECK_TIMEOUT);
    /* It did arrive, as did perhaps the chase already: only answers are held up. */
    proxy_harm(&scene.proxy, PROXY_PASS, "");
    zookeeper_scene_await_claims(&scene.direct, 0); /* and is chased */
    (void)zookeeper_scene_pair(&scene.made);
    close_behind(&scene);
}

/* ---- The session ends, the server freezes ---- */

static void test_loss_comes_before_the_session_ends(void **state)
{
    (void)state;
    sneck_error error;
    behind_proxy scene;
    open_behind(&scene, NULL, 2000);
    EXPECT(SNECK_OK, sneck_acquire(scene.made.lock, 0, &error));
    uint64_t token = sneck_token(scene.made.lock);
    proxy_harm(&scene.proxy, PROXY_STALL_REQUESTS, "");
    (void)zookeeper_scene_await_loss(&scene.made);
    assert_true(test_is_held_in_store(scene.direct.client, "a")); /* the server has not noticed yet */
    EXPECT(SNECK_OK, sneck_acquire(scene.direct.lock, INT64_C(3) * TEST_PATIENCE_MS, &error)); /* now it has */
    assert_true(sneck_token(scene.direct.lock) > token);
    proxy_harm(&scene.proxy, PROXY_PASS, "");
    EXPECT(SNECK_LOST, sneck_release(scene.made.lock, &error));
    /* A new session: nothing of the old one holds, and nothing of it is released in another's place. */
    EXPECT(SNECK_BUSY, sneck_acquire(scene.made.lock, 0, &error));
    assert_true(sneck_is_held(scene.direct.lock));
    EXPECT(SNECK_OK, sneck_release(scene.direct.lock, &error));
    assert_true(zookeeper_scene_pair(&scene.made) > token);
    close_behind(&scene);
}

static void test_a_frozen_server_is_loss_at_the_deadline(void **state)
{
    (void)state;
    sneck_error error;
    zookeeper_server *server = zookeeper_bed_server();
    zookeeper_scene made = zookeeper_scene_open(zookeeper_bed_url(server->port, NULL), 2000);
    EXPECT(SNECK_OK, sneck_acquire(made.lock, 0, &error));
    uint64_t token = sneck_token(made.lock);
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    int64_t took_ms = zookeeper_scene_await_loss(&made);
    assert_int_equal(kill(server->pid, SIGCONT), 0);
    assert_in_range(took_ms, 1, 2000);
    EXPECT(SNECK_LOST, sneck_release(made.lock, &error));
    assert_true(zookeeper_scene_pair(&made) > token);
    zookeeper_scene_close(&made);
}

/* ---- Tokens ---- */

/* A hold, whatever happens to the connection; false when this try failed. */
static bool try_pair(const zookeeper_scene *made, uint64_t *highest, unsigned *lower)
{
    sneck_error error;
    if (sneck_acquire(made->lock, TEST_PATIENCE_MS, &error) != SNECK_OK)
        return false;
    uint64_t token = sneck_token(made->lock);
    *lower += token <= *highest;
    *highest = token;
    (void)sneck_release(made->lock, &error);
    return true;
}

static void test_tokens_rise_through_cuts_and_restarts(void **state)
{
    (void)state;
    behind_proxy scene;
    open_behind(&scene, "timeout=2s", 20000);
    unsigned wanted = test_scaled(10000);
    unsigned restarts = 0;
    unsigned cuts = 0;
    uint64_t highest = 0;
    unsigned lower = 0;
    for (unsigned done = 0, tries = 0; done < wanted; tries++) {
        if (tries % (wanted / 20 + 1) == wanted / 40) {
            cutter self;
            cut_once(&self, &scene, cuts++ % 2 == 0 ? PROXY_CUT_AFTER : PROXY_CUT_BEFORE);
            done += try_pair(&scene.made, &highest, &lower);
            assert_int_equal(pthread_join(self.thread, NULL), 0);
        }
        if (tries % (wanted / 3 + 1) == wanted / 6) {
            /* A folder that was reaped meanwhile is made again, and numbers its nodes from 0. */
            assert_true(zookeeper_server_restart(zookeeper_bed_server()));
            restarts++;
        }
        done += try_pair(tries % 2 == 0 ? &scene.made : &scene.direct, &highest, &lower);
        assert_true(tries < 2 * wanted + 100);
    }
    assert_int_equal(lower, 0);
    assert_int_equal(atomic_load(&scene.proxy.cuts), cuts);
    printf("# figure: %u ZooKeeper tokens rose through %u cuts and %u restarts\n", wanted, cuts, restarts);
    close_behind(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_hold_survives_a_restart, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_waiter_is_served_after_a_restart, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_an_acquire_whose_answer_is_cut_off_finds_its_own_node, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_an_acquire_that_is_cut_off_is_made_again, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_release_whose_answer_is_cut_off_is_done, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_release_that_is_asked_again_spares_who_came_after, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_node_of_another_session_is_not_taken_for_ones_own, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_an_acquire_that_nobody_answers_leaves_nothing_behind, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_loss_comes_before_the_session_ends, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_a_frozen_server_is_loss_at_the_deadline, zookeeper_bed_set_up),
        cmocka_unit_test_setup(test_tokens_rise_through_cuts_and_restarts, zookeeper_bed_set_up),
    };
    int failed = cmocka_run_group_tests_name("zookeeper faults", tests, NULL, NULL);
    zookeeper_bed_stop();
    return failed;
}
