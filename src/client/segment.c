/* One hot name spread over several: those who work on different keys do not meet. */
#include <stdio.h>

#include "base/error.h"
#include "base/name.h"
#include "client/lock.h"

#define SUFFIX_LENGTH_MAX 8 /* "#1023" and its end */

static sneck_status check_segments(const char *name, unsigned segments, sneck_error *error)
{
    if (segments < 1 || segments > SNECK_MULTI_MAX)
        return snk_fail(error, SNECK_INVALID, 0, "%u segments: give 1 to %d", segments, SNECK_MULTI_MAX);
    return snk_text_check(name, "the name of a segmented lock", 1, SNK_NAME_LENGTH_MAX - SUFFIX_LENGTH_MAX, error);
}

static sneck_status open_segment(sneck_client *client, const char *name, unsigned segment,
                                 const sneck_lock_options *options, sneck_lock **lock_out, sneck_error *error)
{
    char full_name[SNK_NAME_LENGTH_MAX + 1];
    (void)snprintf(full_name, sizeof full_name, "%s#%u", name, segment);
    return sneck_mutex(client, full_name, options, lock_out, error);
}

/* FNV-1a. It decides which lock is taken, in every process and version: it must never change. */
static uint64_t hash_of(const unsigned char *key, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ key[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

unsigned sneck_segment_of(const void *key, size_t key_length, unsigned segments)
{
    return key == NULL || segments == 0 ? 0 : (unsigned)(hash_of(key, key_length) % segments);
}

sneck_status sneck_segment(sneck_client *client, const char *name, unsigned segment, const sneck_lock_options *options,
                           sneck_lock **lock_out, sneck_error *error)
{
    if (lock_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "lock_out is NULL: give the address of a sneck_lock *");
    *lock_out = NULL;
    sneck_status status = check_segments(name, segment + 1, error);
    return status == SNECK_OK ? open_segment(client, name, segment, options, lock_out, error) : status;
}

sneck_status sneck_segments_all(sneck_client *client, const char *name, unsigned segments,
                                const sneck_lock_options *options, sneck_lock **lock_out, sneck_error *error)
{
    if (lock_out == NULL)
        return snk_fail(error, SNECK_INVALID, 0, "lock_out is NULL: give the address of a sneck_lock *");
    *lock_out = NULL;
    sneck_status status = check_segments(name, segments, error);
    sneck_lock *members[SNECK_MULTI_MAX] = { NULL };
    for (unsigned i = 0; i < segments && status == SNECK_OK; i++)
        status = open_segment(client, name, i, options, &members[i], error);
    if (status == SNECK_OK)
        status = snk_multi_new(members, segments, true, lock_out, error);
    for (unsigned i = 0; i < SNECK_MULTI_MAX && status != SNECK_OK; i++)
        sneck_lock_free(members[i]);
    return status;
}
