/* The future: a binary heap of events, ordered by time and then by the order in which they were put in. */
#ifndef SIM_HEAP_H
#define SIM_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sim_event {
    int64_t at_ns; /* true time */
    uint64_t sequence;
    uint8_t kind; /* sim_event_kind */
    uint8_t process;
    uint8_t lock;
    uint8_t thread;
    uint32_t epoch;      /* of the process when it was put in: a restarted one is another */
    uint32_t index;      /* of a request or a chase, or what else the kind says */
    uint32_t generation; /* what it was meant for; a later generation ignores it */
} sim_event;

#define SIM_HEAP_MAX 4096

typedef struct sim_heap {
    uint32_t count;
    uint64_t sequence;
    sim_event events[SIM_HEAP_MAX];
} sim_heap;

void sim_heap_clear(sim_heap *heap);

/* False when it is full. */
bool sim_heap_push(sim_heap *heap, const sim_event *event);

/* False when it is empty. */
bool sim_heap_pop(sim_heap *heap, sim_event *event_out);

#endif
