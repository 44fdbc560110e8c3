#include "output.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "escape.h"
#include "json.h"

#define LINE_SIZE 2048
#define SECONDS_PER_DAY INT64_C(86400)

const char *snk_format_duration(char buffer[SNK_TIME_TEXT_SIZE], int64_t ms)
{
    int64_t seconds = ms / 1000;
    if (ms < 0)
        snprintf(buffer, SNK_TIME_TEXT_SIZE, "0s");
    else if (ms < 1000)
        snprintf(buffer, SNK_TIME_TEXT_SIZE, "%" PRId64 "ms", ms);
    else if (seconds < 10)
        snprintf(buffer, SNK_TIME_TEXT_SIZE, "%" PRId64 ".%" PRId64 "s", seconds, ms % 1000 / 100);
    else if (seconds < 60)
        snprintf(buffer, SNK_TIME_TEXT_SIZE, "%" PRId64 "s", seconds);
    else if (seconds < 3600)
        snprintf(buffer, SNK_TIME_TEXT_SIZE, "%" PRId64 "m%02" PRId64 "s", seconds / 60, seconds % 60);
    else if (seconds < SECONDS_PER_DAY)
        snprintf(buffer, SNK_TIME_TEXT_SIZE, "%" PRId64 "h%02" PRId64 "m", seconds / 3600, seconds / 60 % 60);
    else
        snprintf(buffer, SNK_TIME_TEXT_SIZE, "%" PRId64 "d%02" PRId64 "h", seconds / SECONDS_PER_DAY,
                 seconds / 3600 % 24);
    return buffer;
}

const char *snk_format_time(char buffer[SNK_TIME_TEXT_SIZE], int64_t epoch_ms)
{
    time_t seconds = (time_t)(epoch_ms / 1000);
    struct tm parts = { 0 };
    char date[24];
    if (epoch_ms < 0 || gmtime_r(&seconds, &parts) == NULL || parts.tm_year > 8099 ||
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts) == 0)
        snprintf(buffer, SNK_TIME_TEXT_SIZE, "?");
    else
        snprintf(buffer, SNK_TIME_TEXT_SIZE, "%s.%03dZ", date, (int)(epoch_ms % 1000));
    return buffer;
}

static void print_line(const char *text)
{
    fputs("sneck: ", stderr);
    snk_escape_write(stderr, text);
    putc('\n', stderr);
    fflush(stderr);
}

static void print_error(const snk_cli *cli, const char *status, const char *text)
{
    if (!cli->json) {
        print_line(text);
        return;
    }
    snk_json json = snk_json_on(stderr);
    snk_json_open(&json, NULL, '{');
    snk_json_text(&json, "event", "error");
    if (status != NULL)
        snk_json_text(&json, "status", status);
    snk_json_text(&json, "message", text);
    snk_json_close(&json, '}');
    snk_json_end(&json);
}

void snk_complain(const snk_cli *cli, const char *format, ...)
{
    char text[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_error(cli, NULL, length < 0 ? format : text);
}

void snk_report(const snk_cli *cli, const sneck_error *error)
{
    const char *status = sneck_status_name(error->status);
    print_error(cli, status, error->message[0] != '\0' ? error->message : status);
}

void snk_say(const snk_cli *cli, const char *format, ...)
{
    char text[LINE_SIZE];
    if (cli->quiet || cli->json)
        return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_line(length < 0 ? format : text);
}
