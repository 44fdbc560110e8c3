/*
 * Writes JSON to a stream, one value after the other; commas are set by the writer. `key` is NULL inside an array and
 * for the outermost value. Texts that are not UTF-8 get U+FFFD for each wrong byte.
 *
 *     snk_json json = snk_json_on(stdout);
 *     snk_json_open(&json, NULL, '{');
 *     snk_json_text(&json, "name", info->name);
 *     snk_json_close(&json, '}');
 *     snk_json_end(&json);                      // newline and flush
 */
#ifndef SNK_CLI_JSON_H
#define SNK_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct snk_json {
    FILE *stream;
    bool follows; /* a value stands before the next one on this level */
} snk_json;

snk_json snk_json_on(FILE *stream);
void snk_json_open(snk_json *json, const char *key, char bracket);
void snk_json_close(snk_json *json, char bracket);
void snk_json_text(snk_json *json, const char *key, const char *text); /* NULL is null */
void snk_json_int(snk_json *json, const char *key, int64_t number);
void snk_json_uint(snk_json *json, const char *key, uint64_t number);
void snk_json_number(snk_json *json, const char *key, double number, int decimals);
void snk_json_bool(snk_json *json, const char *key, bool value);
void snk_json_end(snk_json *json);

#endif
