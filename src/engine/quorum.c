#include "engine/quorum.h"

#include "base/bug.h"
#include "base/clock.h"

/* ---- Clocks ---- */

void snk_node_clock_init(snk_node_clock *clock)
{
    *clock = (snk_node_clock){ .counts_from_ns = SNK_NEVER_NS };
}

void snk_node_clock_heard(snk_node_clock *clock, int64_t time_us, int64_t sent_at_ns, int64_t now_ns)
{
    int64_t round_trip_ns = now_ns - sent_at_ns;
    clock->round_trip_ns += clock->known ? (round_trip_ns - clock->round_trip_ns) / 8 : round_trip_ns;
    clock->known = true;
    clock->time_us = time_us;
    clock->heard_at_ns = now_ns;
}

void snk_node_clock_started(snk_node_clock *clock, const snk_quorum *quorum, int64_t uptime_ns, int64_t after_ns,
                            int64_t now_ns)
{
    if (SNK_BUGGY(111))
        uptime_ns = SNK_NEVER_NS / 2;
    int64_t started_at_ns = now_ns - uptime_ns;
    /* With this, bug 119 of a node shows itself hardly ever: the two make up for each other. */
    if (started_at_ns < after_ns && !SNK_BUGGY(111) && !SNK_BUGGY(119))
        started_at_ns = after_ns;
    clock->counts_from_ns = started_at_ns + quorum->lease_max_ns + SNK_QUORUM_YOUNG_NS;
}

int64_t snk_node_clock_us(const snk_node_clock *clock, int64_t now_ns)
{
    return clock->time_us + (now_ns - clock->heard_at_ns) / SNK_NS_PER_US;
}

/* ---- Tokens ---- */

/*
 * The way to the slowest node and back, four times over, and more each time that was not enough; but never so far that
 * nodes could refuse it for that.
 */
static int64_t lead_us(const snk_quorum *quorum, const snk_node_clock clocks[], uint32_t passed)
{
    int64_t lead = SNK_QUORUM_LEAD_US;
    int64_t most = quorum->lease_max_ns / SNK_NS_PER_US / 8;
    for (uint32_t i = 0; i < quorum->nodes; i++)
        if (clocks[i].known && 4 * clocks[i].round_trip_ns / SNK_NS_PER_US > lead)
            lead = 4 * clocks[i].round_trip_ns / SNK_NS_PER_US;
    for (uint32_t i = 0; i < passed && lead < most; i++)
        lead *= 4;
    return lead < most ? lead : most;
}

/* How many nodes would vote for the token, as far as their clocks go. */
static uint32_t count_willing(const snk_quorum *quorum, const snk_node_clock clocks[], int64_t now_ns, int64_t token)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < quorum->nodes; i++) {
        int64_t shows_us = snk_node_clock_us(&clocks[i], now_ns);
        /* Of a node that never answered nothing is known that speaks against it. */
        count += !clocks[i].known || (shows_us < token && token <= shows_us + quorum->lease_max_ns / SNK_NS_PER_US / 2);
    }
    return count;
}

uint64_t snk_quorum_propose(const snk_quorum *quorum, const snk_node_clock clocks[], int64_t now_ns, uint64_t above,
                            uint32_t passed)
{
    int64_t lead = lead_us(quorum, clocks, passed);
    int64_t best = 0;
    uint32_t best_count = 0;
    for (uint32_t i = 0; i < 2 * quorum->nodes; i++) {
        /* Above what is taken where that is possible, else by the clocks alone. */
        const snk_node_clock *clock = &clocks[i / 2];
        if (!clock->known)
            continue;
        int64_t token = snk_node_clock_us(clock, now_ns) + lead;
        if (i % 2 == 0 && token <= (int64_t)above)
            token = (int64_t)above + 1;
        uint32_t count = count_willing(quorum, clocks, now_ns, token);
        /* A majority is enough: then the highest is the best. */
        if (count > snk_quorum_majority(quorum))
            count = snk_quorum_majority(quorum);
        if (count > best_count || (count == best_count && token > best)) {
            best = token;
            best_count = count;
        }
    }
    return (uint64_t)best;
}

/* ---- Tallies ---- */

typedef struct counts {
    uint32_t of[SNK_NODE_SILENT + 1];
} counts;

static counts count(const snk_quorum *quorum, const snk_node_says says[])
{
    counts result = { { 0 } };
    for (uint32_t i = 0; i < quorum->nodes; i++)
        result.of[says[i]]++;
    return result;
}

snk_quorum_says snk_quorum_renewal(const snk_quorum *quorum, const snk_node_says says[])
{
    counts n = count(quorum, says);
    uint32_t majority = snk_quorum_majority(quorum) - SNK_BUGGY(117);
    uint32_t blocking = snk_quorum_blocking(quorum);
    if (n.of[SNK_NODE_YES] >= majority)
        return SNK_QUORUM_YES;
    if (n.of[SNK_NODE_NO] >= blocking)
        return SNK_QUORUM_NO;
    uint32_t open = n.of[SNK_NODE_OPEN];
    if (n.of[SNK_NODE_YES] + open >= majority || n.of[SNK_NODE_NO] + open >= blocking)
        return SNK_QUORUM_OPEN;
    return n.of[SNK_NODE_SILENT] + open > 0 ? SNK_QUORUM_UNCERTAIN : SNK_QUORUM_FAILED;
}

snk_quorum_says snk_quorum_release(const snk_quorum *quorum, const snk_node_says says[])
{
    counts n = count(quorum, says);
    uint32_t majority = snk_quorum_majority(quorum);
    uint32_t blocking = snk_quorum_blocking(quorum);
    uint32_t answered = n.of[SNK_NODE_YES] + n.of[SNK_NODE_NO];
    uint32_t open = n.of[SNK_NODE_OPEN];
    if (n.of[SNK_NODE_NO] >= blocking)
        return SNK_QUORUM_NO;
    if (answered >= majority && n.of[SNK_NODE_NO] + open < blocking)
        return SNK_QUORUM_YES;
    if (n.of[SNK_NODE_YES] >= majority)
        return SNK_QUORUM_YES;
    if (open > 0 && answered + open >= majority)
        return SNK_QUORUM_OPEN;
    return n.of[SNK_NODE_SILENT] + open > 0 ? SNK_QUORUM_UNCERTAIN : SNK_QUORUM_FAILED;
}

bool snk_quorum_release_is_heard(snk_node_says says, bool refused)
{
    return says == SNK_NODE_YES || says == SNK_NODE_NO || (refused && SNK_BUGGY(123));
}

uint32_t snk_quorum_adopters(const snk_quorum *quorum, const snk_node_says says[])
{
    if (snk_quorum_renewal(quorum, says) != SNK_QUORUM_YES)
        return 0;
    uint32_t adopters = 0;
    for (uint32_t i = 0; i < quorum->nodes; i++)
        adopters |= (uint32_t)(says[i] == SNK_NODE_NO) << i;
    return adopters;
}
