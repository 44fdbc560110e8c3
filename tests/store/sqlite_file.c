/* The file of the embedded store: where it is, who may use it, and what happens when it is damaged or replaced. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "children.h"
#include "lockfile.h"
#include "store/sqlite/path.h"
#include "store/sqlite/sqlite.h"
#include "store/view.h"

/* Users and a group that no machine has, so that their default folder is ours to use. */
#define USER_A 54321
#define USER_B 54322
#define GROUP 54323

static void beside(const test_place *here, const char *suffix, char path[128])
{
    (void)snprintf(path, 128, "%s%s", here->path, suffix);
}

static mode_t mode_of(const char *path)
{
    struct stat found;
    assert_int_equal(lstat(path, &found), 0);
    return found.st_mode & 07777U;
}

/* Opening fails with that status, and the message says so. */
static void expect_refused(const char *url, sneck_status status, const char *words)
{
    sneck_error error = { .message = "" };
    snk_store *store = NULL;
    sneck_status result = test_store_open(url, &store, &error);
    if (result != status)
        fail_msg("%s: %s instead of %s: %s", url, sneck_status_name(result), sneck_status_name(status), error.message);
    assert_null(store);
    assert_int_equal(error.status, status);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, words);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static void need_root(void)
{
    if (geteuid() != 0)
        test_skip("only root can become other users, change owners and mount");
}

