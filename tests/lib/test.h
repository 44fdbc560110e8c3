/*
 * What every C test includes: cmocka with the headers it wants before it, and how much to try.
 *
 * A test prints figures worth keeping as TAP comments that begin with "# figure: "; `./dev prove` shows them.
 */
#ifndef SNK_TEST_H
#define SNK_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* The share of `full` that this run is to try: all of it in `./dev prove`, a tenth otherwise, but at least 1. */
static inline unsigned test_scaled(unsigned full)
{
    const char *text = getenv("SNECK_TEST_SCALE");
    double share = text != NULL ? strtod(text, NULL) : 0.1;
    double count = share * full;
    return count > 1 ? (unsigned)count : 1;
}

/* With SNECK_TEST_ONLY only those tests of a program run whose names match it, as a shell pattern. */
__attribute__((constructor)) static inline void test_choose(void)
{
    const char *only = getenv("SNECK_TEST_ONLY");
    if (only != NULL)
        cmocka_set_test_filter(only);
}

/* Set in builds with ThreadSanitizer, which ends a process that starts threads after fork() from one that has some. */
#if defined(__SANITIZE_THREAD__)
#define TEST_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_HAS_TSAN 1
#endif
#endif
#ifndef TEST_HAS_TSAN
#define TEST_HAS_TSAN 0
#endif

/* Ends the running test as skipped; the summary shows why. */
static inline void test_skip(const char *why)
{
    printf("# skip: %s\n", why);
    skip();
}

#endif
