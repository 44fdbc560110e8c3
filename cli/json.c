#include "json.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "escape.h"

snk_json snk_json_on(FILE *stream)
{
    return (snk_json){ .stream = stream };
}

static void write_character(FILE *stream, const char *text, size_t length, uint32_t character)
{
    if (character == '"' || character == '\\')
        fprintf(stream, "\\%c", (char)character);
    else if (character < 0x20 || (character >= 0x7F && character < 0xA0))
        fprintf(stream, "\\u%04x", (unsigned)character);
    else
        fwrite(text, 1, length, stream);
}

static void write_text(FILE *stream, const char *text)
{
    putc('"', stream);
    while (*text != '\0') {
        uint32_t character = 0;
        size_t length = snk_utf8_read(text, &character);
        if (length == 0)
            fputs("\\ufffd", stream);
        else
            write_character(stream, text, length, character);
        text += length == 0 ? 1 : length;
    }
    putc('"', stream);
}

static void begin_value(snk_json *json, const char *key)
{
    if (json->follows)
        putc(',', json->stream);
    json->follows = true;
    if (key != NULL) {
        write_text(json->stream, key);
        putc(':', json->stream);
    }
}

void snk_json_open(snk_json *json, const char *key, char bracket)
{
    begin_value(json, key);
    putc(bracket, json->stream);
    json->follows = false;
}

void snk_json_close(snk_json *json, char bracket)
{
    putc(bracket, json->stream);
    json->follows = true;
}

void snk_json_text(snk_json *json, const char *key, const char *text)
{
    begin_value(json, key);
    if (text == NULL)
        fputs("null", json->stream);
    else
        write_text(json->stream, text);
}

void snk_json_int(snk_json *json, const char *key, int64_t number)
{
    begin_value(json, key);
    fprintf(json->stream, "%" PRId64, number);
}

void snk_json_uint(snk_json *json, const char *key, uint64_t number)
{
    begin_value(json, key);
    fprintf(json->stream, "%" PRIu64, number);
}

void snk_json_number(snk_json *json, const char *key, double number, int decimals)
{
    begin_value(json, key);
    fprintf(json->stream, "%.*f", decimals, number);
}

void snk_json_bool(snk_json *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", json->stream);
}

void snk_json_end(snk_json *json)
{
    putc('\n', json->stream);
    fflush(json->stream);
    json->follows = false;
}
