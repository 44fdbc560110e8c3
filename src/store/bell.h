/*
 * How a store that hears news on a thread of its own passes it on. A client that wants to be told is told, and wakes
 * whoever waits with that claim now (perhaps another thread than the one that first did). Without one, sleepers watch a
 * word for each claim themselves.
 */
#ifndef SNK_STORE_BELL_H
#define SNK_STORE_BELL_H

#include "store/store.h"

#define SNK_BELL_WORDS 64

typedef struct snk_bell {
    snk_news_fn news; /* NULL: nobody is told, and sleepers watch the words */
    void *news_context;
    _Atomic uint32_t words[SNK_BELL_WORDS]; /* a claim's word goes up when there may be news about it */
    _Atomic uint32_t any;                   /* goes up with each of them */
    _Atomic uint32_t any_seen;              /* what the last wait for any claim has reported */
} snk_bell;

/* To be had before a request leaves whose answer may be "queued"; then news before the answer is not slept over. */
uint64_t snk_bell_ticket(const snk_bell *bell, const snk_id *claim);

/* There may be news about a claim. `bell` is a snk_bell: the form is that of snk_waiting_tell. */
void snk_bell_ring(void *bell, const char *name, const snk_id *claim);
/* The same, with what the claim was granted; NULL: not known. */
void snk_bell_ring_grant(snk_bell *bell, const char *name, const snk_id *claim, const snk_grant *grant);

/* snk_store_ops.wait */
bool snk_bell_wait(snk_bell *bell, uint64_t ticket, _Atomic uint32_t *word, uint32_t expected, int64_t until_ns);

#endif
