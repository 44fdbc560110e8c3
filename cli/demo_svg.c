#include "demo_svg.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"

#define WIDTH 960
#define HEAD_HEIGHT 84
#define PANEL_HEIGHT 112
#define FOOT_HEIGHT 70
#define HEIGHT (HEAD_HEIGHT + SNK_DEMO_ROUNDS * PANEL_HEIGHT + FOOT_HEIGHT)
#define LANES_X 262
#define LANES_WIDTH 508
#define LANE_HEIGHT 10
#define LANES_HEIGHT (SNK_DEMO_SELLERS * LANE_HEIGHT)
#define RESULT_X 790

/* Light and dark by the reader's own setting; the colours have 4.5:1 against their ground in both. */
static const char STYLE[] =
    "<style>\n"
    "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}\n"
    ".ground{fill:#fff;stroke:#d1d9e0}.lane{fill:#f6f8fa}.grid{stroke:#d1d9e0;fill:none}.rule{stroke:#d1d9e0}\n"
    ".head{font-size:20px;font-weight:600}.name{font-size:15px;font-weight:600}.big{font-size:26px;font-weight:600}\n"
    ".note,.axis{font-size:12.5px;fill:#59636e}.mark{font-size:13px;font-weight:600}\n"
    ".sale{stroke:#1a7f37;stroke-width:6;fill:none}.twice{stroke:#d1242f;stroke-width:6;fill:none}\n"
    ".bar{stroke:#d1242f;stroke-width:2;fill:none}.frozen{stroke:#59636e;stroke-width:2;stroke-dasharray:3 "
    "3;fill:none}\n"
    ".late{stroke:#9a6700;stroke-width:2.2;fill:none}.good{fill:#1a7f37}.bad{fill:#d1242f}.warn{fill:#9a6700}\n"
    "@media(prefers-color-scheme:dark){\n"
    "text{fill:#f0f6fc}.ground{fill:#0d1117;stroke:#3d444d}.lane{fill:#151b23}.grid,.rule{stroke:#3d444d}\n"
    ".note,.axis{fill:#9198a1}.sale{stroke:#3fb950}.twice,.bar{stroke:#f85149}.frozen{stroke:#9198a1}\n"
    ".late{stroke:#d29922}.good{fill:#3fb950}.bad{fill:#f85149}.warn{fill:#d29922}}\n"
    "</style>\n";

static const char *const NOTES[SNK_DEMO_ROUNDS][2] = {
    { "Two read the same number,", "both sell the same item." },
    { "One at a time: read, think and", "write happen as one." },
    { "The holder sleeps past its lease,", "wakes, and writes what it had read." },
    { "The stock has seen a higher token", "and refuses the late write." },
};

struct picture {
    FILE *file;
    double x_per_ns;
    double seconds; /* the longest round */
};

static double x_of(const struct picture *picture, const snk_demo_board *board, int64_t time_ns)
{
    return LANES_X + (double)(time_ns - board->begun_ns) * picture->x_per_ns;
}

static int sale_count(const snk_demo_board *board)
{
    int count = atomic_load(&board->sale_count);
    return count < SNK_DEMO_SALES_MAX ? count : SNK_DEMO_SALES_MAX;
}

/* What a path can be about: each is drawn in one go, which keeps the file small. */
enum stroke {
    STROKE_SALE,
    STROKE_TWICE,
    STROKE_BAR,
    STROKE_FROZEN,
    STROKE_LATE
};
static const char *const STROKE_CLASSES[] = { "sale", "twice", "bar", "frozen", "late" };

