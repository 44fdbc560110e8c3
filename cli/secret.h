/* Passwords in URLs: kept out of the process list and out of the environment of commands. */
#ifndef SNK_CLI_SECRET_H
#define SNK_CLI_SECRET_H

/*
 * Copies a URL that was given as an argument, and overwrites its password in the argument itself, where every user of
 * the machine can read it. NULL: out of memory. Never freed: it lives as long as the command line does.
 */
char *snk_secret_take_url(char *argument);

/* A copy of the URL without its password, to be freed; NULL: out of memory. */
char *snk_secret_strip_url(const char *url);

#endif
