#include "bench.h"

#include <stdio.h>
#include <unistd.h>

#include "bench_measure.h"
#include "escape.h"
#include "exit.h"
#include "json.h"
#include "output.h"
#include "open_store.h"

#define TEXT_SIZE 32

struct options {
    int64_t time_ms;
    int64_t threads;
    int64_t processes;
};

static const snk_flag flags[] = {
    { 't', "time", "DUR", "how long each measurement takes (1s)", SNK_FLAG_DURATION, offsetof(struct options, time_ms),
      50, 60000, NULL },
    { 0, "threads", "N", "threads on one lock (8)", SNK_FLAG_NUMBER, offsetof(struct options, threads), 1, 256, NULL },
    { 0, "processes", "N", "processes on one lock (2)", SNK_FLAG_NUMBER, offsetof(struct options, processes), 2, 64,
      NULL },
    { 0 },
};

const snk_usage snk_usage_bench = {
    .name = "bench",
    .operands = "[--time DUR] [--threads N] [--processes N]",
    .summary = "measure how fast locks are on this store",
    .notes = "It uses locks of its own in the store, named sneck-bench/PID. Only ratios within one run mean much.",
    .flags = flags,
};

static const char *const KEYS[SNK_BENCH_KINDS] = { "reentry", "pair", "threads", "processes" };

static const char *format_ns(char text[TEXT_SIZE], int64_t ns)
{
    if (ns < 10000)
        snprintf(text, TEXT_SIZE, "%d ns", (int)ns);
    else if (ns < 10000000)
        snprintf(text, TEXT_SIZE, "%d us", (int)(ns / 1000));
    else
        snprintf(text, TEXT_SIZE, "%d ms", (int)(ns / 1000000));
    return text;
}

static const char *format_rate(char text[TEXT_SIZE], double per_second)
{
    if (per_second < 1e4)
        snprintf(text, TEXT_SIZE, "%.0f/s", per_second);
    else if (per_second < 1e7)
        snprintf(text, TEXT_SIZE, "%.1fk/s", per_second / 1e3);
    else
        snprintf(text, TEXT_SIZE, "%.1fM/s", per_second / 1e6);
    return text;
}

static void print_label(snk_bench_kind kind, const struct options *options)
{
    char text[64];
    switch (kind) {
    case SNK_BENCH_REENTRY:
        snprintf(text, sizeof text, "re-entry and its release");
        break;
    case SNK_BENCH_PAIR:
        snprintf(text, sizeof text, "free lock, acquire and release");
        break;
    case SNK_BENCH_THREADS:
        snprintf(text, sizeof text, "%d threads on one lock", (int)options->threads);
        break;
    case SNK_BENCH_PROCESSES:
        snprintf(text, sizeof text, "%d processes, hand-off", (int)options->processes);
        break;
    }
    printf("  %-32s", text);
    fflush(stdout);
}

static void print_figure(const snk_bench_figure *figure)
{
    char p50[TEXT_SIZE];
    char p99[TEXT_SIZE];
    char rate[TEXT_SIZE];
    if (figure->error[0] != '\0') {
        snk_escape_write(stdout, figure->error);
        putchar('\n');
        return;
    }
    bool timed = figure->p50_ns != 0;
    printf("%10s%10s%12s\n", timed ? format_ns(p50, figure->p50_ns) : "", timed ? format_ns(p99, figure->p99_ns) : "",
           format_rate(rate, figure->per_second));
}

static void put_figure(snk_json *json, snk_bench_kind kind, const snk_bench_figure *figure)
{
    snk_json_open(json, KEYS[kind], '{');
    if (figure->error[0] != '\0') {
        snk_json_text(json, "error", figure->error);
    } else {
        if (figure->p50_ns != 0) {
            snk_json_int(json, "p50_ns", figure->p50_ns);
            snk_json_int(json, "p99_ns", figure->p99_ns);
        }
        snk_json_number(json, "per_second", figure->per_second, 1);
    }
    snk_json_close(json, '}');
}

/* SNK_EXIT_OK when everything could be measured. */
static int measure(const snk_cli *cli, const struct options *options)
{
    snk_bench_plan plan = {
        .store = snk_cli_store_url(cli),
        .time_ms = options->time_ms,
        .threads = (int)options->threads,
        .processes = (int)options->processes,
    };
    int code = SNK_EXIT_OK;
    snk_json json = snk_json_on(stdout);
    if (cli->json)
        snk_json_open(&json, NULL, '{');
    else
        printf("  %-32s%10s%10s%12s\n", "", "p50", "p99", "rate");
    for (int i = 0; i < SNK_BENCH_KINDS; i++) {
        snk_bench_figure figure;
        snk_bench_kind kind = (snk_bench_kind)i;
        if (!cli->json)
            print_label(kind, options);
        snk_bench_measure(kind, &plan, &figure);
        if (cli->json)
            put_figure(&json, kind, &figure);
        else
            print_figure(&figure);
        code = figure.error[0] != '\0' ? SNK_EXIT_UNAVAILABLE : code;
    }
    if (cli->json) {
        snk_json_int(&json, "threads_used", options->threads);
        snk_json_int(&json, "processes_used", options->processes);
        snk_json_int(&json, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
        snk_json_close(&json, '}');
        snk_json_end(&json);
    }
    return code;
}

int snk_cmd_bench(const snk_cli *given, int argc, char **argv)
{
    struct options options = { .time_ms = 1000, .threads = 8, .processes = 2 };
    snk_arguments arguments;
    sneck_client *client = NULL;
    int code = snk_options_parse(&snk_usage_bench, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count != 0)
        return snk_operands_wrong(&snk_usage_bench, &arguments);
    /* A store that cannot be used is said once, with its own exit code. Closed again: the measurements fork. */
    code = snk_cli_open_store(&arguments.cli, NULL, &client);
    if (code != SNK_EXIT_OK)
        return code;
    sneck_close(client);
    return measure(&arguments.cli, &options);
}
