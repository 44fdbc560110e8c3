#include "metrics.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exposition.h"
#include "base/name.h"
#include "exit.h"
#include "http.h"
#include "open_store.h"
#include "output.h"
#include "page_text.h"
#include "signals.h"

#define CLASSES_MAX 100

struct options {
    const char *listen;
    const char *textfile;
};

static const snk_flag flags[] = {
    { 0, "listen", "ADDR", "serve them at http://ADDR/metrics until a signal comes", SNK_FLAG_TEXT,
      offsetof(struct options, listen), 0, 0, NULL },
    { 0, "textfile", "PATH", "write them to a file, at once and whole", SNK_FLAG_TEXT,
      offsetof(struct options, textfile), 0, 0, NULL },
    { 0 },
};

const snk_usage snk_usage_metrics = {
    .name = "metrics",
    .operands = "[GLOB]",
    .summary = "figures about the locks of a store, for Prometheus",
    .flags = flags,
    .notes = "Without flags it prints them once. ADDR is PORT, ADDRESS:PORT or [ADDRESS]:PORT; without an address it\n"
             "listens on this machine alone. PATH is for the textfile collector of the node exporter, from cron.",
};

/* ---- What the store shows, by class of names ---- */

struct class
{
    char label[SNK_CLASS_LABEL_SIZE];
    uint64_t held;
    uint64_t waiting;
    int64_t oldest_hold_ms;
    int64_t oldest_wait_ms;
};

struct survey {
    size_t count;
    struct class classes[CLASSES_MAX + 1]; /* the first is "other" */
};

static struct class *find_class(struct survey *survey, const char *name)
{
    char label[SNK_CLASS_LABEL_SIZE];
    snk_name_class(name, label);
    for (size_t i = 0; i < survey->count; i++) {
        if (strcmp(survey->classes[i].label, label) == 0)
            return &survey->classes[i];
    }
    if (survey->count > CLASSES_MAX)
        return &survey->classes[0];
    struct class *added = &survey->classes[survey->count++];
    memcpy(added->label, label, sizeof label);
    return added;
}

static bool add_lock(void *context, const sneck_info *info)
{
    struct class *class = find_class(context, info->name);
    class->held += info->held;
    class->waiting += info->waiter_count;
    if (info->held && info->holder.age_ms > class->oldest_hold_ms)
        class->oldest_hold_ms = info->holder.age_ms;
    for (size_t i = 0; i < info->waiter_count; i++) {
        if (info->waiters[i].age_ms > class->oldest_wait_ms)
            class->oldest_wait_ms = info->waiters[i].age_ms;
    }
    return true;
}

static snk_labels of_class(const struct class *class)
{
    return (snk_labels){ .name = "lock", .value = class->label };
}

static void write_survey(snk_exposition *out, const struct survey *survey)
{
    snk_exposition_family(out, "sneck_store_held", "gauge", "Locks of the store that are held now, by anybody.");
    for (size_t i = 0; i < survey->count; i++)
        snk_exposition_count(out, of_class(&survey->classes[i]), survey->classes[i].held);
    snk_exposition_family(out, "sneck_store_waiting", "gauge", "Claims that wait in the store's queues.");
    for (size_t i = 0; i < survey->count; i++)
        snk_exposition_count(out, of_class(&survey->classes[i]), survey->classes[i].waiting);
    snk_exposition_family(out, "sneck_store_oldest_hold_seconds", "gauge",
                          "Age of the oldest hold; 0 when none is held.");
    for (size_t i = 0; i < survey->count; i++)
        snk_exposition_value(out, of_class(&survey->classes[i]), (double)survey->classes[i].oldest_hold_ms / 1e3);
    snk_exposition_family(out, "sneck_store_oldest_wait_seconds", "gauge",
                          "Age of the oldest wait; 0 when nobody waits.");
    for (size_t i = 0; i < survey->count; i++)
        snk_exposition_value(out, of_class(&survey->classes[i]), (double)survey->classes[i].oldest_wait_ms / 1e3);
}

/* ---- The page ---- */

struct exporter {
    sneck_client *client; /* NULL: the store could not be reached */
    const char *pattern;
    sneck_error error; /* of the last listing */
};

static void make_page(struct exporter *exporter, snk_page_text *page)
{
    snk_exposition out;
    struct survey survey = { .count = 1, .classes = { { .label = "other" } } };
    sneck_error ignored;
    int64_t began_ns = snk_now_ns();
    sneck_status status = SNECK_UNAVAILABLE;
    if (exporter->client != NULL) {
        /* The probe of the connection is one of the checks. */
        if (sneck_check(exporter->client, &ignored) != SNECK_OK)
            ignored.message[0] = '\0';
        status = sneck_list(exporter->client, exporter->pattern, add_lock, &survey, &exporter->error);
    }
    snk_exposition_begin(&out, snk_page_text_add, page);
    write_survey(&out, &survey);
    snk_exposition_family(&out, "sneck_store_up", "gauge", "1 when the store could be listed for this page.");
    snk_exposition_count(&out, (snk_labels){ .name = NULL }, status == SNECK_OK);
    snk_exposition_family(&out, "sneck_store_list_seconds", "gauge", "How long it took to list the store.");
    snk_exposition_value(&out, (snk_labels){ .name = NULL }, (double)(snk_now_ns() - began_ns) / 1e9);
    snk_exposition_end(&out);
    if (exporter->client != NULL)
        (void)sneck_metrics_write(exporter->client, snk_page_text_add, page);
}

