/* Writing text for Prometheus: families with HELP and TYPE, samples with escaped labels. */
#ifndef SNK_BASE_EXPOSITION_H
#define SNK_BASE_EXPOSITION_H

#include <stddef.h>
#include <stdint.h>

#define SNK_EXPOSITION_SIZE 4096

typedef struct snk_exposition {
    void (*write)(void *context, const char *text, size_t length);
    void *context;
    const char *family; /* of the samples that follow */
    size_t length;
    char text[SNK_EXPOSITION_SIZE];
} snk_exposition;

/* Up to two labels of a sample; without a name there is none. */
typedef struct snk_labels {
    const char *name;
    const char *value;
    const char *second_name;
    const char *second_value;
} snk_labels;

void snk_exposition_begin(snk_exposition *out, void (*write)(void *context, const char *text, size_t length),
                          void *context);
/* `type` is "counter", "gauge" or "histogram". Names and help are ours. */
void snk_exposition_family(snk_exposition *out, const char *name, const char *type, const char *help);
void snk_exposition_count(snk_exposition *out, snk_labels labels, uint64_t value);
void snk_exposition_value(snk_exposition *out, snk_labels labels, double value);
/* One histogram of the family: cumulative counts are made here. `bounds_ns` rise; `counts` has one more, for the rest. */
void snk_exposition_histogram(snk_exposition *out, snk_labels labels, const int64_t bounds_ns[], size_t bound_count,
                              const uint64_t counts[], int64_t sum_ns);
/* Writes what is left. */
void snk_exposition_end(snk_exposition *out);

#endif
