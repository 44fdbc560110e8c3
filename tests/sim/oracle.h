/* Knows everything about the world, and checks the invariants at each step. Ids as in README.md. */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "world.h"

/* A machine before a step, as far as the checks compare. */
typedef struct oracle_before {
    int64_t now_ns; /* the process's clock */
    bool had_hold;
    snk_hold hold;
    int64_t deadline_ns;
    uint32_t state;
    snk_seek seeks[SIM_AGENTS_MAX]; /* of the threads that wait for this lock */
} oracle_before;

void oracle_before_step(sim_world *world, const sim_process *process, uint32_t lock, const snk_event *event,
                        oracle_before *before_out);

/* An answer is about to reach a process. */
void oracle_told(sim_world *world, const sim_request *request, const snk_answer *answer);

/* After the step, before its sends are carried out. */
void oracle_after_step(sim_world *world, sim_process *process, uint32_t lock, const snk_event *event,
                       const snk_actions *actions, const oracle_before *before);

/* At each event: whoever runs has noticed the end of each of its holds. */
void oracle_check_deadlines(sim_world *world);

/* What is true of a lock between events: exclusion, no orphans. */
void oracle_check_lock(sim_world *world, uint32_t lock);

/* A lock of the store before an execution. */
typedef struct oracle_store_before {
    model_lock lock;
} oracle_store_before;

void oracle_before_execution(const sim_world *world, uint32_t lock, oracle_store_before *before_out);

/* `send` NULL: the store trimmed what was over, or the holder was broken (`broken` then). */
void oracle_after_execution(sim_world *world, uint32_t lock, const snk_send *send, const snk_answer *answer,
                            const snk_id *broken, const oracle_store_before *before);

/* The thread uses what the lock protects: first a read, then writes that build on it. */
void oracle_read(sim_world *world, sim_thread *thread, uint64_t token);
void oracle_write(sim_world *world, sim_thread *thread, uint64_t token);

/* Each event after healing: somebody waits and the lock is free, for too long? */
void oracle_check_progress(sim_world *world);

/* Nothing is left of a process that was closed in good order. */
void oracle_check_closed(sim_world *world, const sim_process *process);

/* All processes are closed: the store is empty. */
void oracle_check_end(sim_world *world);

#endif
