#include "base/exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void flush(snk_exposition *out)
{
    if (out->length > 0)
        out->write(out->context, out->text, out->length);
    out->length = 0;
}

static void append(snk_exposition *out, const char *text)
{
    size_t length = strlen(text);
    while (length > 0) {
        size_t room = sizeof out->text - out->length;
        size_t part = length < room ? length : room;
        memcpy(out->text + out->length, text, part);
        out->length += part;
        text += part;
        length -= part;
        if (out->length == sizeof out->text)
            flush(out);
    }
}

static void append_escaped(snk_exposition *out, const char *value)
{
    char piece[2] = { 0 };
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"')
            append(out, "\\");
        if (*value == '\n') {
            append(out, "\\n");
            continue;
        }
        piece[0] = *value;
        append(out, piece);
    }
}

static void append_label(snk_exposition *out, const char *name, const char *value, const char *separator)
{
    append(out, separator);
    append(out, name);
    append(out, "=\"");
    append_escaped(out, value);
    append(out, "\"");
}

/* The name of a sample with its labels; `le` (may be NULL) is one more. */
static void append_name(snk_exposition *out, const char *ending, snk_labels labels, const char *le)
{
    const char *separator = "{";
    append(out, out->family);
    append(out, ending);
    if (labels.name != NULL) {
        append_label(out, labels.name, labels.value, separator);
        separator = ",";
    }
    if (labels.second_name != NULL) {
        append_label(out, labels.second_name, labels.second_value, separator);
        separator = ",";
    }
    if (le != NULL) {
        append_label(out, "le", le, separator);
        separator = ",";
    }
    append(out, separator[0] == ',' ? "} " : " ");
}

void snk_exposition_begin(snk_exposition *out, void (*write)(void *context, const char *text, size_t length),
                          void *context)
{
    out->write = write;
    out->context = context;
    out->family = "";
    out->length = 0;
}

void snk_exposition_family(snk_exposition *out, const char *name, const char *type, const char *help)
{
    out->family = name;
    append(out, "# HELP ");
    append(out, name);
    append(out, " ");
    append(out, help);
    append(out, "\n# TYPE ");
    append(out, name);
    append(out, " ");
    append(out, type);
    append(out, "\n");
}

static void append_count(snk_exposition *out, const char *ending, snk_labels labels, const char *le, uint64_t value)
{
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%" PRIu64 "\n", value);
    append_name(out, ending, labels, le);
    append(out, digits);
}

static void append_number(snk_exposition *out, const char *ending, snk_labels labels, double value)
{
    char digits[64];
    (void)snprintf(digits, sizeof digits, "%.9g\n", value);
    append_name(out, ending, labels, NULL);
    append(out, digits);
}

void snk_exposition_count(snk_exposition *out, snk_labels labels, uint64_t value)
{
    append_count(out, "", labels, NULL, value);
}

void snk_exposition_value(snk_exposition *out, snk_labels labels, double value)
{
    append_number(out, "", labels, value);
}

void snk_exposition_histogram(snk_exposition *out, snk_labels labels, const int64_t bounds_ns[], size_t bound_count,
                              const uint64_t counts[], int64_t sum_ns)
{
    uint64_t count = 0;
    for (size_t i = 0; i < bound_count; i++) {
        char bound[32];
        (void)snprintf(bound, sizeof bound, "%.9g", (double)bounds_ns[i] / 1e9);
        count += counts[i];
        append_count(out, "_bucket", labels, bound, count);
    }
    count += counts[bound_count];
    append_count(out, "_bucket", labels, "+Inf", count);
    append_number(out, "_sum", labels, (double)sum_ns / 1e9);
    append_count(out, "_count", labels, NULL, count);
}

void snk_exposition_end(snk_exposition *out)
{
    flush(out);
}
