/* What `sneck setup` needs of the library. Not part of the C interface. */
#ifndef SNK_CLIENT_SETUP_H
#define SNK_CLIENT_SETUP_H

#include <stdbool.h>

#include "sneck.h"

/*
 * Makes what the store of that URL (NULL: as for sneck_open) needs, or brings it up to date. `*needed_out` is false when
 * this kind of store needs nothing; it was opened once all the same.
 */
sneck_status snk_setup(const char *url, bool *needed_out, sneck_error *error);

/*
 * The statements that this would run, for people who run them by themselves; NULL when there are none, and when `error`
 * says that the URL is wrong.
 */
const char *snk_setup_text(const char *url, sneck_error *error);

#endif
