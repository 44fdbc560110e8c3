/* Reading what a store's URL says beyond the keys of every store. Messages name the key, never a password. */
#ifndef SNK_STORE_SETTINGS_H
#define SNK_STORE_SETTINGS_H

#include "base/url.h"

#define SNK_PASSWORD_SIZE 1024

/* The place of a key's value in `words` (two or three, ends with NULL); 0 when the key is not given. */
sneck_status snk_setting_choose(const snk_url *url, const char *key, const char *const words[], int *choice_out,
                                sneck_error *error);

/*
 * A time in ms: a bare number, or with a unit as durations have it (250ms 1.5s 1m). *ms_out stays as it is when the key is
 * not given.
 */
sneck_status snk_setting_time(const snk_url *url, const char *key, int64_t most_ms, int64_t *ms_out,
                              sneck_error *error);

/* `what` names it in the message: "the database after the host". */
sneck_status snk_setting_number(const char *text, const char *what, long least, long most, long *number_out,
                                sneck_error *error);

/* The first line of the file at `path`, which `what` names; "" without one. SNECK_DENIED when it cannot be read. */
sneck_status snk_setting_secret(const char *path, const char *what, char secret[SNK_PASSWORD_SIZE], sneck_error *error);

/*
 * The password of the URL, else the first line of the file that SNECK_PASSWORD_FILE names, else "". SNECK_DENIED when
 * that cannot be read.
 */
sneck_status snk_setting_password(const snk_url *url, char password[SNK_PASSWORD_SIZE], sneck_error *error);

#endif
