/*
 * Texts of other people on our terminal. Names, hosts and reasons come out of a store that others write to; a control
 * character among them could move the cursor or rewrite a line, so none is ever printed as it is.
 */
#ifndef SNK_CLI_ESCAPE_H
#define SNK_CLI_ESCAPE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/utf8.h"

/* Writes `text` with control characters, direction overrides and bytes that are not UTF-8 as \n \t \xNN or \uNNNN. */
void snk_escape_write(FILE *stream, const char *text);

/*
 * The same into `buffer`, which always ends in NUL; what does not fit is cut and ends in "...". Returns `buffer`, for
 * use in the argument list of printf.
 */
const char *snk_escape(char *buffer, size_t size, const char *text);

#endif