static bool become(uid_t user)
{
    const gid_t group = GROUP;
    /* The kernel forgets on whose death a process is to die when it changes its user. */
    return setgroups(1, &group) == 0 && setresgid(GROUP, GROUP, GROUP) == 0 && setresuid(user, user, user) == 0 &&
           prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

/* ---- permissions ------------------------------------------------------------------------------------------------ */

static void test_files_are_for_their_user_alone_whatever_the_umask(void **state)
{
    test_place *here = *state;
    char path[128];
    mode_t umask_before = umask(0);
    snk_store *store = test_store(here->url);
    (void)test_must_hold(store, "x");
    (void)umask(umask_before);
    const char *suffixes[] = { "", "-sneck", "-journal" };
    for (size_t i = 0; i < 3; i++) {
        beside(here, suffixes[i], path);
        assert_int_equal(mode_of(path), 0600);
    }
    test_store_close(store);
}

static void test_file_mode_opens_files_to_the_group_whatever_the_umask(void **state)
{
    test_place *here = *state;
    char path[128];
    mode_t umask_before = umask(0177);
    snk_store *store = test_store(here->shared_url);
    (void)test_must_hold(store, "x");
    (void)umask(umask_before);
    const char *suffixes[] = { "", "-sneck", "-journal" };
    for (size_t i = 0; i < 3; i++) {
        beside(here, suffixes[i], path);
        assert_int_equal(mode_of(path), 0660);
    }
    test_store_close(store);
}

static int hold_as_a(void *context)
{
    test_place *here = context;
    snk_store *store = NULL;
    CHECK(become(USER_A));
    (void)umask(077);
    CHECK(test_store_open(here->shared_url, &store, NULL) == SNECK_OK);
    store->ops->adopt_thread(store);
    snk_id claim = { { 1 } };
    CHECK(test_acquire(store, "x", &claim, TEST_TRY).kind == SNK_ANSWER_HELD);
    test_child_ready();
    (void)pause();
    return 0;
}

static int take_as_b(void *context)
{
    test_place *here = context;
    snk_store *store = NULL;
    sneck_error error;
    CHECK(become(USER_B));
    (void)umask(077);
    CHECK(test_store_open(here->shared_url, &store, &error) == SNECK_OK);
    snk_id claim = { { 2 } };
    CHECK(test_acquire(store, "x", &claim, TEST_QUEUE).kind == SNK_ANSWER_QUEUED);
    test_child_ready();
    _Atomic uint32_t nothing = 0;
    snk_answer answer = test_renew(store, "x", &claim, TEST_LEASE_MS);
    while (answer.kind == SNK_ANSWER_QUEUED) {
        (void)store->ops->wait(store, answer.ticket, &nothing, 0, snk_now_ns() + 60 * SNK_NS_PER_S);
        answer = test_renew(store, "x", &claim, TEST_LEASE_MS);
    }
    CHECK(answer.kind == SNK_ANSWER_HELD);
    CHECK(test_release(store, "x", &claim).kind == SNK_ANSWER_DONE);
    test_store_close(store);
    return 0;
}

static void test_users_of_a_group_share_a_file(void **state)
{
    test_place *here = *state;
    need_root();
    assert_int_equal(chown(here->folder, 0, GROUP), 0);
    assert_int_equal(chmod(here->folder, 02770), 0);
    test_child a = test_child_start(hold_as_a, here);
    test_child_await(&a);
    test_child b = test_child_start(take_as_b, here);
    test_child_await(&b);
    test_child_kill(&a); /* its death is seen across users, too */
    assert_int_equal(test_child_join(&b), 0);
}

static void test_a_symbolic_link_is_refused(void **state)
{
    test_place *here = *state;
    char target[128];
    char sidecar[128];
    (void)snprintf(target, sizeof target, "%s/elsewhere", here->folder);
    write_file(target, "", 0600);
    assert_int_equal(symlink(target, here->path), 0);
    expect_refused(here->url, SNECK_DENIED, "symbolic link");
    assert_int_equal(unlink(here->path), 0);
    beside(here, "-sneck", sidecar);
    (void)unlink(sidecar);
    assert_int_equal(symlink(target, sidecar), 0);
    expect_refused(here->url, SNECK_DENIED, "symbolic link");
}

static void test_a_folder_may_be_reached_by_a_symbolic_link(void **state)
{
    test_place *here = *state;
    char link_path[128];
    char url[192];
    char folder[128];
    (void)snprintf(folder, sizeof folder, "%s/real", here->folder);
    (void)snprintf(link_path, sizeof link_path, "%s/link", here->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink(folder, link_path), 0);
    (void)snprintf(url, sizeof url, "sqlite://%s/l.db", link_path);
    snk_store *a = test_store(url);
    (void)snprintf(url, sizeof url, "sqlite://%s/l.db", folder);
    snk_store *b = test_store(url);
    (void)test_must_hold(a, "x");
    (void)test_must_queue(b, "x", NULL);
    test_store_close(b);
    test_store_close(a);
}

static void test_a_file_of_another_user_is_refused(void **state)
{
    test_place *here = *state;
    char sidecar[128];
    need_root();
    test_store_close(test_store(here->url));
    beside(here, "-sneck", sidecar);
    assert_int_equal(chown(here->path, USER_A, GROUP), 0);
    expect_refused(here->url, SNECK_DENIED, "belongs to user 54321");
    assert_int_equal(chown(here->path, 0, 0), 0);
    assert_int_equal(chown(sidecar, USER_A, GROUP), 0);
    expect_refused(here->url, SNECK_DENIED, "belongs to user 54321");
}

static void test_a_file_that_others_may_write_is_refused(void **state)
{
    test_place *here = *state;
    test_store_close(test_store(here->url));
    assert_int_equal(chmod(here->path, 0660), 0);
    expect_refused(here->url, SNECK_DENIED, "may be written by others");
    test_store_close(test_store(here->shared_url));
}

static void test_a_folder_where_anybody_may_replace_files_is_refused(void **state)
{
    test_place *here = *state;
    assert_int_equal(chmod(here->folder, 0777), 0);
    expect_refused(here->url, SNECK_DENIED, "anybody may replace files");
    assert_int_equal(chmod(here->folder, 01777), 0);
    test_store_close(test_store(here->url));
}

static int open_read_only(void *context)
{
    test_place *here = context;
    snk_store *store = NULL;
    sneck_error error;
    if (geteuid() == 0)
        CHECK(become(USER_A));
    CHECK(test_store_open(here->url, &store, &error) == SNECK_DENIED);
    CHECK(strstr(error.message, "cannot be written") != NULL);
    return 0;
}

static void test_a_read_only_file_is_denied(void **state)
{
    test_place *here = *state;
    char sidecar[128];
    test_store_close(test_store(here->url));
    beside(here, "-sneck", sidecar);
    if (geteuid() == 0) {
        assert_int_equal(chown(here->folder, USER_A, GROUP), 0);
        assert_int_equal(chown(here->path, USER_A, GROUP), 0);
        assert_int_equal(chown(sidecar, USER_A, GROUP), 0);
    }
    assert_int_equal(chmod(here->path, 0400), 0);
    test_in_child(open_read_only, here);
}

static void test_bad_urls_are_invalid(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "sqlite:///x?file_mode=9", "sqlite:///x?file_mode=0777",  "sqlite:///x?file_mode=0400",
        "sqlite:///x?file_mode=",  "sqlite:///x?file_mode=00600", "sqlite:///tmp/",
        "sqlite://host/file",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        expect_refused(urls[i], SNECK_INVALID, "");
    expect_refused("sqlite:///no/such/folder/l.db", SNECK_UNAVAILABLE, "/no/such/folder");
    expect_refused("nosuch:", SNECK_UNSUPPORTED, "sqlite:");
}

static void test_each_scheme_has_its_keys(void **state)
{
    (void)state;
    assert_string_equal(snk_store_keys("sqlite")[0], "file_mode");
    assert_null(snk_store_keys("memory")[0]);
    assert_null(snk_store_keys("nosuch"));
}

/* ---- the default file ------------------------------------------------------------------------------------------- */

static const char *default_folder(void)
{
    return access("/run/lock", F_OK) == 0 ? "/run/lock/sneck-54321" : "/tmp/sneck-54321";
}

static int hold_in_default(void *context)
{
    (void)context;
    snk_store *store = NULL;
    CHECK(become(USER_A));
    CHECK(setenv("TMPDIR", "/nonexistent", 1) == 0 && setenv("XDG_RUNTIME_DIR", "/tmp/other", 1) == 0);
    CHECK(test_store_open("sqlite:", &store, NULL) == SNECK_OK);
    CHECK(store->traits.tokens == SNK_TOKEN_TIME_FLOORED);
    snk_id claim = { { 1 } };
    CHECK(test_acquire(store, "x", &claim, TEST_TRY).kind == SNK_ANSWER_HELD);
    test_child_ready();
    (void)pause();
    return 0;
}

static int find_busy_in_default(void *context)
{
    (void)context;
    snk_store *store = NULL;
    CHECK(become(USER_A));
    CHECK(clearenv() == 0); /* as cron would */
    CHECK(test_store_open("sqlite:", &store, NULL) == SNECK_OK);
    snk_id claim = { { 2 } };
    CHECK(test_acquire(store, "x", &claim, TEST_TRY).kind == SNK_ANSWER_BUSY);
    test_store_close(store);
    return 0;
}

static void test_processes_of_one_user_meet_in_the_default_file(void **state)
{
    (void)state;
    need_root();
    test_remove_folder(default_folder());
    test_child holder = test_child_start(hold_in_default, NULL);
    test_child_await(&holder);
    assert_int_equal(mode_of(default_folder()), 0700);
    test_in_child(find_busy_in_default, NULL);
    test_child_kill(&holder);
    test_remove_folder(default_folder());
}

static int be_denied_in_default(void *context)
{
    const char *words = context;
    snk_store *store = NULL;
    sneck_error error;
    CHECK(become(USER_A));
    CHECK(test_store_open("sqlite:", &store, &error) == SNECK_DENIED);
    CHECK(strstr(error.message, words) != NULL);
    return 0;
}

static void test_a_default_folder_that_somebody_else_made_is_refused(void **state)
{
    test_place *here = *state;
    need_root();
    char belongs[] = "belongs to user";
    char others[] = "used by others";
    char folder[] = "not a folder";
    test_remove_folder(default_folder());
    assert_int_equal(mkdir(default_folder(), 0777), 0);
    test_in_child(be_denied_in_default, belongs);
    assert_int_equal(chown(default_folder(), USER_A, GROUP), 0);
    assert_int_equal(chmod(default_folder(), 0750), 0);
    test_in_child(be_denied_in_default, others);
    test_remove_folder(default_folder());
    assert_int_equal(symlink(here->folder, default_folder()), 0);
    test_in_child(be_denied_in_default, folder);
    assert_int_equal(unlink(default_folder()), 0);
}

/* ---- file systems ----------------------------------------------------------------------------------------------- */

static void test_only_local_file_systems_are_allowed(void **state)
{
    (void)state;
    static const uint64_t local[] = { 0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x794C7630, 0x2FC12FC1 };
    static const uint64_t other[] = {
        0x6969,     /* nfs */
        0xFF534D42, /* cifs */
        0xFE534D42, /* smb2 */
        0x01021997, /* 9p */
        0x65735546, /* fuse: may be sshfs */
        0x00C36400, /* ceph */
        0x01161970, /* gfs2 */
        0x7461636F, /* ocfs2 */
        0x5346414F, /* afs */
        0x0BD00BD0, /* lustre */
        0x9FA0,     /* proc */
        0,
    };
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        assert_true(snk_filesystem_is_local(local[i]));
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        assert_false(snk_filesystem_is_local(other[i]));
    expect_refused("sqlite:///proc/locks.db", SNECK_UNSUPPORTED, "shared between machines or unknown");
}

static void fill_up(const char *path)
{
    static const char zeros[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0) {
    }
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(close(fd), 0);
}

static void test_a_full_disk_is_said_to_be_full(void **state)
{
    test_place *here = *state;
    char filler[128];
    need_root();
    (void)snprintf(filler, sizeof filler, "%s/filler", here->folder);
    if (mount("sneck-test", here->folder, "tmpfs", 0, "size=512k") != 0)
        test_skip("no right to mount a tmpfs");
    fill_up(filler);
    expect_refused(here->url, SNECK_UNAVAILABLE, "disk full");
    assert_int_equal(unlink(filler), 0);
    snk_store *store = test_store(here->url);
    snk_id first = test_must_hold(store, "x");
    fill_up(filler);
    /* Rows that need new pages: sooner or later one does not fit. */
    snk_answer answer = { .kind = SNK_ANSWER_HELD };
    char name[400];
    for (int i = 0; i < 200 && answer.kind == SNK_ANSWER_HELD; i++) {
        snk_id claim = test_id();
        (void)snprintf(name, sizeof name, "%0300d", i);
        answer = test_acquire(store, name, &claim, TEST_TRY);
    }
    assert_int_equal(answer.kind, SNK_ANSWER_FAILED);
    assert_int_equal(answer.error.status, SNECK_UNAVAILABLE);
    assert_non_null(strstr(answer.error.message, "disk full"));
    assert_int_equal(unlink(filler), 0);
    test_expect_answer(test_renew(store, "x", &first, TEST_LEASE_MS), SNK_ANSWER_HELD);
    (void)test_must_hold(store, "later");
    test_store_close(store);
    assert_int_equal(umount(here->folder), 0);
}

/* ---- damage ----------------------------------------------------------------------------------------------------- */

static void test_a_file_that_is_no_database_is_refused(void **state)
{
    test_place *here = *state;
    static char text[8192];
    memset(text, 'x', sizeof text - 1);
    write_file(here->path, text, 0600);
    expect_refused(here->url, SNECK_UNAVAILABLE, "not a lock file or damaged");
}

static void test_a_damaged_file_is_reported(void **state)
{
    test_place *here = *state;
    snk_store *store = test_store(here->url);
    (void)test_must_hold(store, "x");
    test_store_close(store);
    int fd = open(here->path, O_WRONLY);
    char garbage[4096];
    memset(garbage, 0x5A, sizeof garbage);
    for (off_t page = 1; page < 6; page++)
        assert_int_equal(pwrite(fd, garbage, sizeof garbage, page * 4096), (ssize_t)sizeof garbage);
    assert_int_equal(close(fd), 0);
    sneck_error error = { .message = "" };
    snk_id claim = test_id();
    snk_answer answer = { .kind = SNK_ANSWER_FAILED };
    if (test_store_open(here->url, &store, &error) == SNECK_OK) {
        answer = test_acquire(store, "x", &claim, TEST_TRY);
        test_store_close(store);
        error = answer.error;
    }
    assert_int_equal(answer.kind, SNK_ANSWER_FAILED);
    assert_int_equal(error.status, SNECK_UNAVAILABLE);
    assert_non_null(strstr(error.message, "damaged"));
}

static void test_another_programs_database_is_left_alone(void **state)
{
    test_place *here = *state;
    test_run_sql(here, "CREATE TABLE precious(x); INSERT INTO precious VALUES(1)");
    assert_int_equal(chmod(here->path, 0600), 0);
    expect_refused(here->url, SNECK_INVALID, "another program's database");
    assert_int_equal(test_ask_sql(here, "SELECT count(*) FROM sqlite_schema"), 1);
}

static void test_a_file_of_a_later_version_is_refused(void **state)
{
    test_place *here = *state;
    test_store_close(test_store(here->url));
    test_run_sql(here, "PRAGMA user_version=99");
    expect_refused(here->url, SNECK_UNAVAILABLE, "schema 99");
    expect_refused(here->url, SNECK_UNAVAILABLE, "update sneck");
}

static void test_a_file_of_an_earlier_version_is_refused(void **state)
{
    test_place *here = *state;
    test_store_close(test_store(here->url));
    test_run_sql(here, "PRAGMA user_version=1");
    expect_refused(here->url, SNECK_UNAVAILABLE, "move it away");
}

/* Each statement is prepared when it is first needed, and that can fail like everything else. */
static void test_a_table_that_is_missing_is_reported(void **state)
{
    test_place *here = *state;
    static const char *const tables[] = { "sneck_meta", "sneck_lock", "sneck_tombstone" };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char sql[64];
        snk_store *store = test_store(here->url);
        (void)snprintf(sql, sizeof sql, "DROP TABLE %s", tables[i]);
        test_run_sql(here, sql);
        snk_id claim = test_id();
        snk_answer answer = test_release_unanswered(store, "x", &claim);
        test_expect_kind(&answer, SNK_ANSWER_FAILED);
        assert_int_equal(answer.error.status, SNECK_UNAVAILABLE);
        assert_non_null(strstr(answer.error.message, tables[i]));
        test_store_close(store);
        assert_int_equal(unlink(here->path), 0);
    }
}