static void put_sale(const struct picture *picture, const snk_demo_board *board, const snk_demo_sale *sale,
                     enum stroke stroke, int top)
{
    int64_t end_ns = sale->frozen_ns != 0 ? sale->frozen_ns : sale->written_ns;
    double from = x_of(picture, board, sale->read_ns);
    double to = x_of(picture, board, end_ns);
    double written = x_of(picture, board, sale->written_ns);
    double y = top + sale->seller * LANE_HEIGHT + LANE_HEIGHT / 2.0;
    switch (stroke) {
    case STROKE_SALE:
    case STROKE_TWICE:
        if (!sale->refused && sale->again == (stroke == STROKE_TWICE))
            fprintf(picture->file, "M%.1f %.1fh%.1f", from, y, to - from > 1.5 ? to - from : 1.5);
        break;
    case STROKE_BAR:
        if (sale->again)
            fprintf(picture->file, "M%.1f %.1fv10", written, y - 5);
        break;
    case STROKE_FROZEN:
        if (sale->frozen_ns != 0)
            fprintf(picture->file, "M%.1f %.1fH%.1f", sale->refused ? from : to, y, written);
        break;
    case STROKE_LATE:
        if (sale->refused)
            fprintf(picture->file, "M%.1f %.1fl9 9m0 -9l-9 9", written - 4.5, y - 4.5);
        break;
    }
}

static void put_strokes(const struct picture *picture, const snk_demo_board *board, int top)
{
    for (int stroke = STROKE_SALE; stroke <= STROKE_LATE; stroke++) {
        fprintf(picture->file, "<path class=\"%s\" d=\"M0 0", STROKE_CLASSES[stroke]);
        for (int i = 0; i < sale_count(board); i++) {
            if (atomic_load(&board->sales[i].done))
                put_sale(picture, board, &board->sales[i], (enum stroke)stroke, top);
        }
        fputs("\"/>\n", picture->file);
    }
}

static void put_grid(const struct picture *picture, int top)
{
    for (int i = 0; i < SNK_DEMO_SELLERS; i += 2)
        fprintf(picture->file, "<rect class=\"lane\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LANES_X,
                top + i * LANE_HEIGHT, LANES_WIDTH, LANE_HEIGHT);
    fprintf(picture->file, "<path class=\"grid\" stroke-width=\".7\" d=\"");
    for (int second = 0; second <= (int)picture->seconds; second++)
        fprintf(picture->file, "M%.1f %dv%d", LANES_X + second * 1e9 * picture->x_per_ns, top, LANES_HEIGHT);
    fputs("\"/>\n", picture->file);
}

static void put_result(const struct picture *picture, const snk_demo_score *score, int top)
{
    FILE *file = picture->file;
    fprintf(file, "<text x=\"%d\" y=\"%d\"><tspan class=\"big\">%d</tspan> <tspan class=\"note\">sold</tspan></text>\n",
            RESULT_X, top + 30, score->sold);
    fprintf(file, "<text class=\"mark %s\" x=\"%d\" y=\"%d\">", score->oversold > 0 ? "bad" : "good", RESULT_X,
            top + 52);
    if (score->oversold > 0)
        fprintf(file, "✗ %d too many</text>\n", score->oversold);
    else
        fprintf(file, "✓ none too many</text>\n");
    if (score->lost > 0)
        fprintf(file, "<text class=\"note\" x=\"%d\" y=\"%d\">%d lease%s lost%s</text>\n", RESULT_X, top + 71,
                score->lost, score->lost == 1 ? "" : "s", score->refused > 0 ? "," : "");
    if (score->refused > 0)
        fprintf(file, "<text class=\"mark warn\" x=\"%d\" y=\"%d\">%d late write%s refused</text>\n", RESULT_X,
                top + 89, score->refused, score->refused == 1 ? "" : "s");
}

static void put_panel(const struct picture *picture, int number, const snk_demo_rule *rule, const snk_demo_board *board,
                      const snk_demo_score *score)
{
    FILE *file = picture->file;
    int top = HEAD_HEIGHT + number * PANEL_HEIGHT;
    fprintf(file, "<text class=\"name\" x=\"28\" y=\"%d\">%d&#160; %s</text>\n", top + 26, number + 1, rule->title);
    for (int i = 0; i < 2; i++)
        fprintf(file, "<text class=\"note\" x=\"28\" y=\"%d\">%s</text>\n", top + 48 + 18 * i, NOTES[number][i]);
    put_grid(picture, top);
    put_strokes(picture, board, top);
    put_result(picture, score, top);
    if (number + 1 < SNK_DEMO_ROUNDS)
        fprintf(file, "<path class=\"rule\" d=\"M28 %dH932\" stroke-width=\".7\"/>\n", top + PANEL_HEIGHT - 16);
}

