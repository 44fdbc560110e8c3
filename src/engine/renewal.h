/* When to renew a hold: each interval, counted from when the last answered renewal left; after a failure soon again. */
#ifndef SNK_ENGINE_RENEWAL_H
#define SNK_ENGINE_RENEWAL_H

#include <stdbool.h>
#include <stdint.h>

/* The interval is what the hold's terms say, SNK_NEVER_NS: not renewed. It is given with each call, not kept twice. */
typedef struct snk_renewal {
    int64_t next_at_ns;      /* when the next one is due; SNK_NEVER_NS while one is in flight */
    int64_t renewed_at_ns;   /* when the last one was answered; 0: none yet */
    int64_t confirmed_at_ns; /* when the last request left whose answer showed that the claim holds */
    uint32_t failures;       /* in a row */
    bool is_offer;           /* the store keeps the lock only for the life of an offer until the first renewal */
    bool is_warned;          /* it was told that the hold is at risk, since the last success */
} snk_renewal;

/* A hold begins whose lease counts from `sent_at_ns`. */
void snk_renewal_begin(snk_renewal *renewal, int64_t interval_ns, int64_t sent_at_ns);

/*
 * A hold begins with what the store has only offered: renewed first at `first_at_ns`, soon, whatever the interval is,
 * though not at once, because most holds are over by then and need no renewal.
 */
void snk_renewal_begin_offer(snk_renewal *renewal, int64_t interval_ns, int64_t first_at_ns);

bool snk_renewal_is_due(const snk_renewal *renewal, int64_t now_ns);

/* A renewal leaves; none is due until it is answered. */
void snk_renewal_sent(snk_renewal *renewal);
/* It has left, and was not answered. */
bool snk_renewal_is_in_flight(const snk_renewal *renewal, int64_t interval_ns);

/* The one that left at `sent_at_ns` was answered: the lease was set. */
void snk_renewal_succeeded(snk_renewal *renewal, int64_t interval_ns, int64_t sent_at_ns, int64_t now_ns);

/*
 * It failed, or nobody knows: again after a pause that doubles from SNK_BACKOFF_NS_MIN to a quarter of the interval. A
 * hold that is not renewed is tried again only while it is an offer.
 */
void snk_renewal_failed(snk_renewal *renewal, int64_t interval_ns, int64_t now_ns);

/* The pause after the n-th failure in a row (n from 1), at most `longest_ns`. */
int64_t snk_backoff_ns(uint32_t failures, int64_t longest_ns);

#endif
