#include "client/timers.h"

#include <stdlib.h>

#include "base/limits.h"

#define CAPACITY_FIRST 64

void snk_timers_init(snk_timers *timers)
{
    *timers = (snk_timers){ 0 };
    (void)pthread_mutex_init(&timers->mutex, NULL);
}

void snk_timers_deinit(snk_timers *timers)
{
    free(timers->heap);
    (void)pthread_mutex_destroy(&timers->mutex);
}

void snk_timer_init(snk_timer *timer)
{
    atomic_init(&timer->at_ns, SNK_NEVER_NS);
    timer->index = 0;
}

static void put_locked(snk_timers *timers, size_t index, snk_timer *timer)
{
    timers->heap[index] = timer;
    timer->index = (uint32_t)index;
}

static void sift_up_locked(snk_timers *timers, size_t index)
{
    snk_timer *timer = timers->heap[index];
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (snk_timer_at_ns(timers->heap[parent]) <= snk_timer_at_ns(timer))
            break;
        put_locked(timers, index, timers->heap[parent]);
        index = parent;
    }
    put_locked(timers, index, timer);
}

static void sift_down_locked(snk_timers *timers, size_t index)
{
    snk_timer *timer = timers->heap[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count &&
            snk_timer_at_ns(timers->heap[child + 1]) < snk_timer_at_ns(timers->heap[child]))
            child++;
        if (snk_timer_at_ns(timer) <= snk_timer_at_ns(timers->heap[child]))
            break;
        put_locked(timers, index, timers->heap[child]);
        index = child;
    }
    put_locked(timers, index, timer);
}

static void take_out_locked(snk_timers *timers, snk_timer *timer)
{
    size_t index = timer->index;
    atomic_store_explicit(&timer->at_ns, SNK_NEVER_NS, memory_order_relaxed);
    snk_timer *last = timers->heap[--timers->count];
    if (last == timer)
        return;
    put_locked(timers, index, last);
    sift_up_locked(timers, index);
    sift_down_locked(timers, last->index);
}

bool snk_timers_reserve(snk_timers *timers, size_t count)
{
    (void)pthread_mutex_lock(&timers->mutex);
    bool enough = count <= timers->capacity;
    if (!enough) {
        size_t capacity = timers->capacity == 0 ? CAPACITY_FIRST : timers->capacity;
        while (capacity < count)
            capacity += capacity / 2;
        snk_timer **heap = realloc(timers->heap, capacity * sizeof(snk_timer *));
        if (heap != NULL) {
            timers->heap = heap;
            timers->capacity = capacity;
            enough = true;
        }
    }
    (void)pthread_mutex_unlock(&timers->mutex);
    return enough;
}

bool snk_timers_arm(snk_timers *timers, snk_timer *timer, int64_t at_ns)
{
    (void)pthread_mutex_lock(&timers->mutex);
    int64_t armed_ns = snk_timer_at_ns(timer);
    if (at_ns < armed_ns && (armed_ns != SNK_NEVER_NS || timers->count < timers->capacity)) {
        atomic_store_explicit(&timer->at_ns, at_ns, memory_order_relaxed);
        if (armed_ns == SNK_NEVER_NS)
            put_locked(timers, timers->count++, timer);
        sift_up_locked(timers, timer->index);
    }
    bool earliest = at_ns < armed_ns && timer->index == 0;
    (void)pthread_mutex_unlock(&timers->mutex);
    return earliest;
}

snk_timer *snk_timers_pop(snk_timers *timers, int64_t now_ns, void (*pin)(snk_timer *timer))
{
    (void)pthread_mutex_lock(&timers->mutex);
    snk_timer *timer = timers->count > 0 && snk_timer_at_ns(timers->heap[0]) <= now_ns ? timers->heap[0] : NULL;
    if (timer != NULL) {
        take_out_locked(timers, timer);
        pin(timer);
    }
    (void)pthread_mutex_unlock(&timers->mutex);
    return timer;
}

int64_t snk_timers_next(snk_timers *timers)
{
    (void)pthread_mutex_lock(&timers->mutex);
    int64_t at_ns = timers->count > 0 ? snk_timer_at_ns(timers->heap[0]) : SNK_NEVER_NS;
    (void)pthread_mutex_unlock(&timers->mutex);
    return at_ns;
}

bool snk_timers_remove(snk_timers *timers, snk_timer *timer, bool (*is_pinned)(snk_timer *timer))
{
    (void)pthread_mutex_lock(&timers->mutex);
    bool pinned = is_pinned != NULL && is_pinned(timer);
    if (!pinned && snk_timer_at_ns(timer) != SNK_NEVER_NS)
        take_out_locked(timers, timer);
    (void)pthread_mutex_unlock(&timers->mutex);
    return !pinned;
}