static void test_a_sidecar_that_is_none_is_refused(void **state)
{
    test_place *here = *state;
    char sidecar[128];
    beside(here, "-sneck", sidecar);
    write_file(sidecar, "this is not a sidecar, but something else of somebody", 0600);
    expect_refused(here->url, SNECK_UNAVAILABLE, "not a lock file or damaged");
}

/* ---- replacement ------------------------------------------------------------------------------------------------ */

static void remove_files(const test_place *here)
{
    char path[128];
    const char *suffixes[] = { "", "-sneck", "-journal" };
    for (size_t i = 0; i < 3; i++) {
        beside(here, suffixes[i], path);
        assert_int_equal(unlink(path), 0);
    }
}

static void test_a_deleted_file_is_loss_and_the_store_goes_on(void **state)
{
    test_place *here = *state;
    snk_store *a = test_store(here->url);
    snk_store *b = test_store(here->url);
    snk_id claim = test_id();
    snk_answer before = test_acquire(a, "x", &claim, TEST_TRY);
    remove_files(here);
    test_expect_answer(test_renew(a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    snk_id next = test_id();
    snk_answer after = test_acquire(b, "x", &next, TEST_TRY);
    test_expect_kind(&after, SNK_ANSWER_HELD);
    assert_true(after.token_first > before.token_last);
    test_expect_answer(test_release(a, "x", &claim), SNK_ANSWER_GONE);
    snk_id third = test_id();
    test_expect_answer(test_acquire(a, "x", &third, TEST_TRY), SNK_ANSWER_BUSY);
    test_expect_answer(test_renew(b, "x", &next, TEST_LEASE_MS), SNK_ANSWER_HELD);
    test_store_close(b);
    test_store_close(a);
}

static void test_a_deleted_database_alone_is_loss_too(void **state)
{
    test_place *here = *state;
    snk_store *a = test_store(here->url);
    snk_id claim = test_must_hold(a, "x");
    assert_int_equal(unlink(here->path), 0);
    test_expect_answer(test_renew(a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    (void)test_must_hold(a, "x");
    test_store_close(a);
}

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 20];
    FILE *source = fopen(from, "re");
    assert_non_null(source);
    size_t size = fread(bytes, 1, sizeof bytes, source);
    assert_true(size > 0 && size < sizeof bytes);
    (void)fclose(source);
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(close(fd), 0);
}

static void test_a_copy_in_place_of_the_file_is_loss_too(void **state)
{
    test_place *here = *state;
    char copy[128];
    snk_store *a = test_store(here->url);
    snk_store *b = test_store(here->url);
    snk_id claim = test_must_hold(a, "x");
    snk_id other = test_must_hold(b, "y");
    snk_id waiting = test_must_queue(a, "y", NULL);
    beside(here, ".copy", copy);
    copy_file(here->path, copy);
    assert_int_equal(rename(copy, here->path), 0);
    test_expect_answer(test_renew(a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    test_expect_answer(test_renew(a, "y", &waiting, TEST_LEASE_MS), SNK_ANSWER_GONE);
    test_expect_answer(test_renew(b, "y", &other, TEST_LEASE_MS), SNK_ANSWER_GONE);
    (void)test_must_hold(b, "x");
    (void)test_must_hold(a, "y");
    test_store_close(b);
    test_store_close(a);
}

static void pause_ms(int64_t ms)
{
    struct timespec pause = snk_timespec(ms * SNK_NS_PER_MS);
    (void)nanosleep(&pause, NULL);
}

static void test_a_deleted_sidecar_costs_no_claim(void **state)
{
    test_place *here = *state;
    char sidecar[128];
    beside(here, "-sneck", sidecar);
    snk_store *a = test_store(here->url);
    snk_store *b = test_store(here->url);
    snk_id claim = test_must_hold(a, "x");
    (void)test_must_hold(a, "y");
    snk_answer answer;
    snk_id waiting = test_must_queue(b, "x", &answer);
    assert_int_equal(unlink(sidecar), 0);
    snk_store *c = test_store(here->url);
    snk_id newcomer = test_id();
    test_expect_answer(test_acquire(c, "x", &newcomer, TEST_TRY), SNK_ANSWER_BUSY); /* cannot be judged: alive */
    pause_ms(20); /* it is looked at now and then only */
    test_expect_answer(test_renew(a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_HELD);
    _Atomic uint32_t nothing = 0;
    answer = test_renew(b, "x", &waiting, TEST_LEASE_MS);
    test_expect_kind(&answer, SNK_ANSWER_QUEUED);
    test_expect_answer(test_release(a, "x", &claim), SNK_ANSWER_DONE);
    assert_true(b->ops->wait(b, answer.ticket, &nothing, 0, snk_now_ns() + 30 * SNK_NS_PER_S));
    test_expect_answer(test_renew(b, "x", &waiting, TEST_LEASE_MS), SNK_ANSWER_HELD);
    snk_id behind = test_must_queue(c, "y", NULL);
    test_store_close(a); /* which can be seen again */
    test_expect_answer(test_renew(c, "y", &behind, TEST_LEASE_MS), SNK_ANSWER_HELD);
    test_store_close(c);
    test_store_close(b);
}

static void test_a_deleted_folder_is_unavailable_until_it_is_back(void **state)
{
    test_place *here = *state;
    snk_store *a = test_store(here->url);
    snk_id claim = test_must_hold(a, "x");
    test_remove_folder(here->folder);
    snk_answer answer = test_renew(a, "x", &claim, TEST_LEASE_MS);
    assert_int_equal(answer.kind, SNK_ANSWER_FAILED);
    assert_int_equal(answer.error.status, SNECK_UNAVAILABLE);
    assert_int_equal(mkdir(here->folder, 0700), 0);
    test_expect_answer(test_renew(a, "x", &claim, TEST_LEASE_MS), SNK_ANSWER_GONE);
    (void)test_must_hold(a, "x");
    test_store_close(a);
}

/* ---- what stays ------------------------------------------------------------------------------------------------- */

static void test_claims_of_another_boot_are_forgotten_and_tokens_are_not(void **state)
{
    test_place *here = *state;
    snk_store *a = test_store(here->url); /* alive, so that only the boot can end its claim */
    snk_id claim = test_id();
    snk_answer before = test_acquire(a, "x", &claim, TEST_TRY);
    (void)test_must_queue(a, "x", NULL);
    test_run_sql(here, "UPDATE sneck_meta SET value = 'another' WHERE key = 'boot';"
                       "UPDATE sneck_lock SET token = token + 3600000000");
    snk_store *b = test_store(here->url);
    snk_id next = test_id();
    snk_answer after = test_acquire(b, "x", &next, TEST_TRY);
    test_expect_kind(&after, SNK_ANSWER_HELD);
    assert_true(after.token_first > before.token_last + 3600000000U);
    test_store_close(b);
    test_store_close(a);
}

/* As if the clock had been an hour ahead when the holder got its tokens. Returns the highest. */
static uint64_t put_tokens_ahead(const test_place *here)
{
    test_run_sql(here, "UPDATE sneck_lock SET token = token + 3600000000 WHERE place > 0");
    return (uint64_t)test_ask_sql(here, "SELECT max(token) FROM sneck_lock");
}

static void test_tokens_go_on_from_the_last_holders_however_its_hold_ended(void **state)
{
    test_place *here = *state;
    snk_store *a = test_store(here->url);
    snk_store *b = test_store(here->url);
    snk_id held = test_must_hold(a, "x");
    uint64_t highest = put_tokens_ahead(here);
    test_expect_answer(test_release(a, "x", &held), SNK_ANSWER_DONE);
    held = test_id();
    assert_true(test_acquire(a, "x", &held, TEST_TRY).token_first > highest);
    highest = put_tokens_ahead(here);
    snk_id next = test_must_queue(b, "x", NULL);
    test_expect_answer(test_release(a, "x", &held), SNK_ANSWER_DONE);
    assert_true(test_renew(b, "x", &next, TEST_LEASE_MS).token_first > highest);
    highest = put_tokens_ahead(here);
    test_store_close(b); /* as good as dead */
    held = test_id();
    assert_true(test_acquire(a, "x", &held, TEST_TRY).token_first > highest);
    highest = put_tokens_ahead(here);
    uint64_t shown = (uint64_t)test_ask_sql(here, "SELECT token_first FROM sneck_lock WHERE place > 0");
    assert_int_equal(a->ops->break_hold(a, "x", shown, "test", NULL), SNECK_OK);
    held = test_id();
    assert_true(test_acquire(a, "x", &held, TEST_TRY).token_first > highest);
    test_store_close(a);
}

static void test_tokens_on_a_disk_are_durable(void **state)
{
    (void)state;
    char folder[] = "/var/tmp/sneck-test-XXXXXX";
    char url[96];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(url, sizeof url, "sqlite://%s/l.db", folder);
    snk_store *store = test_store(url);
    snk_token_strength expected =
        snk_sqlite_of(store)->place.durable ? SNK_TOKEN_DURABLE : SNK_TOKEN_TIME_FLOORED; /* /var/tmp may be a tmpfs */
    assert_int_equal(store->traits.tokens, expected);
    test_store_close(store);
    test_remove_folder(folder);
}

static void test_rows_of_unused_locks_are_removed_and_their_tokens_never_repeat(void **state)
{
    test_place *here = *state;
    snk_store *store = test_store(here->url);
    char name[16];
    for (int i = 0; i < 60; i++) {
        (void)snprintf(name, sizeof name, "old-%d", i);
        snk_id claim = test_must_hold(store, name);
        test_expect_answer(test_release(store, name, &claim), SNK_ANSWER_DONE);
    }
    snk_id held = test_must_hold(store, "held");
    /* Long ago, and with tokens far ahead of the clock, which then cannot be their floor. */
    test_run_sql(here, "UPDATE sneck_lock SET used_ns = -3600000000000, token = token + 3600000000;"
                       "UPDATE sneck_lock SET version = 1 WHERE resource_name = 'lock:old-7'");
    uint64_t highest = (uint64_t)test_ask_sql(
        here, "SELECT max(token) FROM sneck_lock WHERE resource_name LIKE 'lock:old-%' AND version = 0");
    for (int i = 0; i < 1000; i++)
        test_expect_answer(test_renew(store, "held", &held, TEST_LEASE_MS), SNK_ANSWER_HELD);
    assert_int_equal(test_ask_sql(here, "SELECT count(*) FROM sneck_lock WHERE place = 0"), 2);
    assert_int_equal(test_ask_sql(here, "SELECT count(*) FROM sneck_lock WHERE version = 1"), 1);
    snk_id claim = test_id();
    snk_answer answer = test_acquire(store, "old-3", &claim, TEST_TRY);
    test_expect_kind(&answer, SNK_ANSWER_HELD);
    assert_true(answer.token_first > highest);
    snk_id other = test_id();
    assert_true(test_acquire(store, "new", &other, TEST_TRY).token_first > highest);
    test_store_close(store);
}

static void test_tombstones_end(void **state)
{
    test_place *here = *state;
    snk_store *store = test_store(here->url);
    snk_id claim = test_id();
    test_expect_answer(test_release_unanswered(store, "x", &claim), SNK_ANSWER_GONE);
    test_expect_answer(test_acquire(store, "x", &claim, TEST_TRY), SNK_ANSWER_GONE);
    int64_t left_ns = test_ask_sql(here, "SELECT expires_ns FROM sneck_tombstone") - snk_now_ns();
    assert_in_range(left_ns, SNK_TOMBSTONE_NS - 60 * SNK_NS_PER_S, SNK_TOMBSTONE_NS);
    test_run_sql(here, "UPDATE sneck_tombstone SET expires_ns = 1");
    test_expect_answer(test_acquire(store, "x", &claim, TEST_TRY), SNK_ANSWER_HELD);
    test_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_AT_PLACE(test_files_are_for_their_user_alone_whatever_the_umask),
        TEST_AT_PLACE(test_file_mode_opens_files_to_the_group_whatever_the_umask),
        TEST_AT_PLACE(test_users_of_a_group_share_a_file),
        TEST_AT_PLACE(test_a_symbolic_link_is_refused),
        TEST_AT_PLACE(test_a_folder_may_be_reached_by_a_symbolic_link),
        TEST_AT_PLACE(test_a_file_of_another_user_is_refused),
        TEST_AT_PLACE(test_a_file_that_others_may_write_is_refused),
        TEST_AT_PLACE(test_a_folder_where_anybody_may_replace_files_is_refused),
        TEST_AT_PLACE(test_a_read_only_file_is_denied),
        TEST_AT_PLACE(test_bad_urls_are_invalid),
        TEST_AT_PLACE(test_each_scheme_has_its_keys),
        TEST_AT_PLACE(test_processes_of_one_user_meet_in_the_default_file),
        TEST_AT_PLACE(test_a_default_folder_that_somebody_else_made_is_refused),
        TEST_AT_PLACE(test_only_local_file_systems_are_allowed),
        TEST_AT_PLACE(test_a_full_disk_is_said_to_be_full),
        TEST_AT_PLACE(test_a_file_that_is_no_database_is_refused),
        TEST_AT_PLACE(test_a_damaged_file_is_reported),
        TEST_AT_PLACE(test_another_programs_database_is_left_alone),
        TEST_AT_PLACE(test_a_file_of_a_later_version_is_refused),
        TEST_AT_PLACE(test_a_file_of_an_earlier_version_is_refused),
        TEST_AT_PLACE(test_a_table_that_is_missing_is_reported),
        TEST_AT_PLACE(test_a_sidecar_that_is_none_is_refused),
        TEST_AT_PLACE(test_a_deleted_file_is_loss_and_the_store_goes_on),
        TEST_AT_PLACE(test_a_deleted_database_alone_is_loss_too),
        TEST_AT_PLACE(test_a_copy_in_place_of_the_file_is_loss_too),
        TEST_AT_PLACE(test_a_deleted_sidecar_costs_no_claim),
        TEST_AT_PLACE(test_a_deleted_folder_is_unavailable_until_it_is_back),
        TEST_AT_PLACE(test_claims_of_another_boot_are_forgotten_and_tokens_are_not),
        TEST_AT_PLACE(test_tokens_go_on_from_the_last_holders_however_its_hold_ended),
        TEST_AT_PLACE(test_tokens_on_a_disk_are_durable),
        TEST_AT_PLACE(test_rows_of_unused_locks_are_removed_and_their_tokens_never_repeat),
        TEST_AT_PLACE(test_tombstones_end),
    };
    return cmocka_run_group_tests_name("embedded store and its file", tests, NULL, NULL);
}
