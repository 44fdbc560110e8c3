/* Where the lock file is, who may use it, and whether the file system under it will do. */
#ifndef SNK_STORE_SQLITE_PATH_H
#define SNK_STORE_SQLITE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/url.h"
#include "sneck.h"

#define SNK_SIDECAR_SUFFIX "-sneck"

typedef struct snk_place {
    char asked[PATH_MAX];    /* the file of the URL; "": the default file */
    char database[PATH_MAX]; /* set by snk_place_prepare: no symbolic link in its folder's path */
    char sidecar[PATH_MAX];  /* the mapped file beside it */
    mode_t mode;             /* of both files and the journal, when they are made */
    bool durable;            /* the file outlives a reboot, and tokens with it */
} snk_place;

/* Which file it is; so that one that was replaced is noticed. */
typedef struct snk_file_id {
    dev_t device;
    ino_t inode;
} snk_file_id;

/* Takes the path and file_mode from the URL. No I/O. */
sneck_status snk_place_init(snk_place *place, const snk_url *url, sneck_error *error);

/*
 * Finds the folder (making that of the default file) and checks it and its file system.
 *
 * SNECK_DENIED       it is not ours, or others may write there
 * SNECK_UNSUPPORTED  a file system that machines may share, or that is unknown
 * SNECK_UNAVAILABLE  it is not there
 */
sneck_status snk_place_prepare(snk_place *place, sneck_error *error);

/* Checks type, owner and mode of a file, as lstat or fstat found it. `path` is for the message. */
sneck_status snk_place_check_file(const snk_place *place, const char *path, const struct stat *found,
                                  sneck_error *error);

/* Whether the file at `path` is the one with that id; a file that is missing is not. */
bool snk_file_is(const char *path, const snk_file_id *id);

/* Whether a lock file may live on a file system with this magic number (statfs); the name is for messages. */
bool snk_filesystem_is_local(uint64_t magic);

/* Whether files there vanish with the machine's memory. */
bool snk_filesystem_is_volatile(uint64_t magic);

#endif
