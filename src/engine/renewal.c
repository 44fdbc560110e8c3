#include "engine/renewal.h"

#include "base/clock.h"

void snk_renewal_begin(snk_renewal *renewal, int64_t interval_ns, int64_t sent_at_ns)
{
    renewal->next_at_ns = snk_time_add(sent_at_ns, interval_ns);
    renewal->renewed_at_ns = 0;
    renewal->confirmed_at_ns = sent_at_ns;
    renewal->failures = 0;
    renewal->is_warned = false;
    renewal->is_offer = false;
}

void snk_renewal_begin_offer(snk_renewal *renewal, int64_t interval_ns, int64_t first_at_ns)
{
    snk_renewal_begin(renewal, interval_ns, first_at_ns);
    renewal->next_at_ns = first_at_ns;
    renewal->is_offer = true;
}

bool snk_renewal_is_due(const snk_renewal *renewal, int64_t now_ns)
{
    return renewal->next_at_ns <= now_ns;
}

void snk_renewal_sent(snk_renewal *renewal)
{
    renewal->next_at_ns = SNK_NEVER_NS;
}

bool snk_renewal_is_in_flight(const snk_renewal *renewal, int64_t interval_ns)
{
    return renewal->next_at_ns == SNK_NEVER_NS && (interval_ns != SNK_NEVER_NS || renewal->is_offer);
}

void snk_renewal_succeeded(snk_renewal *renewal, int64_t interval_ns, int64_t sent_at_ns, int64_t now_ns)
{
    renewal->next_at_ns = snk_time_add(sent_at_ns, interval_ns);
    renewal->renewed_at_ns = now_ns;
    renewal->confirmed_at_ns = sent_at_ns;
    renewal->failures = 0;
    renewal->is_warned = false;
    renewal->is_offer = false;
}

void snk_renewal_failed(snk_renewal *renewal, int64_t interval_ns, int64_t now_ns)
{
    renewal->failures++;
    if (interval_ns == SNK_NEVER_NS && !renewal->is_offer)
        renewal->next_at_ns = SNK_NEVER_NS;
    else
        renewal->next_at_ns = snk_time_add(now_ns, snk_backoff_ns(renewal->failures, interval_ns / 4));
}

int64_t snk_backoff_ns(uint32_t failures, int64_t longest_ns)
{
    int64_t pause_ns = SNK_BACKOFF_NS_MIN;
    for (uint32_t i = 1; i < failures && pause_ns < SNK_BACKOFF_NS_MAX; i++)
        pause_ns *= 2;
    if (pause_ns > SNK_BACKOFF_NS_MAX)
        pause_ns = SNK_BACKOFF_NS_MAX;
    return pause_ns < longest_ns ? pause_ns : longest_ns;
}
