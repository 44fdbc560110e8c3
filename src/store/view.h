/*
 * What a store says about one lock, gathered piece by piece: sneck_info with the memory behind it. A store fills a view
 * with snk_view_* and never frees texts; the client turns it into a sneck_info.
 */
#ifndef SNK_STORE_VIEW_H
#define SNK_STORE_VIEW_H

#include "sneck.h"
#include "store/store.h"

struct snk_view {
    sneck_info info;           /* what users see; first, so that a sneck_info * is a snk_view * */
    sneck_party *holders;      /* owned; info.holders */
    sneck_party *waiters;      /* owned; info.waiters */
    sneck_incident *incidents; /* owned; info.incidents */
    sneck_node *nodes;         /* owned; info.nodes */
    struct snk_text *texts;    /* owned; chain of copies */
    bool out_of_memory;        /* some snk_view_* call failed; the view is incomplete */
};

/* A new empty view, or NULL when out of memory. */
snk_view *snk_view_new(void);

/* Empties a view for the next lock. */
void snk_view_reset(snk_view *view);

/* NULL is a no-op. */
void snk_view_free(snk_view *view);

/* Each copies the texts it is given. */
void snk_view_name(snk_view *view, const char *name);
/* Of several holders, the first one is sneck_info.holder. */
void snk_view_hold(snk_view *view, const sneck_party *holder, uint64_t token, bool fair);
void snk_view_waiter(snk_view *view, const sneck_party *waiter);
void snk_view_incident(snk_view *view, const sneck_incident *incident);
void snk_view_node(snk_view *view, const sneck_node *node);

#endif
