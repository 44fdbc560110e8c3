#include "demo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "demo_draw.h"
#include "demo_round.h"
#include "demo_shop.h"
#include "demo_svg.h"
#include "exit.h"
#include "json.h"
#include "output.h"

/* All rounds together end in time, so that the whole stays below 20 s. */
#define DEMO_NS (18 * SNK_NS_PER_S)
#define ROUND_NS (6500 * SNK_NS_PER_MS)

/* The rounds in which nothing may be sold twice. */
#define ROUND_LOCKED 1
#define ROUND_CHECKED 3

/* The short lease is for the audience; the other one is long enough that a slow machine does not lose it. */
static const snk_demo_rule RULES[SNK_DEMO_ROUNDS] = {
    { .title = "no lock" },
    { .title = "a lock", .locked = true, .lease_ms = 10000 },
    { .title = "a lock, its holder frozen", .locked = true, .freezes = true, .lease_ms = 400 },
    { .title = "frozen, token checked", .locked = true, .freezes = true, .checked = true, .lease_ms = 400 },
};

struct options {
    const char *svg;
};

static const snk_flag flags[] = {
    { 0, "svg", "FILE", "draw what happened as a picture", SNK_FLAG_TEXT, offsetof(struct options, svg), 0, 0, NULL },
    { 0 },
};

const snk_usage snk_usage_demo = {
    .name = "demo",
    .operands = "[--svg FILE]",
    .summary = "show in 20 seconds what locks, leases and tokens are for",
    .notes = "It uses a store of its own in a private folder; --store has no effect.\n"
             "Exit code 0: nothing was oversold where nothing may be (rounds 2 and 4); 1: something was.",
    .flags = flags,
};

/* What is drawn while a round is played. */
struct view {
    snk_demo_screen screen;
    int round;
    bool silent;
};

static void watch(void *context, const snk_demo_score *score, int frozen_seller)
{
    const struct view *view = context;
    if (!view->silent)
        snk_demo_draw_bar(&view->screen, view->round + 1, &RULES[view->round], score, frozen_seller);
}

/* SNK_EXIT_OK when all rounds were played. */
static int play(const snk_demo_shop *shop, struct view *view, snk_demo_score scores[SNK_DEMO_ROUNDS])
{
    int64_t end_ns = snk_now_ns() + DEMO_NS;
    for (view->round = 0; view->round < SNK_DEMO_ROUNDS; view->round++) {
        int round = view->round;
        int64_t now_ns = snk_now_ns();
        int64_t share_ns = (end_ns - now_ns) / (SNK_DEMO_ROUNDS - round) * 3 / 2;
        int64_t limit_ns = now_ns + (share_ns < ROUND_NS ? share_ns : ROUND_NS);
        if (limit_ns > end_ns)
            limit_ns = end_ns;
        snk_demo_ending ending = snk_demo_round_play(shop, &RULES[round], &shop->boards[round], limit_ns, watch, view);
        if (ending == SNK_DEMO_INTERRUPTED)
            return SNK_EXIT_SIGNAL + snk_demo_signal();
        if (ending == SNK_DEMO_FAILED)
            return SNK_EXIT_UNAVAILABLE;
        scores[round] = snk_demo_count(&shop->boards[round]);
        if (!view->silent)
            snk_demo_draw_result(&view->screen, round + 1, &RULES[round], &scores[round]);
    }
    return SNK_EXIT_OK;
}

static void print_json(const snk_demo_score scores[SNK_DEMO_ROUNDS])
{
    snk_json json = snk_json_on(stdout);
    snk_json_open(&json, NULL, '{');
    snk_json_int(&json, "items", SNK_DEMO_ITEMS);
    snk_json_int(&json, "sellers", SNK_DEMO_SELLERS);
    snk_json_open(&json, "rounds", '[');
    for (int i = 0; i < SNK_DEMO_ROUNDS; i++) {
        snk_json_open(&json, NULL, '{');
        snk_json_text(&json, "title", RULES[i].title);
        snk_json_int(&json, "sold", scores[i].sold);
        snk_json_int(&json, "oversold", scores[i].oversold);
        snk_json_int(&json, "lost_leases", scores[i].lost);
        snk_json_int(&json, "refused_writes", scores[i].refused);
        snk_json_int(&json, "failed_calls", scores[i].errors);
        snk_json_close(&json, '}');
    }
    snk_json_close(&json, ']');
    snk_json_close(&json, '}');
    snk_json_end(&json);
}

static void print_moral(const snk_demo_score scores[SNK_DEMO_ROUNDS])
{
    if (scores[ROUND_LOCKED].oversold > 0 || scores[ROUND_CHECKED].oversold > 0) {
        puts("Something was oversold where nothing may be: that is a bug of sneck. Please report it.");
        return;
    }
    puts("A lock keeps sellers apart while they run (2). No lease can stop one that sleeps past it and then writes\n"
         "what it had read (3). Only the stock itself can: it refuses a lower token than it has seen (4).");
}

static int show(const snk_cli *cli, const struct view *view, const snk_demo_shop *shop,
                const snk_demo_score scores[SNK_DEMO_ROUNDS], const char *svg)
{
    if (cli->json)
        print_json(scores);
    else
        snk_demo_draw_table(&view->screen, RULES, scores, SNK_DEMO_ROUNDS);
    if (!view->silent)
        print_moral(scores);
    if (svg != NULL && !snk_demo_svg_write(svg, RULES, shop->boards, scores)) {
        snk_complain(cli, "cannot write %s: %s", svg, strerror(errno));
        return SNK_EXIT_INTERNAL;
    }
    return scores[ROUND_LOCKED].oversold > 0 || scores[ROUND_CHECKED].oversold > 0 ? 1 : SNK_EXIT_OK;
}

int snk_cmd_demo(const snk_cli *given, int argc, char **argv)
{
    struct options options = { .svg = NULL };
    snk_arguments arguments;
    snk_demo_shop shop;
    snk_demo_score scores[SNK_DEMO_ROUNDS] = { { .sold = 0 } };
    int code = snk_options_parse(&snk_usage_demo, given, argc, argv, &options, &arguments);
    if (code != SNK_PARSED)
        return code;
    if (arguments.count != 0)
        return snk_operands_wrong(&snk_usage_demo, &arguments);
    struct view view = { .screen = snk_demo_screen_look(), .silent = arguments.cli.json || arguments.cli.quiet };
    snk_demo_catch_signals();
    if (!snk_demo_shop_open(&shop))
        return SNK_EXIT_INTERNAL;
    if (!view.silent)
        snk_demo_draw_title(&view.screen);
    code = play(&shop, &view, scores);
    if (code == SNK_EXIT_OK)
        code = show(&arguments.cli, &view, &shop, scores, options.svg);
    snk_demo_shop_close(&shop);
    return code;
}
