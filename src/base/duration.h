/* Durations as people write them: 250ms 1.5 30s 5m 1h; a bare number is seconds. */
#ifndef SNK_BASE_DURATION_H
#define SNK_BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* False when `text` is no duration, is negative, or does not fit. "0" is a duration. Rounded up to a millisecond. */
bool snk_duration_parse_ms(const char *text, int64_t *ms_out);

#endif
