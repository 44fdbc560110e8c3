#include "waitline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "escape.h"
#include "narrate.h"
#include "output.h"

#define LINE_SIZE 1536
#define FIRST_LOOK_NS (100 * SNK_NS_PER_MS) /* most waits are shorter than that, and nobody wants to read of them */
#define LOOK_NS SNK_NS_PER_S
#define COLUMNS_DEFAULT 80

static bool is_dumb_terminal(void)
{
    const char *kind = getenv("TERM");
    return kind == NULL || strcmp(kind, "dumb") == 0;
}

void snk_waitline_init(snk_waitline *line, const snk_cli *cli, sneck_client *client, int64_t give_up_at_ns)
{
    bool on_terminal = !cli->json && isatty(STDERR_FILENO) == 1 && !is_dumb_terminal();
    bool wanted = !cli->quiet && (on_terminal || cli->json || cli->verbose);
    int64_t now_ns = snk_now_ns();
    *line = (snk_waitline){
        .cli = cli,
        .client = client,
        .began_at_ns = now_ns,
        .give_up_at_ns = give_up_at_ns,
        .next_at_ns = wanted ? snk_time_add(now_ns, FIRST_LOOK_NS) : SNK_NEVER_NS,
        .on_terminal = on_terminal,
    };
}

const char *snk_waitline_holder(char text[SNK_HOLDER_TEXT_SIZE], const sneck_party *holder)
{
    char age[SNK_TIME_TEXT_SIZE];
    bool has_why = holder->why != NULL && holder->why[0] != '\0';
    snprintf(text, SNK_HOLDER_TEXT_SIZE, "%.64s:%" PRId64 "%s%.200s%s for %s",
             holder->host != NULL ? holder->host : "?", holder->pid, has_why ? " (\"" : "", has_why ? holder->why : "",
             has_why ? "\")" : "", snk_format_duration(age, holder->age_ms));
    return text;
}

/* Our place among those who wait, from 1; 0 when we are not seen there. */
static size_t place_of_us(const sneck_info *info)
{
    char host[SNK_HOST_LENGTH_MAX + 1];
    if (gethostname(host, sizeof host) != 0)
        return 0;
    host[sizeof host - 1] = '\0';
    for (size_t i = 0; i < info->waiter_count; i++) {
        const sneck_party *waiter = &info->waiters[i];
        if (waiter->pid == (int64_t)getpid() && waiter->host != NULL && strcmp(waiter->host, host) == 0)
            return i + 1;
    }
    return 0;
}

static int64_t waited_ms(const snk_waitline *line)
{
    return (snk_now_ns() - line->began_at_ns) / SNK_NS_PER_MS;
}

/* "waiting for NAME, held by HOST:PID for 3m12s; 2 of 5 in the queue; waited 48s of 5m00s"; `info` may be NULL. */
static void describe(const snk_waitline *line, const char *name, const sneck_info *info, char text[LINE_SIZE])
{
    char raw[LINE_SIZE];
    char holder[SNK_HOLDER_TEXT_SIZE] = "";
    char queue[64] = "";
    char waited[SNK_TIME_TEXT_SIZE];
    char limit[SNK_TIME_TEXT_SIZE] = "";
    size_t place = info != NULL ? place_of_us(info) : 0;
    if (info != NULL && info->held)
        snk_waitline_holder(holder, &info->holder);
    if (place != 0)
        snprintf(queue, sizeof queue, "; %zu of %zu in the queue", place, info->waiter_count);
    if (line->give_up_at_ns != SNK_NEVER_NS)
        snk_format_duration(limit, (line->give_up_at_ns - line->began_at_ns) / SNK_NS_PER_MS);
    snprintf(raw, sizeof raw, "waiting for %.*s%s%s%s; waited %s%s%s", SNK_NAME_LENGTH_MAX, name,
             holder[0] != '\0' ? ", held by " : "", holder, queue, snk_format_duration(waited, waited_ms(line)),
             limit[0] != '\0' ? " of " : "", limit);
    snk_escape(text, LINE_SIZE, raw);
}

/* Cuts a text after so many characters of UTF-8. */
static void cut(char *text, size_t columns)
{
    while (*text != '\0' && columns > 0) {
        uint32_t character = 0;
        size_t length = snk_utf8_read(text, &character);
        text += length != 0 ? length : 1;
        columns--;
    }
    *text = '\0';
}

static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : COLUMNS_DEFAULT;
}

static void show_on_terminal(snk_waitline *line, char *text)
{
    cut(text, terminal_columns() - 1);
    fprintf(stderr, "\r%s\033[K", text);
    fflush(stderr);
    line->shown = true;
}

static void tell_event(snk_waitline *line, const char *name, const sneck_info *info)
{
    uint64_t token = info->held ? info->token : 0;
    size_t place = place_of_us(info);
    if (line->shown && token == line->last_token && place == line->last_place)
        return;
    line->shown = true;
    line->last_token = token;
    line->last_place = place;
    snk_json json = snk_narrate_begin("waiting");
    snk_json_text(&json, "lock", name);
    snk_json_int(&json, "waited_ms", waited_ms(line));
    if (info->held) {
        snk_json_open(&json, "holder", '{');
        snk_json_text(&json, "host", info->holder.host);
        snk_json_int(&json, "pid", info->holder.pid);
        snk_json_text(&json, "why", info->holder.why);
        snk_json_int(&json, "age_ms", info->holder.age_ms);
        snk_json_uint(&json, "token", info->token);
        snk_json_close(&json, '}');
    }
    if (place != 0)
        snk_json_uint(&json, "place", place);
    snk_json_uint(&json, "waiters", info->waiter_count);
    snk_narrate_end(&json);
}

static void show(snk_waitline *line, const char *name, const sneck_info *info)
{
    char text[LINE_SIZE];
    if (line->cli->json) {
        if (info != NULL)
            tell_event(line, name, info);
        return;
    }
    describe(line, name, info, text);
    if (line->on_terminal)
        show_on_terminal(line, text);
    else
        fprintf(stderr, "sneck: %s\n", text);
}

void snk_waitline_step(snk_waitline *line, const char *name)
{
    int64_t now_ns = snk_now_ns();
    if (now_ns < line->next_at_ns)
        return;
    sneck_info *info = NULL;
    if (sneck_inspect(line->client, name, &info, NULL) != SNECK_OK)
        info = NULL; /* the wait goes on, and says itself when it cannot */
    show(line, name, info);
    sneck_info_free(info);
    bool again = line->on_terminal || line->cli->json;
    line->next_at_ns = again ? snk_time_add(now_ns, LOOK_NS) : SNK_NEVER_NS;
}

void snk_waitline_clear(snk_waitline *line)
{
    if (line->on_terminal && line->shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    line->shown = false;
}
