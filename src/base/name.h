/* Lock names and other texts from users. */
#ifndef SNK_BASE_NAME_H
#define SNK_BASE_NAME_H

#include "sneck.h"

/* SNECK_INVALID unless 1 to SNK_NAME_LENGTH_MAX bytes of UTF-8 without control characters. NULL is invalid too. */
sneck_status snk_name_check(const char *name, sneck_error *error);

/* The same rule for any text: `what` names it in the message, `length_min` and `length_max` are in bytes. */
sneck_status snk_text_check(const char *text, const char *what, size_t length_min, size_t length_max,
                            sneck_error *error);

#endif
