/*
 * For tests with several processes: each has its own client, made after the fork. They share a page with the test and
 * tell each other what happened by words in it that can be waited for.
 */
#ifndef SNK_TEST_PROCESS_H
#define SNK_TEST_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sneck.h"

/* By how much time limits are stretched, by SNECK_TEST_PATIENCE: at least 1. */
int64_t test_patience_factor(void);

/* How long anything may take before a test gives up; stretched by that. */
int64_t test_patience_ns(void);

/* A new directory, removed with all its files by test_remove_directory. Static memory. */
const char *test_make_directory(void);
void test_remove_directory(void);

/* "sqlite://<directory>/locks.db". Static memory. */
const char *test_sqlite_url(void);

/* What test_child_open opens instead, until the next test_make_directory; copied. */
void test_use_url(const char *url);

/* Zeroed memory that children share; free with munmap, or leave it. */
void *test_share(size_t size);

typedef int (*test_child_fn)(void *context);

/* Runs `child` in a new process, which dies with this one; its result is the exit code. */
pid_t test_spawn(test_child_fn child, void *context);

/* The exit code, or 128+n after signal n; -1 (and SIGKILL) when it takes longer than the test's patience. */
int test_join(pid_t pid);

/* SIGKILL, and waits until the process is gone. */
void test_kill(pid_t pid);

/* Adds to a shared word and wakes who waits for it. */
void test_signal(_Atomic uint32_t *word);

/* Waits until a shared word is at least `value`; false when that takes longer than the test's patience. */
bool test_await(_Atomic uint32_t *word, uint32_t value);

/* In a child: a client of the test's store, and a handle; exits with a message on failure. */
sneck_client *test_child_open(const sneck_client_options *options);
sneck_lock *test_child_mutex(sneck_client *client, const char *name, const sneck_lock_options *options);

/* In a child: exits with code 1 and a message unless `status` is as expected. */
void test_child_expect(sneck_status status, sneck_status expected, const sneck_error *error, const char *what);

/* Sorts and returns the p-th percentile (0..100). */
int64_t test_percentile(int64_t values[], size_t count, double percent);

#endif
