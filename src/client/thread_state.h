/* What the kernel says about a thread of this process. */
#ifndef SNK_CLIENT_THREAD_STATE_H
#define SNK_CLIENT_THREAD_STATE_H

#include <stdint.h>

#include "engine/watchdog.h"

/*
 * Reads /proc/self/task/<thread>/stat and the thread's clock. Where /proc is not there, a thread that lives counts as
 * one that runs.
 */
void snk_thread_look(int32_t thread, snk_thread_facts *facts_out);

#endif
