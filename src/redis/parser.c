#include "redis/parser.h"

#include <string.h>

#include "base/error.h"

static bool refuse(const snk_redis_measure *measure, sneck_error *error, const char *what)
{
    snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: refused a reply: %s", measure->where, what);
    return false;
}

/* The number after the type byte: "-1" is nothing, NULL. False when it is none or is above `max`. */
static bool parse_count(const snk_redis_measure *measure, size_t max, size_t *count_out)
{
    const char *text = measure->header + 1;
    size_t length = measure->line_length - 2; /* without the type byte and CR */
    *count_out = 0;
    if (length == 2 && memcmp(text, "-1", 2) == 0)
        return true;
    if (length == 0 || length > 10)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        count = count * 10 + (size_t)(text[i] - '0');
    }
    *count_out = count;
    return count <= max;
}

/* One element of the innermost array is complete; perhaps that completes the array, and so on outwards. */
static void end_element(snk_redis_measure *measure)
{
    while (measure->depth > 0) {
        size_t *left = &measure->left[measure->depth - 1];
        if (*left > 0)
            (*left)--;
        if (*left > 0)
            return;
        measure->depth--;
    }
    measure->bytes = 0;
    measure->elements = 0;
}

static bool begin_array(snk_redis_measure *measure, sneck_error *error)
{
    size_t count;
    if (!parse_count(measure, SNK_REDIS_REPLY_ELEMENTS_MAX, &count))
        return refuse(measure, error, "an array with too many elements");
    measure->elements += count;
    if (measure->elements > SNK_REDIS_REPLY_ELEMENTS_MAX)
        return refuse(measure, error, "too many elements");
    if (count == 0) {
        end_element(measure);
        return true;
    }
    if (measure->depth == SNK_REDIS_REPLY_DEPTH_MAX)
        return refuse(measure, error, "arrays nested too deep");
    measure->left[measure->depth++] = count;
    return true;
}

static bool begin_bulk(snk_redis_measure *measure, sneck_error *error)
{
    size_t count;
    if (!parse_count(measure, SNK_REDIS_REPLY_BYTES_MAX, &count))
        return refuse(measure, error, "a string that is too long");
    measure->bytes += count;
    if (measure->bytes > SNK_REDIS_REPLY_BYTES_MAX)
        return refuse(measure, error, "too many bytes");
    if (measure->header[1] == '-')
        end_element(measure);
    else
        measure->skip = count + 2;
    return true;
}

/* A whole line is there; its beginning is in `header`. */
static bool end_line(snk_redis_measure *measure, sneck_error *error)
{
    if (measure->line_length < 2)
        return refuse(measure, error, "an empty line");
    bool fine = true;
    switch (measure->header[0]) {
    case '+':
    case '-':
    case ':':
        end_element(measure);
        break;
    case '$':
        fine = begin_bulk(measure, error);
        break;
    case '*':
        fine = begin_array(measure, error);
        break;
    default:
        fine = refuse(measure, error, "the server does not speak RESP2");
        break;
    }
    measure->line_length = 0;
    return fine;
}

/* Takes bytes of a line, up to and with its LF; returns how many. */
static size_t take_line(snk_redis_measure *measure, const char *data, size_t length, bool *whole_out)
{
    const char *end = memchr(data, '\n', length);
    size_t count = end != NULL ? (size_t)(end - data) + 1 : length;
    size_t text = end != NULL ? count - 1 : count;
    if (measure->line_length < sizeof measure->header) {
        size_t room = sizeof measure->header - measure->line_length;
        memcpy(measure->header + measure->line_length, data, text < room ? text : room);
    }
    measure->line_length += text;
    measure->bytes += text;
    *whole_out = end != NULL;
    return count;
}

bool snk_redis_measure_feed(snk_redis_measure *measure, const char *data, size_t length, sneck_error *error)
{
    while (length > 0) {
        size_t taken;
        if (measure->skip > 0) {
            taken = measure->skip < length ? measure->skip : length;
            measure->skip -= taken;
            if (measure->skip == 0)
                end_element(measure);
        } else {
            bool whole;
            taken = take_line(measure, data, length, &whole);
            if (measure->line_length > SNK_REDIS_REPLY_LINE_MAX || measure->bytes > SNK_REDIS_REPLY_BYTES_MAX)
                return refuse(measure, error, "a line that is too long");
            if (whole && !end_line(measure, error))
                return false;
        }
        data += taken;
        length -= taken;
    }
    return true;
}

sneck_status snk_redis_parser_init(snk_redis_parser *parser, const char *where, sneck_error *error)
{
    *parser = (snk_redis_parser){ .reader = redisReaderCreate(), .measure = { .where = where } };
    if (parser->reader == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "%s: no memory for a reader", where);
    return SNECK_OK;
}

void snk_redis_parser_deinit(snk_redis_parser *parser)
{
    if (parser->reader != NULL)
        redisReaderFree(parser->reader);
    parser->reader = NULL;
}

bool snk_redis_parser_feed(snk_redis_parser *parser, const char *data, size_t length, sneck_error *error)
{
    if (!snk_redis_measure_feed(&parser->measure, data, length, error))
        return false;
    if (redisReaderFeed(parser->reader, data, length) == REDIS_OK)
        return true;
    snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: %s", parser->measure.where, parser->reader->errstr);
    return false;
}

bool snk_redis_parser_next(snk_redis_parser *parser, redisReply **reply_out, sneck_error *error)
{
    void *reply = NULL;
    *reply_out = NULL;
    if (redisReaderGetReply(parser->reader, &reply) != REDIS_OK) {
        snk_fail(error, SNECK_UNAVAILABLE, 0, "%s: %s", parser->measure.where, parser->reader->errstr);
        return false;
    }
    *reply_out = reply;
    return true;
}
