/*
 * One line of a log, as `key=value` text or as a JSON object. Keys are ours; values may be anybody's, so everything in
 * them that could end a value or a line, or move a terminal, is escaped.
 *
 *     ts=2026-01-31T12:00:00.123Z level=warning event=lost lock="stock/42" token=17
 *     {"ts":"2026-01-31T12:00:00.123Z","level":"warning","event":"lost","lock":"stock/42","token":17}
 */
#ifndef SNK_BASE_LOGLINE_H
#define SNK_BASE_LOGLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sneck.h"

#define SNK_LOGLINE_SIZE 2048

typedef struct snk_logline {
    bool is_json;
    bool is_full; /* a value did not fit: it and those after it are left out */
    size_t length;
    char text[SNK_LOGLINE_SIZE];
} snk_logline;

/* Begins a line with its time (microseconds since 1970), level and event. */
void snk_logline_begin(snk_logline *line, bool is_json, int64_t wall_us, sneck_log_level level, const char *event);
void snk_logline_text(snk_logline *line, const char *key, const char *value);
void snk_logline_number(snk_logline *line, const char *key, int64_t value);
/* Ends the line, which stays valid as long as `line`. */
const char *snk_logline_end(snk_logline *line);

#endif
