/* Passwords in URLs: kept out of the process list and out of the environment of commands. */
#ifndef SNK_CLI_SECRET_H
#define SNK_CLI_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies a URL that was given as an argument, and overwrites its password in the argument itself, where every user of
 * the machine can read it. False when it is empty or does not fit.
 */
bool snk_secret_take_url(char *argument, char *url, size_t size);

/* A copy of the URL without its password, to be freed; NULL: out of memory. */
char *snk_secret_strip_url(const char *url);

#endif
