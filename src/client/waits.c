#include "client/waits.h"

#include <pthread.h>
#include <stdatomic.h>

#include "client/client.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static snk_list clients;                                  /* of snk_neighbour; under mutex */
static snk_list waits;                                    /* of snk_wait_record; under mutex */
static uint64_t alone_count;  /* of clients that share their store with nobody; under mutex */
static uint64_t wait_count;   /* waits so far; under mutex */
static _Atomic uint64_t asks; /* requests of threads so far, each of which may become a wait */

static void before_fork(void)
{
    (void)pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

static void forget_all(void)
{
    snk_list_init(&clients);
    snk_list_init(&waits);
}

/* The child has none of those threads, and must not use those clients. */
static void after_fork_in_child(void)
{
    forget_all();
    (void)pthread_mutex_unlock(&mutex);
}

static void set_up(void)
{
    forget_all();
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* ---- Clients ---- */

/* FNV-1a. The words may have a password in them, so they are not kept. */
static uint64_t digest(uint64_t so_far, const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        so_far = (so_far ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return so_far;
}

void snk_waits_join(snk_neighbour *neighbour, sneck_client *client, const char *words, const char *prefix)
{
    (void)pthread_once(&once, set_up);
    neighbour->client = client;
    (void)pthread_mutex_lock(&mutex);
    neighbour->place = words == NULL ? ++alone_count : digest(digest(UINT64_C(0xcbf29ce484222325), words), prefix);
    snk_list_append(&clients, &neighbour->link);
    (void)pthread_mutex_unlock(&mutex);
}

void snk_waits_leave(snk_neighbour *neighbour)
{
    (void)pthread_mutex_lock(&mutex);
    snk_list_remove(&neighbour->link);
    (void)pthread_mutex_unlock(&mutex);
}

size_t snk_waits_clients(uint64_t place, sneck_client *clients_out[], size_t room)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&mutex);
    for (snk_link *link = snk_list_first(&clients); link != NULL && count < room;
         link = snk_list_next(&clients, link)) {
        const snk_neighbour *neighbour = SNK_CONTAINER(link, snk_neighbour, link);
        if (neighbour->place != place)
            continue;
        snk_client_ref(neighbour->client); /* it has one of its own while it is in the list */
        clients_out[count++] = neighbour->client;
    }
    (void)pthread_mutex_unlock(&mutex);
    return count;
}

/* ---- Waits ---- */

uint64_t snk_waits_ask(void)
{
    /* Relaxed: whoever knows that somebody's request has arrived has a higher number anyway. */
    return atomic_fetch_add_explicit(&asks, 1, memory_order_relaxed) + 1;
}

void snk_waits_begin(snk_wait_record *record)
{
    (void)pthread_mutex_lock(&mutex);
    record->number = ++wait_count;
    snk_list_append(&waits, &record->link);
    (void)pthread_mutex_unlock(&mutex);
}

void snk_waits_end(snk_wait_record *record)
{
    (void)pthread_mutex_lock(&mutex);
    snk_list_remove(&record->link);
    (void)pthread_mutex_unlock(&mutex);
}

bool snk_waits_visit(bool (*visit)(void *context, const snk_wait_record *record), void *context)
{
    bool found = false;
    (void)pthread_mutex_lock(&mutex);
    for (snk_link *link = snk_list_first(&waits); link != NULL && !found; link = snk_list_next(&waits, link))
        found = visit(context, SNK_CONTAINER(link, snk_wait_record, link));
    (void)pthread_mutex_unlock(&mutex);
    return found;
}
