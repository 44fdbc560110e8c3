#include "client/log.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/logline.h"
#include "client/client.h"

void snk_log_init(snk_log *log)
{
    (void)pthread_mutex_init(&log->mutex, NULL);
}

void snk_log_deinit(snk_log *log)
{
    (void)pthread_mutex_destroy(&log->mutex);
}

/* Each event has an account of its own, opened by its first line. Should there be more, the last ones share one. */
static struct snk_log_limit *limit_of_locked(snk_log *log, const char *event)
{
    size_t i = 0;
    while (i < log->count && strncmp(log->limits[i].event, event, sizeof log->limits[i].event - 1) != 0)
        i++;
    if (i < log->count)
        return &log->limits[i];
    if (log->count == SNK_LOG_KINDS)
        return &log->limits[SNK_LOG_KINDS - 1];
    struct snk_log_limit *limit = &log->limits[log->count++];
    (void)snk_copy_text(limit->event, sizeof limit->event, event);
    return limit;
}

/* May a line of this event be written now? Then `*left_out` is how many were not since the last one. */
static bool is_admitted(snk_log *log, const char *event, int64_t now_ns, uint32_t *left_out)
{
    (void)pthread_mutex_lock(&log->mutex);
    struct snk_log_limit *limit = limit_of_locked(log, event);
    if (limit->since_ns == 0 || now_ns - limit->since_ns >= SNK_NS_PER_S) {
        limit->since_ns = now_ns;
        limit->count = 0;
    }
    bool admitted = limit->count < SNK_LOG_RATE;
    *left_out = limit->left_out;
    limit->count += admitted;
    limit->left_out = admitted ? 0 : limit->left_out + 1;
    (void)pthread_mutex_unlock(&log->mutex);
    return admitted;
}

void snk_log_write(sneck_client *client, sneck_log_level level, const char *event, const snk_log_field fields[])
{
    const snk_settings *settings = &client->settings;
    uint32_t left_out = 0;
    if (settings->log == NULL || !is_admitted(&client->log, event, snk_now_ns(), &left_out))
        return;
    snk_logline line;
    snk_logline_begin(&line, settings->log_format == SNECK_LOG_JSON, snk_wall_us(), level, event);
    for (; fields != NULL && fields->key != NULL; fields++) {
        if (fields->text != NULL)
            snk_logline_text(&line, fields->key, fields->text);
        else
            snk_logline_number(&line, fields->key, fields->number);
    }
    if (left_out > 0)
        snk_logline_number(&line, "left_out", left_out);
    snk_callbacks_push_line(client, level, snk_logline_end(&line));
}

/* ---- Lines of stores ---- */

/* What a store may say beside its event; so nothing in a value can pass for another key. */
static const char *known_key(const char *text, size_t *length_out)
{
    static const char *const keys[] = {
        "server", "error", "again", "path", "reason", "node", "shard", "role", "before"
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t length = strlen(keys[i]);
        if (strncmp(text, keys[i], length) == 0 && text[length] == '=') {
            *length_out = length;
            return keys[i];
        }
    }
    return NULL;
}

/* The end of the value that begins at `text`: where the next key begins after it, or the text ends. */
static size_t value_length(const char *text)
{
    size_t length = 0;
    size_t ignored = 0;
    while (text[length] != '\0' && !(text[length] == ' ' && known_key(text + length + 1, &ignored) != NULL))
        length++;
    return length;
}

/* Takes the next value out of `*text`, without quotes around it. */
static void take_value(const char **text, char *value, size_t size)
{
    size_t length = value_length(*text);
    const char *from = *text;
    *text += length;
    if (length >= 2 && from[0] == '"' && from[length - 1] == '"') {
        from++;
        length -= 2;
    }
    if (length >= size)
        length = size - 1;
    memcpy(value, from, length);
    value[length] = '\0';
}

void snk_log_store(void *context, sneck_log_level level, const char *text)
{
    sneck_client *client = context;
    char values[SNK_LOG_FIELDS_MAX + 1][240];
    snk_log_field fields[SNK_LOG_FIELDS_MAX + 1] = { { .key = NULL } };
    size_t count = 0;
    if (strncmp(text, "event=", 6) == 0)
        text += 6;
    take_value(&text, values[0], sizeof values[0]);
    while (*text == ' ' && count < SNK_LOG_FIELDS_MAX) {
        size_t length = 0;
        fields[count].key = known_key(++text, &length);
        if (fields[count].key == NULL)
            break;
        text += length + 1;
        take_value(&text, values[count + 1], sizeof values[0]);
        fields[count].text = values[count + 1];
        count++;
    }
    fields[count < SNK_LOG_FIELDS_MAX ? count : SNK_LOG_FIELDS_MAX].key = NULL;
    snk_log_write(client, level, values[0], fields);
}
