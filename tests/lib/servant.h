/*
 * Programs that insist on an ordinary user, started by tests that may run as root: then they run as another user, in a
 * directory that belongs to it.
 */
#ifndef SNK_TEST_SERVANT_H
#define SNK_TEST_SERVANT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Starts a program as that user, which dies with this process; its output goes to `log`. `words` ends with NULL. */
pid_t servant_spawn(const char *const words[], const char *log);

/* Runs one, and waits for its end. True: exit code 0. */
bool servant_run(const char *const words[]);

/* Waits for the end of a child; its status. */
int servant_wait(pid_t pid);

/* A new directory of that user, in memory where that can be had. */
bool servant_make_directory(const char *name, char *directory, size_t size);
/* With all that is in it; "" is a no-op. */
void servant_remove_directory(const char *directory);

#endif
