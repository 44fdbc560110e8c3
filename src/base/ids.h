/* Random identities, and the identity of the calling thread. */
#ifndef SNK_BASE_IDS_H
#define SNK_BASE_IDS_H

#include <stdbool.h>
#include <stdint.h>

#define SNK_ID_BYTES 16
#define SNK_ID_TEXT_SIZE 33   /* 32 hex digits and NUL */
#define SNK_UUID_TEXT_SIZE 37 /* 8-4-4-4-12 hex digits and NUL */

/* 128 random bits: names one claim, or one client. All zero is "none". */
typedef struct snk_id {
    uint8_t bytes[SNK_ID_BYTES];
} snk_id;

/* False when the kernel gives no random bytes. */
bool snk_id_random(snk_id *id_out);

bool snk_id_equal(const snk_id *a, const snk_id *b);
bool snk_id_is_none(const snk_id *id);
void snk_id_to_hex(const snk_id *id, char text[SNK_ID_TEXT_SIZE]);
bool snk_id_from_hex(snk_id *id_out, const char *text);

/* The id as a UUID of version 4. */
void snk_id_to_uuid(const snk_id *id, char text[SNK_UUID_TEXT_SIZE]);

/*
 * A number that names the calling thread among all threads that this process ever had, never 0; it costs no system
 * call. (Thread ids of the kernel and pthread_self come back after a thread has ended, and its locks must not pass to
 * a stranger.)
 */
uint64_t snk_thread_number(void);

#endif
