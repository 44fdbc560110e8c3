/* Lock names and other texts from users. */
#ifndef SNK_BASE_NAME_H
#define SNK_BASE_NAME_H

#include "sneck.h"

/* SNECK_INVALID unless 1 to SNK_NAME_LENGTH_MAX bytes of UTF-8 without control characters. NULL is invalid too. */
sneck_status snk_name_check(const char *name, sneck_error *error);

/* The same rule for any text: `what` names it in the message, `length_min` and `length_max` are in bytes. */
sneck_status snk_text_check(const char *text, const char *what, size_t length_min, size_t length_max,
                            sneck_error *error);

#define SNK_CLASS_LABEL_SIZE 65

/*
 * The class of a name, by which locks are counted together: the name up to its first '/', cut to what fits; "other" for
 * a text that is no name.
 */
void snk_name_class(const char *name, char label[SNK_CLASS_LABEL_SIZE]);

#endif
