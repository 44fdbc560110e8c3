#include "heap.h"

static bool is_before(const sim_event *a, const sim_event *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->sequence < b->sequence);
}

void sim_heap_clear(sim_heap *heap)
{
    heap->count = 0;
    heap->sequence = 0;
}

bool sim_heap_push(sim_heap *heap, const sim_event *event)
{
    if (heap->count == SIM_HEAP_MAX)
        return false;
    sim_event added = *event;
    added.sequence = heap->sequence++;
    uint32_t place = heap->count++;
    while (place > 0) {
        uint32_t parent = (place - 1) / 2;
        if (!is_before(&added, &heap->events[parent]))
            break;
        heap->events[place] = heap->events[parent];
        place = parent;
    }
    heap->events[place] = added;
    return true;
}

bool sim_heap_pop(sim_heap *heap, sim_event *event_out)
{
    if (heap->count == 0)
        return false;
    *event_out = heap->events[0];
    sim_event last = heap->events[--heap->count];
    uint32_t place = 0;
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && is_before(&heap->events[child + 1], &heap->events[child]))
            child++;
        if (!is_before(&heap->events[child], &last))
            break;
        heap->events[place] = heap->events[child];
        place = child;
    }
    heap->events[place] = last;
    return true;
}
