#include "client/gate.h"

#include <limits.h>

#include "base/futex.h"
#include "base/limits.h"

#define SNK_GATE_CLOSED UINT32_C(0x80000000)

bool snk_gate_enter(snk_gate *gate)
{
    /* One read-modify-write of the one word: either the closer counts us, or we see that it is closed. */
    if ((atomic_fetch_add_explicit(&gate->word, 1, memory_order_acq_rel) & SNK_GATE_CLOSED) == 0)
        return true;
    snk_gate_leave(gate);
    return false;
}

void snk_gate_leave(snk_gate *gate)
{
    /* The gate may be gone as soon as the last one has left: a wake on that address harms nobody. */
    if (atomic_fetch_sub_explicit(&gate->word, 1, memory_order_acq_rel) == (SNK_GATE_CLOSED | 1))
        snk_futex_wake(&gate->word, INT_MAX, false);
}

void snk_gate_close(snk_gate *gate)
{
    uint32_t seen = atomic_fetch_or_explicit(&gate->word, SNK_GATE_CLOSED, memory_order_acq_rel) | SNK_GATE_CLOSED;
    while (seen != SNK_GATE_CLOSED) {
        snk_futex_word word = { .word = &gate->word, .expected = seen };
        (void)snk_futex_wait_any(&word, 1, SNK_NEVER_NS);
        seen = atomic_load_explicit(&gate->word, memory_order_acquire);
    }
}
