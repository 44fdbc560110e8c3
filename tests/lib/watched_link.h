/* What the watchdog finds out about the connections of a store; the same for each that has some. */
#ifndef SNK_TEST_WATCHED_LINK_H
#define SNK_TEST_WATCHED_LINK_H

#include "proxy.h"
#include "sneck.h"

/*
 * The connection of a client at `url`, which leads through the proxy, carries nothing any more though it stays open: it
 * is found, and made anew, with both events; the lock stays held. Left to itself it would be noticed by the next
 * renewal, so the URL should have a long timeout=.
 */
void test_half_open_is_found(const char *url, fault_proxy *proxy);

/* The client finds that it cannot reach its store. */
void test_expect_away(sneck_client *client);

/* The server goes away, and comes back: both are told. */
void test_away_is_found(const char *url, void (*crash)(void *context), void (*restart)(void *context), void *context);

#endif
