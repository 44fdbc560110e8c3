#include "client/ear.h"

#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

snk_ear *snk_ear_new(void)
{
    snk_ear *ear = calloc(1, sizeof *ear);
    if (ear != NULL)
        ear->lost_fd = -1;
    return ear;
}

void snk_ear_free(snk_ear *ear)
{
    if (ear != NULL && ear->lost_fd >= 0)
        (void)close(ear->lost_fd);
    free(ear);
}

void snk_ear_attach_locked(snk_entry *entry, snk_ear *ear)
{
    ear->next = entry->ears;
    entry->ears = ear;
}

void snk_ear_detach_locked(snk_entry *entry, snk_ear *ear)
{
    snk_ear **at = &entry->ears;
    while (*at != NULL && *at != ear)
        at = &(*at)->next;
    if (*at != NULL)
        *at = ear->next;
}

/* Fires at `at_ns`, at once when that is past; 0: never. What has fired and is armed anew is no longer readable. */
static bool arm(snk_ear *ear, int64_t at_ns)
{
    struct itimerspec time = { .it_value = snk_timespec(at_ns) };
    ear->armed_at_ns = at_ns;
    return timerfd_settime(ear->lost_fd, TFD_TIMER_ABSTIME, &time, NULL) == 0;
}

bool snk_ear_watch_locked(snk_entry *entry, snk_ear *ear)
{
    if (ear->lost_fd < 0)
        ear->lost_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (ear->lost_fd < 0)
        return false;
    ear->token = entry->machine.hold->token;
    ear->is_watching = arm(ear, snk_deadline_peek(&entry->machine.deadline));
    return ear->is_watching;
}

static bool was_lost(const snk_actions *actions, uint64_t token)
{
    for (uint32_t i = 0; i < actions->note_count; i++)
        if (actions->notes[i].kind == SNECK_EVENT_LOST && actions->notes[i].token == token)
            return true;
    return false;
}

static void follow_locked(const snk_entry *entry, snk_ear *ear, const snk_actions *actions)
{
    const snk_machine *machine = &entry->machine;
    int64_t deadline_ns = snk_deadline_peek(&machine->deadline);
    if (was_lost(actions, ear->token)) {
        ear->is_watching = false;
        (void)arm(ear, 1); /* long past: readable from now on */
    } else if (machine->hold == NULL || machine->hold->owner == 0 || machine->hold->token != ear->token) {
        ear->is_watching = false; /* released */
        (void)arm(ear, 0);
    } else if (deadline_ns > 0 && deadline_ns != ear->armed_at_ns) {
        (void)arm(ear, deadline_ns);
    }
}

void snk_ears_follow_locked(snk_entry *entry, const snk_actions *actions)
{
    for (snk_ear *ear = entry->ears; ear != NULL; ear = ear->next)
        if (ear->is_watching)
            follow_locked(entry, ear, actions);
}
