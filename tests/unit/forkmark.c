#include <sys/wait.h>

#include "base/forkmark.h"
#include "test.h"

/* What the child says: 1 when it knows that it is one. */
static int ask_child(const snk_forkmark *mark)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(snk_forkmark_is_child(mark) ? 1 : 0);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_a_child_of_fork_is_told_from_its_parent(void **state)
{
    (void)state;
    snk_forkmark mark;
    snk_forkmark_init(&mark);
    assert_non_null((const void *)(uintptr_t)mark.page);
    assert_false(snk_forkmark_is_child(&mark));
    assert_int_equal(ask_child(&mark), 1);
    assert_false(snk_forkmark_is_child(&mark));
    snk_forkmark_deinit(&mark);
}

static void test_without_the_page_process_ids_are_compared(void **state)
{
    (void)state;
    snk_forkmark mark = { .pid = getpid() };
    assert_false(snk_forkmark_is_child(&mark));
    assert_int_equal(ask_child(&mark), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_of_fork_is_told_from_its_parent),
        cmocka_unit_test(test_without_the_page_process_ids_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
