/*
 * Points at which bpftrace, perf or gdb can look on, without the program knowing (USDT, provider `sneck`). One that
 * nobody looks at is a single nop. They are compiled in where <sys/sdt.h> is there.
 *
 *   acquire  name, token, waited (ns)
 *   wait     name; the calling thread goes to sleep until it may have the lock, once for each sleep
 *   release  name, token, held (ns)
 *   renew    name, token, left of the lease, or of the offer, at that moment (ns)
 *   lost     name, token, held (ns), cause (sneck_cause_name)
 */
#ifndef SNK_CLIENT_PROBES_H
#define SNK_CLIENT_PROBES_H

#include "client/entry.h"
#include "engine/machine.h"

/* A step has noted something. */
void snk_probe_note(const snk_entry *entry, const snk_note *note);
void snk_probe_wait(const snk_entry *entry);

#endif
