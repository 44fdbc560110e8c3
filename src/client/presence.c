#include "client/presence.h"

#include <pthread.h>
#include <unistd.h>

#include "base/ids.h"
#include "client/watch.h"

/*
 * Destructors of other libraries, and of the program, may still release locks of this thread: ours acts in a later round
 * of them (there are at least four).
 */
#define ROUND_TO_ACT 3

static _Thread_local int64_t levels;
static _Thread_local int32_t thread;
static _Thread_local bool is_armed;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* before watch.inbox_mutex */
static snk_list clients;                                  /* under mutex */

static void on_end_of_thread(void *value)
{
    uintptr_t round = (uintptr_t)value;
    if (levels <= 0)
        return;
    if (round < ROUND_TO_ACT) {
        (void)pthread_setspecific(key, (void *)(round + 1)); /* once more, in the next round */
        return;
    }
    uint64_t number = snk_thread_number();
    (void)pthread_mutex_lock(&mutex);
    for (snk_link *link = snk_list_first(&clients); link != NULL; link = snk_list_next(&clients, link))
        snk_watch_owner_ended(SNK_CONTAINER(link, snk_presence, link)->client, number);
    (void)pthread_mutex_unlock(&mutex);
}

static void before_fork(void)
{
    (void)pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

/* The child owns nothing, and its only thread has another id. */
static void after_fork_in_child(void)
{
    snk_list_init(&clients);
    levels = 0;
    thread = 0;
    (void)pthread_mutex_unlock(&mutex);
}

static void set_up(void)
{
    snk_list_init(&clients);
    has_key = pthread_key_create(&key, on_end_of_thread) == 0;
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* A library that is unloaded must not be called by threads that end later. */
__attribute__((destructor)) static void unload(void)
{
    if (has_key)
        (void)pthread_key_delete(key);
}

void snk_presence_open(snk_presence *presence, sneck_client *client)
{
    (void)pthread_once(&once, set_up);
    presence->client = client;
    (void)pthread_mutex_lock(&mutex);
    snk_list_append(&clients, &presence->link);
    (void)pthread_mutex_unlock(&mutex);
}

void snk_presence_close(snk_presence *presence)
{
    (void)pthread_mutex_lock(&mutex);
    snk_list_remove(&presence->link);
    (void)pthread_mutex_unlock(&mutex);
}

static void arm(void)
{
    (void)pthread_once(&once, set_up);
    is_armed = true;
    if (has_key)
        (void)pthread_setspecific(key, (void *)(uintptr_t)1);
}

void snk_presence_add_level(void)
{
    levels++;
    if (!is_armed)
        arm();
}

void snk_presence_drop_level(void)
{
    levels--;
}

int32_t snk_presence_thread(void)
{
    if (thread == 0) {
        (void)pthread_once(&once, set_up); /* so that a child of fork() does not keep it */
        thread = gettid();
    }
    return thread;
}
