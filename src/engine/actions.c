#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "engine/parts.h"

/* The most that one waiter or hold can need in one go: an old claim chased, a new one sent, a hold given back. */
#define SENDS_AT_ONCE_MAX 3

void snk_step_begin(snk_step *step)
{
    snk_actions *actions = step->actions;
    actions->woken = NULL;
    actions->freed = NULL;
    actions->pending = false;
    actions->more = false;
    actions->send_count = 0;
    actions->note_count = 0;
    (void)snk_ok(&actions->release);
}

bool snk_step_has_room(const snk_step *step)
{
    return step->actions->send_count + SENDS_AT_ONCE_MAX <= SNK_SENDS_MAX;
}

snk_send *snk_step_send(snk_step *step, snk_ask ask, const snk_id *claim, int64_t lease_ns)
{
    assert(step->actions->send_count < SNK_SENDS_MAX);
    snk_send *send = &step->actions->sends[step->actions->send_count++];
    *send = (snk_send){ .ask = ask, .claim = *claim, .lease_ns = lease_ns, .sent_at_ns = step->now_ns };
    return send;
}

void snk_step_repeat_release(snk_step *step, const snk_send *release)
{
    if (SNK_BUGGY(7))
        return;
    snk_send *send = snk_step_send(step, SNK_ASK_RELEASE, &release->claim, release->lease_ns);
    send->unanswered = release->unanswered;
    send->ends_hold = release->ends_hold;
    send->chase = true;
}

void snk_step_chase(snk_step *step, const snk_id *claim, int64_t lease_ns, int64_t not_before_ns, bool unanswered)
{
    if (SNK_BUGGY(7))
        return;
    snk_send *send = snk_step_send(step, SNK_ASK_RELEASE, claim, lease_ns);
    send->not_before_ns = not_before_ns;
    send->unanswered = unanswered && !SNK_BUGGY(8);
    send->chase = true;
}

snk_note *snk_step_note(snk_step *step, sneck_event_kind kind, uint64_t token, sneck_status status, const char *message)
{
    snk_actions *actions = step->actions;
    assert(actions->note_count < SNK_NOTES_MAX);
    int64_t at_ns = snk_deadline_peek(&step->machine->deadline);
    snk_note *note = &actions->notes[actions->note_count++];
    *note = (snk_note){
        .kind = kind,
        .status = status,
        .token = token,
        .remaining_ns = at_ns > step->now_ns ? at_ns - step->now_ns : 0,
        .delay_ns = -1,
        .message = message,
    };
    return note;
}

void snk_step_wake(snk_step *step, snk_waiter *waiter)
{
    if (waiter->woken)
        return;
    waiter->woken = true;
    waiter->next_woken = step->actions->woken;
    step->actions->woken = waiter;
}

void snk_step_free_hold(snk_step *step, snk_hold *hold)
{
    hold->next_freed = step->actions->freed;
    step->actions->freed = hold;
}

void snk_step_decide(snk_step *step, snk_waiter *waiter, const sneck_error *result)
{
    assert(!waiter->decided);
    snk_list_remove(&waiter->link);
    waiter->seek.state = SNK_SEEK_NONE;
    waiter->decided = true;
    (void)snk_fail_as(&waiter->result, result);
    snk_step_wake(step, waiter);
}

void snk_step_decide_as(snk_step *step, snk_waiter *waiter, sneck_status status, const char *message)
{
    assert(!waiter->decided);
    snk_list_remove(&waiter->link);
    waiter->seek.state = SNK_SEEK_NONE;
    waiter->decided = true;
    waiter->result.status = status;
    waiter->result.cause = 0;
    (void)snk_copy_text(waiter->result.message, sizeof waiter->result.message, message);
    snk_step_wake(step, waiter);
}