static bool serve_page(void *context, const char *path, snk_page_text *page)
{
    static const char greeting[] = "ok\n";
    bool is_metrics = strcmp(path, "/metrics") == 0;
    if (is_metrics)
        make_page(context, page);
    else if (strcmp(path, "/healthz") == 0)
        snk_page_text_add(page, greeting, sizeof greeting - 1);
    return page->length > 0;
}

/* ---- Where it goes ---- */

static int listen_until_signal(const snk_cli *cli, struct exporter *exporter, const char *address, snk_signals *signals)
{
    char problem[160];
    int number = 0;
    snk_http *http = snk_http_open(address, serve_page, exporter, problem, sizeof problem);
    if (http == NULL) {
        snk_complain(cli, "%s", problem);
        return SNK_EXIT_USAGE;
    }
    snk_say(cli, "metrics at http://%s/metrics", snk_http_where(http));
    while (!snk_signal_ends(number)) {
        struct pollfd fd = { .fd = signals->fd, .events = POLLIN };
        (void)poll(&fd, 1, -1);
        while ((number = snk_signals_next(signals)) != 0 && !snk_signal_ends(number))
            ;
    }
    snk_http_close(http);
    return SNK_EXIT_OK;
}

/* Whoever reads the file meanwhile sees the old one or the new one, never half of it. */
static bool write_file(const char *path, const snk_page_text *page)
{
    char temporary[4096];
    int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int fd = length > 0 && (size_t)length < sizeof temporary ? mkstemp(temporary) : -1;
    if (fd < 0)
        return false;
    mode_t mask = umask(0);
    (void)umask(mask);
    FILE *file = fdopen(fd, "w");
    bool written = file != NULL && fwrite(page->data, 1, page->length, file) == page->length && fflush(file) == 0 &&
                   fchmod(fd, 0666 & ~mask) == 0;
    if (file == NULL)
        (void)close(fd);
    else
        written = fclose(file) == 0 && written;
    if (written && rename(temporary, path) == 0)
        return true;
    int cause = errno;
    (void)unlink(temporary);
    errno = cause;
    return false;
}

static int print_once(const snk_cli *cli, struct exporter *exporter, const char *path)
{
    snk_page_text page = { .data = NULL };
    int code = SNK_EXIT_OK;
    make_page(exporter, &page);
    if (page.out_of_memory) {
        snk_complain(cli, "out of memory");
        code = SNK_EXIT_INTERNAL;
    } else if (path == NULL) {
        (void)fwrite(page.data, 1, page.length, stdout);
    } else if (!write_file(path, &page)) {
        snk_complain(cli, "%s: %s", path, strerror(errno));
        code = SNK_EXIT_INTERNAL;
    }
    snk_page_text_deinit(&page);
    if (code == SNK_EXIT_OK && exporter->error.status != SNECK_OK) {
        snk_report(cli, &exporter->error);
        code = snk_exit_of(exporter->error.status);
    }
    return code;
}

static int export(const snk_cli *cli, const struct options *options, const char *pattern, snk_signals *signals)
{
    sneck_client_options client_options = SNECK_CLIENT_OPTIONS_INIT;
    struct exporter exporter = { .pattern = pattern };
    client_options.watchdog_ms = SNECK_NEVER; /* each page makes its own round */
    int code = snk_cli_open_store(cli, &client_options, &exporter.client);
    if (code == SNK_EXIT_UNAVAILABLE && options->listen == NULL)
        (void)print_once(cli, &exporter, options->textfile); /* so that the file of yesterday does not say it is up */
    if (code != SNK_EXIT_OK)
        return code;
    code = options->listen != NULL ? listen_until_signal(cli, &exporter, options->listen, signals)
                                   : print_once(cli, &exporter, options->textfile);
    sneck_close(exporter.client);
    return code;
}

int snk_cmd_metrics(const snk_cli *given, int argc, char **argv)
{
    struct options options = { .listen = NULL };
    snk_arguments arguments;
    snk_signals signals;
    int code = snk_options_parse(&snk_usage_metrics, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count > 1)
        return snk_operands_wrong(&snk_usage_metrics, &arguments);
    if (options.listen != NULL && options.textfile != NULL) {
        snk_complain(&arguments.cli, "--listen and --textfile: give one of them");
        return SNK_EXIT_USAGE;
    }
    if (!snk_signals_open(&signals)) {
        snk_complain(&arguments.cli, "signalfd: %s", strerror(errno));
        return SNK_EXIT_INTERNAL;
    }
    code = export(&arguments.cli, &options, arguments.operands[0], &signals);
    snk_signals_close(&signals);
    return code;
}
