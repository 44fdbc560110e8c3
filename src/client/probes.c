#include "client/probes.h"

#ifdef SNK_HAVE_SDT
#include <sys/sdt.h>

#ifdef __clang__
/* The macros of sdt.h leave "..." empty, and clang charges that to those who use them. */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif

void snk_probe_note(const snk_entry *entry, const snk_note *note)
{
    const char *name = entry->name;
    if (note->kind == SNECK_EVENT_ACQUIRED)
        DTRACE_PROBE3(sneck, acquire, name, note->token, note->took_ns);
    else if (note->kind == SNECK_EVENT_RELEASED)
        DTRACE_PROBE3(sneck, release, name, note->token, note->took_ns);
    else if (note->kind == SNECK_EVENT_RENEWED)
        DTRACE_PROBE3(sneck, renew, name, note->token, note->took_ns);
    else if (note->kind == SNECK_EVENT_LOST)
        DTRACE_PROBE4(sneck, lost, name, note->token, note->took_ns, sneck_cause_name(note->cause));
}

void snk_probe_wait(const snk_entry *entry)
{
    const char *name = entry->name;
    DTRACE_PROBE1(sneck, wait, name);
}

#else

void snk_probe_note(const snk_entry *entry, const snk_note *note)
{
    (void)entry;
    (void)note;
}

void snk_probe_wait(const snk_entry *entry)
{
    (void)entry;
}

#endif