static void put_head(const struct picture *picture, const snk_demo_rule rules[], const snk_demo_score scores[])
{
    FILE *file = picture->file;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
            "aria-labelledby=\"t d\">\n<title id=\"t\">sneck demo</title>\n<desc id=\"d\">",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    for (int i = 0; i < SNK_DEMO_ROUNDS; i++)
        fprintf(file, "Round %d, %s: %d sold, %d oversold, %d leases lost, %d writes refused. ", i + 1, rules[i].title,
                scores[i].sold, scores[i].oversold, scores[i].lost, scores[i].refused);
    fprintf(file, "</desc>\n%s<rect class=\"ground\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"10\"/>\n", STYLE,
            WIDTH - 1, HEIGHT - 1);
    fprintf(
        file,
        "<text class=\"head\" x=\"28\" y=\"38\">%d processes sell %d items: read the stock, think, write one "
        "less</text>\n<text class=\"note\" x=\"28\" y=\"60\">Each lane is a process, each block one sale. One run of "
        "<tspan font-family=\"ui-monospace,monospace\">sneck demo</tspan>, drawn as it happened.</text>\n",
        SNK_DEMO_SELLERS, SNK_DEMO_ITEMS);
}

static void put_foot(const struct picture *picture)
{
    FILE *file = picture->file;
    int y = HEAD_HEIGHT + SNK_DEMO_ROUNDS * PANEL_HEIGHT;
    for (int second = 0; second <= (int)picture->seconds; second++)
        fprintf(file, "<text class=\"axis\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%d s</text>\n",
                LANES_X + second * 1e9 * picture->x_per_ns, y - 8, second);
    y += 36;
    fprintf(file, "<path class=\"sale\" d=\"M28 %dh16\"/><text class=\"note\" x=\"52\" y=\"%d\">a sale</text>\n", y - 4,
            y);
    fprintf(file,
            "<path class=\"twice\" d=\"M116 %dh16\"/><path class=\"bar\" d=\"M132 %dv10\"/>"
            "<text class=\"note\" x=\"141\" y=\"%d\">an item sold again</text>\n",
            y - 4, y - 9, y);
    fprintf(file,
            "<path class=\"frozen\" d=\"M282 %dh22\"/>"
            "<text class=\"note\" x=\"312\" y=\"%d\">frozen (SIGSTOP) with the lock in hand</text>\n",
            y - 4, y);
    fprintf(file,
            "<path class=\"late\" d=\"M588 %dl9 9m0 -9l-9 9\"/>"
            "<text class=\"note\" x=\"604\" y=\"%d\">late write, refused by the stock</text>\n",
            y - 8, y);
}

bool snk_demo_svg_write(const char *path, const snk_demo_rule rules[], const snk_demo_board boards[],
                        const snk_demo_score scores[])
{
    int64_t longest_ns = SNK_NS_PER_MS;
    for (int i = 0; i < SNK_DEMO_ROUNDS; i++) {
        for (int j = 0; j < sale_count(&boards[i]); j++) {
            int64_t end_ns = boards[i].sales[j].written_ns - boards[i].begun_ns;
            longest_ns = end_ns > longest_ns ? end_ns : longest_ns;
        }
    }
    struct picture picture = { .file = fopen(path, "we"),
                               .x_per_ns = LANES_WIDTH / (double)longest_ns,
                               .seconds = (double)longest_ns / 1e9 };
    if (picture.file == NULL)
        return false;
    put_head(&picture, rules, scores);
    for (int i = 0; i < SNK_DEMO_ROUNDS; i++)
        put_panel(&picture, i, &rules[i], &boards[i], &scores[i]);
    put_foot(&picture);
    fputs("</svg>\n", picture.file);
    bool good = ferror(picture.file) == 0;
    return fclose(picture.file) == 0 && good;
}
