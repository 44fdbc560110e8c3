/* Votes that are taken back, until the node answers: what a store does for a try that was not granted (S4). */
#include "engine/renewal.h"
#include "world.h"

static void push(qs_world *world, const qs_undo *undo, int64_t local_ns)
{
    const qs_process *process = &world->processes[undo->process];
    qs_push(world, sim_clock_true(&process->clock, local_ns),
            &(sim_event){ .kind = QS_EVENT_UNDO,
                          .process = undo->process,
                          .epoch = undo->epoch,
                          .index = (uint32_t)(undo - world->undos) });
}

static void ask(qs_world *world, const qs_undo *undo)
{
    qs_send(world, &world->processes[undo->process], undo->node, &undo->question,
            (qs_sender){ .operation = QS_OPERATIONS_MAX, .undo = (uint32_t)(undo - world->undos) });
}

void qs_undo_start(qs_world *world, qs_process *process, uint32_t node, const qs_question *question)
{
    uint32_t index = 0;
    while (index < QS_UNDOS_MAX && world->undos[index].used)
        index++;
    if (index == QS_UNDOS_MAX) {
        qs_violate(world, "SIM", "more than %d votes are being taken back", QS_UNDOS_MAX);
        return;
    }
    int64_t life_ns = question->lease_ns > question->bury_ns ? question->lease_ns : question->bury_ns;
    qs_undo *undo = &world->undos[index];
    *undo = (qs_undo){
        .used = true,
        .process = qs_number(world, process),
        .node = (uint8_t)node,
        .epoch = process->epoch,
        .question = *question,
        .give_up_at_ns = qs_local(world, process) + life_ns * 2,
    };
    qs_saw(world, QS_PROBE_UNDONE);
    ask(world, undo);
}

void qs_undo_settled(qs_world *world, qs_undo *undo, snk_node_says says)
{
    const qs_process *process = &world->processes[undo->process];
    int64_t now_ns = qs_local(world, process);
    bool answered = says == SNK_NODE_YES || says == SNK_NODE_NO;
    if (answered || now_ns >= undo->give_up_at_ns) {
        undo->used = false;
        return;
    }
    qs_saw(world, QS_PROBE_UNDO_REPEATED);
    undo->failures++;
    push(world, undo, now_ns + snk_backoff_ns(undo->failures, SNK_BACKOFF_NS_MAX));
}

void qs_on_undo(qs_world *world, const sim_event *event)
{
    if (world->undos[event->index].used)
        ask(world, &world->undos[event->index]);
}
