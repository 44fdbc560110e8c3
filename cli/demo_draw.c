#include "demo_draw.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_DEFAULT 80
#define LABEL_WIDTH 29
#define REMARK_WIDTH 34
#define BAR_WIDTH_MIN 16
#define BAR_WIDTH_MAX 64

static int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return COLUMNS_DEFAULT;
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && value[0] != '\0';
}

snk_demo_screen snk_demo_screen_look(void)
{
    const char *term = getenv("TERM");
    bool capable = isatty(STDOUT_FILENO) && term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0;
    int width = (capable ? terminal_columns() : COLUMNS_DEFAULT) - LABEL_WIDTH - REMARK_WIDTH - 4;
    if (width < BAR_WIDTH_MIN)
        width = BAR_WIDTH_MIN;
    if (width > BAR_WIDTH_MAX)
        width = BAR_WIDTH_MAX;
    setlocale(LC_CTYPE, "");
    return (snk_demo_screen){
        .live = capable,
        .color = capable && !is_set("NO_COLOR"),
        .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
        .bar_width = width,
    };
}

/* Colours of the terminal's own palette, which its user chose to be readable. */
static const char *const COLOR_NONE = "\033[0m";
static const char *const COLOR_BOLD = "\033[1m";
static const char *const COLOR_DIM = "\033[2m";
static const char *const COLOR_RED = "\033[31m";
static const char *const COLOR_GREEN = "\033[32m";
static const char *const COLOR_YELLOW = "\033[33m";

static void put_colored(const snk_demo_screen *screen, const char *color, const char *text)
{
    if (screen->color)
        printf("%s%s%s", color, text, COLOR_NONE);
    else
        fputs(text, stdout);
}

static void put_cells(const snk_demo_screen *screen, const char *color, const char *cell, int count)
{
    if (count <= 0)
        return;
    if (screen->color)
        fputs(color, stdout);
    for (int i = 0; i < count; i++)
        fputs(cell, stdout);
    if (screen->color)
        fputs(COLOR_NONE, stdout);
}

void snk_demo_draw_title(const snk_demo_screen *screen)
{
    char text[128];
    snprintf(text, sizeof text, "%d processes sell %d items: read the stock, think, write one less.", SNK_DEMO_SELLERS,
             SNK_DEMO_ITEMS);
    put_colored(screen, COLOR_BOLD, text);
    fputs("\n\n", stdout);
    fflush(stdout);
}

/* The full stock takes two thirds of the bar, so that there is room to see what was sold beyond it. */
static void draw_cells(const snk_demo_screen *screen, const snk_demo_score *score)
{
    int full = screen->bar_width * 2 / 3;
    int good = (score->sold - score->oversold) * full / SNK_DEMO_ITEMS;
    int bad = (score->oversold * full + SNK_DEMO_ITEMS - 1) / SNK_DEMO_ITEMS;
    if (bad > screen->bar_width - good)
        bad = screen->bar_width - good;
    put_cells(screen, COLOR_GREEN, screen->utf8 ? "█" : "#", good);
    put_cells(screen, COLOR_RED, screen->utf8 ? "▒" : "!", bad);
    put_cells(screen, COLOR_DIM, screen->utf8 ? "·" : ".", full - good - bad);
    printf("%*s", screen->bar_width - (good + bad > full ? good + bad : full), "");
}

static void draw_remark(const snk_demo_screen *screen, const snk_demo_score *score, int frozen_seller)
{
    char text[64];
    printf("%4d sold", score->sold);
    if (frozen_seller >= 0) {
        snprintf(text, sizeof text, ", seller %d frozen", frozen_seller + 1);
        put_colored(screen, COLOR_YELLOW, text);
    } else if (score->oversold > 0) {
        snprintf(text, sizeof text, ", %d too many", score->oversold);
        put_colored(screen, COLOR_RED, text);
    } else if (score->refused > 0) {
        snprintf(text, sizeof text, ", %d late write%s refused", score->refused, score->refused == 1 ? "" : "s");
        put_colored(screen, COLOR_GREEN, text);
    }
}

static void draw_line(const snk_demo_screen *screen, int number, const snk_demo_rule *rule, const snk_demo_score *score,
                      int frozen_seller)
{
    printf(" %d %-*s", number, LABEL_WIDTH - 3, rule->title);
    draw_cells(screen, score);
    draw_remark(screen, score, frozen_seller);
}

void snk_demo_draw_bar(const snk_demo_screen *screen, int number, const snk_demo_rule *rule,
                       const snk_demo_score *score, int frozen_seller)
{
    if (!screen->live)
        return;
    fputs("\r", stdout);
    draw_line(screen, number, rule, score, frozen_seller);
    fputs("\033[K", stdout);
    fflush(stdout);
}

void snk_demo_draw_result(const snk_demo_screen *screen, int number, const snk_demo_rule *rule,
                          const snk_demo_score *score)
{
    snk_demo_draw_bar(screen, number, rule, score, -1);
    if (!screen->live)
        draw_line(screen, number, rule, score, -1);
    putchar('\n');
    fflush(stdout);
}

static void draw_row(const snk_demo_screen *screen, int number, const snk_demo_rule *rule, const snk_demo_score *score)
{
    char oversold[16];
    snprintf(oversold, sizeof oversold, "%10d", score->oversold);
    printf(" %d %-*s%5d", number, LABEL_WIDTH - 3, rule->title, score->sold);
    put_colored(screen, score->oversold > 0 ? COLOR_RED : COLOR_GREEN, oversold);
    printf("%13d%16d", score->lost, score->refused);
    if (score->errors > 0)
        printf("  (%d failed calls)", score->errors);
    if (score->sold - score->oversold < SNK_DEMO_ITEMS)
        printf("  (time ran out)");
    putchar('\n');
}

void snk_demo_draw_table(const snk_demo_screen *screen, const snk_demo_rule rules[], const snk_demo_score scores[],
                         size_t count)
{
    char head[128];
    snprintf(head, sizeof head, "%-*s%5s%10s%13s%16s", LABEL_WIDTH, "", "sold", "oversold", "lost leases",
             "refused writes");
    putchar('\n');
    put_colored(screen, COLOR_DIM, head);
    putchar('\n');
    for (size_t i = 0; i < count; i++)
        draw_row(screen, (int)i + 1, &rules[i], &scores[i]);
    putchar('\n');
    fflush(stdout);
}
