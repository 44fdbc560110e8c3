#include "claims.h"

#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "test.h"

int64_t test_lease_ms = TEST_LEASE_MS_USUAL;
int64_t test_long_lease_ms = TEST_LONG_MS_USUAL;

void test_make_folder(char *path, size_t size)
{
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(path, size, "%s/sneck-test-XXXXXX", parent);
    assert_non_null(mkdtemp(path));
}

static int remove_entry(const char *path, const struct stat *found, int type, struct FTW *place)
{
    (void)found;
    (void)type;
    (void)place;
    return remove(path);
}

void test_remove_folder(const char *path)
{
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        assert_int_equal(errno, ENOENT);
}

snk_id test_id(void)
{
    snk_id id;
    assert_true(snk_id_random(&id));
    return id;
}

snk_identity test_identity(const snk_id *client)
{
    snk_identity identity = { .client = *client, .host = "testhost", .pid = getpid() };
    snk_id_to_uuid(client, identity.uuid);
    return identity;
}

sneck_status test_store_open(const char *url_text, snk_store **store_out, sneck_error *error)
{
    snk_url url;
    assert_int_equal(snk_url_parse(&url, url_text, error), SNECK_OK);
    snk_id client = test_id();
    snk_store_config config = {
        .url = &url,
        .prefix = "lock:",
        .identity = test_identity(&client),
        .retry_ns = 100 * SNK_NS_PER_MS,
    };
    sneck_status status = snk_store_open(&config, store_out, error);
    snk_url_deinit(&url);
    return status;
}

snk_store *test_store(const char *url)
{
    sneck_error error = { .message = "" };
    snk_store *store = NULL;
    if (test_store_open(url, &store, &error) != SNECK_OK)
        fail_msg("%s: %s", url, error.message);
    return store;
}

void test_store_close(snk_store *store)
{
    if (store != NULL)
        store->ops->close(store);
}

static snk_answer ask(snk_store *store, const char *name, const snk_id *claim, snk_ask what, test_ask how)
{
    snk_claim request = {
        .name = name,
        .why = how.why == NULL ? "" : how.why,
        .thread = 7,
        .grip = how.grip,
        .send = {
            .ask = what,
            .claim = *claim,
            .lease_ns = how.lease_ms * SNK_NS_PER_MS,
            .sent_at_ns = snk_now_ns(),
            .tokens = how.tokens,
            .fair = how.fair,
            .queue = how.queue,
            .unanswered = how.unanswered,
            .ends_hold = how.ends_hold,
        },
    };
    snk_answer answer;
    memset(&answer, 0xEE, sizeof answer); /* a store fills all that it answers with */
    snk_store_ask(store, &request, &answer);
    return answer;
}

snk_answer test_acquire(snk_store *store, const char *name, const snk_id *claim, test_ask how)
{
    return ask(store, name, claim, SNK_ASK_ACQUIRE, how);
}

snk_answer test_renew(snk_store *store, const char *name, const snk_id *claim, int64_t lease_ms)
{
    return ask(store, name, claim, SNK_ASK_RENEW, (test_ask){ .lease_ms = lease_ms });
}

snk_answer test_release(snk_store *store, const char *name, const snk_id *claim)
{
    return ask(store, name, claim, SNK_ASK_RELEASE, (test_ask){ .lease_ms = TEST_LEASE_MS });
}

snk_answer test_release_unanswered(snk_store *store, const char *name, const snk_id *claim)
{
    return ask(store, name, claim, SNK_ASK_RELEASE, (test_ask){ .lease_ms = TEST_LEASE_MS, .unanswered = true });
}

snk_answer test_renew_as(snk_store *store, const char *name, const snk_id *claim, snk_grip grip)
{
    return ask(store, name, claim, SNK_ASK_RENEW, (test_ask){ .lease_ms = TEST_LEASE_MS, .grip = grip });
}

snk_answer test_release_as(snk_store *store, const char *name, const snk_id *claim, snk_grip grip, bool ends_hold)
{
    return ask(store, name, claim, SNK_ASK_RELEASE,
               (test_ask){ .lease_ms = TEST_LEASE_MS, .ends_hold = ends_hold, .grip = grip });
}

void test_expect_kind(const snk_answer *answer, snk_answer_kind kind)
{
    bool failed = answer->kind == SNK_ANSWER_FAILED || answer->kind == SNK_ANSWER_UNCERTAIN;
    if (answer->kind != kind)
        fail_msg("answer %d instead of %d: %s", (int)answer->kind, (int)kind, failed ? answer->error.message : "");
}

void test_expect_answer(snk_answer answer, snk_answer_kind kind)
{
    test_expect_kind(&answer, kind);
}

snk_id test_must_hold(snk_store *store, const char *name)
{
    snk_id claim = test_id();
    snk_answer answer = test_acquire(store, name, &claim, TEST_TRY);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    return claim;
}

snk_id test_must_queue(snk_store *store, const char *name, snk_answer *answer_out)
{
    snk_id claim = test_id();
    snk_answer answer = test_acquire(store, name, &claim, TEST_QUEUE);
    test_expect_kind(&answer, SNK_ANSWER_QUEUED);
    if (answer_out != NULL)
        *answer_out = answer;
    return claim;
}

snk_answer test_take(snk_store *store, const char *name, const snk_id *claim, int64_t lease_ms)
{
    _Atomic uint32_t nothing = 0;
    snk_answer answer =
        test_acquire(store, name, claim, (test_ask){ .lease_ms = lease_ms, .tokens = 1, .queue = true });
    while (answer.kind == SNK_ANSWER_QUEUED) {
        (void)store->ops->wait(store, answer.ticket, &nothing, 0, snk_now_ns() + answer.look_after_ns);
        answer = test_renew(store, name, claim, lease_ms);
    }
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    return answer;
}
