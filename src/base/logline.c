#include "base/logline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

#define PIECE_SIZE 8
/* What every line keeps free for its end. */
#define RESERVE 8

static void append(snk_logline *line, const char *text, size_t length)
{
    if (line->is_full || line->length + length + RESERVE > sizeof line->text) {
        line->is_full = true;
        return;
    }
    memcpy(line->text + line->length, text, length);
    line->length += length;
    line->text[line->length] = '\0';
}

static void append_text(snk_logline *line, const char *text)
{
    append(line, text, strlen(text));
}

/* Control characters, and those that end a line or turn what follows around. */
static bool is_dangerous(uint32_t character)
{
    return character < 0x20 || (character >= 0x7F && character < 0xA0) || character == 0x200E || character == 0x200F ||
           (character >= 0x2028 && character <= 0x202E) || (character >= 0x2066 && character <= 0x2069);
}

/* Both kinds of lines escape alike; what is not UTF-8 is shown as the character for that. */
static void append_escaped(snk_logline *line, const char *value)
{
    while (*value != '\0' && !line->is_full) {
        uint32_t character = 0;
        size_t length = snk_utf8_read(value, &character);
        char piece[PIECE_SIZE];
        if (length == 0) {
            append_text(line, "\\ufffd");
            value++;
            continue;
        }
        if (character == '"' || character == '\\')
            (void)snprintf(piece, sizeof piece, "\\%c", (char)character);
        else if (is_dangerous(character))
            (void)snprintf(piece, sizeof piece, "\\u%04x", (unsigned)character & 0xFFFFU);
        else
            (void)snprintf(piece, sizeof piece, "%.*s", (int)length, value);
        append_text(line, piece);
        value += length;
    }
}

static void append_key(snk_logline *line, const char *key)
{
    bool is_first = line->length == (line->is_json ? 1U : 0U);
    if (!is_first)
        append_text(line, line->is_json ? "," : " ");
    if (line->is_json)
        append_text(line, "\"");
    append_text(line, key);
    append_text(line, line->is_json ? "\":" : "=");
}

/* A word that needs no quotes in a line of key=value. */
static bool is_plain(const char *value)
{
    return value[0] != '\0' &&
           strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") == strlen(value);
}

static void append_value(snk_logline *line, const char *key, const char *value, bool quoted)
{
    size_t before = line->length;
    append_key(line, key);
    if (quoted)
        append_text(line, "\"");
    append_escaped(line, value);
    if (quoted)
        append_text(line, "\"");
    if (!line->is_full)
        return;
    line->length = before; /* better none than half of one */
    line->text[before] = '\0';
}

static const char *name_of(sneck_log_level level)
{
    switch (level) {
    case SNECK_LOG_ERROR:
        return "error";
    case SNECK_LOG_WARNING:
        return "warning";
    case SNECK_LOG_INFO:
        return "info";
    case SNECK_LOG_DEBUG:
        return "debug";
    }
    return "?";
}

/* For our own words, which need quotes only in JSON. */
static void append_word(snk_logline *line, const char *key, const char *word)
{
    append_value(line, key, word, line->is_json);
}

void snk_logline_begin(snk_logline *line, bool is_json, int64_t wall_us, sneck_log_level level, const char *event)
{
    char moment[40];
    char ts[64];
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm utc;
    line->is_json = is_json;
    line->is_full = false;
    line->length = 0;
    line->text[0] = '\0';
    if (is_json)
        append_text(line, "{");
    if (gmtime_r(&seconds, &utc) == NULL || strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        (void)snprintf(moment, sizeof moment, "?");
    (void)snprintf(ts, sizeof ts, "%s.%03dZ", moment, (int)(wall_us / 1000 % 1000));
    append_word(line, "ts", ts);
    append_word(line, "level", name_of(level));
    append_value(line, "event", event, is_json || !is_plain(event));
}

void snk_logline_text(snk_logline *line, const char *key, const char *value)
{
    append_value(line, key, value, true);
}

void snk_logline_number(snk_logline *line, const char *key, int64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, value);
    append_value(line, key, digits, false);
}

const char *snk_logline_end(snk_logline *line)
{
    if (line->is_json)
        memcpy(line->text + line->length, "}", 2); /* RESERVE */
    return line->text;
}
