/* Starting a thread of the library: no signal of the application is ever handled on it. */
#ifndef SNK_CLIENT_THREAD_H
#define SNK_CLIENT_THREAD_H

#include <pthread.h>

#include "sneck.h"

sneck_status snk_thread_start(pthread_t *thread_out, const char *name, void *(*run)(void *argument), void *argument,
                              sneck_error *error);

#endif
