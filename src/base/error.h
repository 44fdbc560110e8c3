/* Filling a sneck_error. */
#ifndef SNK_BASE_ERROR_H
#define SNK_BASE_ERROR_H

#include "sneck.h"

/* Fills `error` (may be NULL), cutting a long message, and returns `status`, so that callers can `return snk_fail(…)`. */
sneck_status snk_fail(sneck_error *error, sneck_status status, int cause, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Clears `error` (may be NULL) and returns SNECK_OK. */
sneck_status snk_ok(sneck_error *error);

/* Copies `from` to `error` (may be NULL) and returns its status. */
sneck_status snk_fail_as(sneck_error *error, const sneck_error *from);

/* What an errno means; unlike strerror for any number of threads. */
const char *snk_errno_text(int cause);

/*
 * Copies text so that it always ends in NUL; what does not fit is cut at a character boundary of UTF-8. Returns the
 * length that was copied.
 */
size_t snk_copy_text(char *to, size_t size, const char *from);

#endif
