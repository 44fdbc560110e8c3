#include "stop.h"

#include "base/clock.h"

void snk_stop_look(snk_stop *stop, int64_t deadline_ns)
{
    if (deadline_ns > 0)
        stop->deadline_ns = deadline_ns;
    else
        stop->is_lost = true; /* for good: what is taken again later is another hold */
}

int64_t snk_stop_due_at(const snk_stop *stop)
{
    return stop->is_lost ? 0 : stop->deadline_ns - stop->kill_after_ns;
}

bool snk_stop_is_due(const snk_stop *stop, int64_t now_ns)
{
    return now_ns >= snk_stop_due_at(stop);
}

int64_t snk_stop_kill_at(const snk_stop *stop, int64_t begun_ns)
{
    /* After a loss the last deadline still counts: until then the command may at least clean up. */
    int64_t at_ns = snk_time_add(begun_ns, stop->kill_after_ns);
    return at_ns < stop->deadline_ns ? at_ns : stop->deadline_ns;
}
