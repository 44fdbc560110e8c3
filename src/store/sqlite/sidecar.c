#include "store/sqlite/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/mutex.h"
#include "store/sqlite/liveness.h"

#define MAGIC UINT64_C(0x0178706B63656E73) /* "sneckpx" and 1 */
#define LAYOUT ((uint32_t)(sizeof(pthread_mutex_t) | sizeof(void *) << 8 | sizeof(snk_slot) << 16))
#define OPENING_BYTE 0
#define OPENING_WAIT_NS (2 * SNK_NS_PER_S)
#define OPEN_TRIES 100

_Static_assert(offsetof(snk_sidecar_file, slots) == 4096, "the header is a page");
_Static_assert(offsetof(snk_sidecar_file, writer) == 64, "the layout is fixed by the version");

static bool init_robust(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    bool done = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
                pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                pthread_mutex_init(mutex, &attributes) == 0;
    (void)pthread_mutexattr_destroy(&attributes);
    return done;
}

/*
 * Opens the file or makes it. Never O_CREAT on a file that may be there: the kernel refuses that in folders like /tmp
 * for files of other users, which a shared file may be.
 */
static sneck_status open_file(const snk_place *place, int *fd_out, sneck_error *error)
{
    for (int try = 0; try < OPEN_TRIES; try++) {
        int fd = open(place->sidecar, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT) {
            fd = open(place->sidecar, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, place->mode);
            if (fd < 0 && errno == EEXIST)
                continue; /* somebody else made it just now */
            if (fd >= 0)
                (void)fchmod(fd, place->mode); /* whatever the umask says */
        }
        *fd_out = fd;
        if (fd >= 0)
            return SNECK_OK;
        int cause = errno;
        if (cause == ELOOP)
            return snk_fail(error, SNECK_DENIED, cause, "%.150s is a symbolic link, which sneck does not follow",
                            place->sidecar);
        bool denied = cause == EACCES || cause == EPERM || cause == EROFS;
        return snk_fail(error, denied ? SNECK_DENIED : SNECK_UNAVAILABLE, cause, "%.150s: %s", place->sidecar,
                        snk_errno_text(cause));
    }
    return snk_fail(error, SNECK_UNAVAILABLE, 0, "%.150s comes and goes: something removes it all the time",
                    place->sidecar);
}

static bool lock_byte(int fd, off_t byte, short type)
{
    struct flock range = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };
    return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

/* Takes the opening lock, looking each millisecond: a process that is stopped in the middle must not hang us. */
static sneck_status lock_opening(int fd, const snk_place *place, sneck_error *error)
{
    int64_t limit_ns = snk_now_ns() + OPENING_WAIT_NS;
    while (!lock_byte(fd, OPENING_BYTE, F_WRLCK)) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return snk_fail(error, SNECK_UNAVAILABLE, errno, "%.150s: %s", place->sidecar, snk_errno_text(errno));
        if (snk_now_ns() > limit_ns)
            return snk_fail(error, SNECK_UNAVAILABLE, EAGAIN,
                            "%.150s: another process is opening it and does not get on", place->sidecar);
        struct timespec pause = snk_timespec(SNK_NS_PER_MS);
        (void)nanosleep(&pause, NULL);
    }
    return SNECK_OK;
}

static sneck_status fill(snk_sidecar *sidecar, const snk_place *place, sneck_error *error)
{
    snk_sidecar_file *file = sidecar->file;
    if (atomic_load(&file->magic) == MAGIC)
        return SNECK_OK;
    if (atomic_load(&file->magic) != 0)
        return snk_fail(error, SNECK_UNAVAILABLE, 0, "%.150s is not a lock file or damaged: move it away",
                        place->sidecar);
    snk_id random;
    if (!snk_id_random(&random) || !init_robust(&file->writer))
        return snk_fail(error, SNECK_UNAVAILABLE, errno, "%.150s: cannot be set up", place->sidecar);
    memcpy(&file->generation, random.bytes, sizeof file->generation);
    file->generation &= INT64_MAX; /* it goes into an SQL integer */
    file->version = SNK_SIDECAR_VERSION;
    file->layout = LAYOUT;
    atomic_store(&file->magic, MAGIC); /* last: a file that was left half made is made anew */
    return SNECK_OK;
}

/*
 * Maps the file by a descriptor that is not kept. A mapping keeps the description that it was made from, and with it the
 * liveness lock: closing would give that up only after those who watch us had been woken to look at it.
 */
static void *map_apart(const snk_sidecar *sidecar, const snk_place *place)
{
    int fd = open(place->sidecar, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return MAP_FAILED;
    struct stat found;
    void *file = MAP_FAILED;
    if (fstat(fd, &found) == 0) {
        errno = ESTALE; /* another file took its place */
        if (found.st_dev == sidecar->id.device && found.st_ino == sidecar->id.inode)
            file = mmap(NULL, sizeof(snk_sidecar_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    int cause = errno;
    (void)close(fd);
    errno = cause;
    return file;
}

static sneck_status map(snk_sidecar *sidecar, const snk_place *place, sneck_error *error)
{
    struct stat found;
    if (fstat(sidecar->fd, &found) != 0)
        return snk_fail(error, SNECK_UNAVAILABLE, errno, "%.150s: %s", place->sidecar, snk_errno_text(errno));
    sneck_status status = snk_place_check_file(place, place->sidecar, &found, error);
    if (status != SNECK_OK)
        return status;
    sidecar->id = (snk_file_id){ .device = found.st_dev, .inode = found.st_ino };
    /* The blocks must be there before they are mapped: a full file system would be SIGBUS later. */
    int cause = posix_fallocate(sidecar->fd, 0, sizeof(snk_sidecar_file));
    if (cause != 0)
        return snk_fail(error, SNECK_UNAVAILABLE, cause, "%.150s: %s", place->sidecar,
                        cause == ENOSPC ? "disk full" : snk_errno_text(cause));
    void *file = map_apart(sidecar, place);
    if (file == MAP_FAILED)
        return snk_fail(error, SNECK_UNAVAILABLE, errno, "%.150s: %s", place->sidecar, snk_errno_text(errno));
    sidecar->file = file;
    status = fill(sidecar, place, error);
    if (status != SNECK_OK)
        return status;
    if (sidecar->file->version != SNK_SIDECAR_VERSION || sidecar->file->layout != LAYOUT)
        return snk_fail(error, SNECK_UNAVAILABLE, 0,
                        "%.120s was made by another version of sneck: stop its users first", place->sidecar);
    sidecar->generation = sidecar->file->generation;
    return SNECK_OK;
}

sneck_status snk_sidecar_open(const snk_place *place, snk_sidecar **sidecar_out, sneck_error *error)
{
    *sidecar_out = NULL;
    snk_sidecar *sidecar = calloc(1, sizeof *sidecar);
    if (sidecar == NULL)
        return snk_fail(error, SNECK_NO_MEMORY, 0, "out of memory");
    sidecar->fd = -1;
    sidecar->slot = SNK_SLOT_NONE;
    sidecar->references = 1;
    sneck_status status = open_file(place, &sidecar->fd, error);
    if (status == SNECK_OK)
        status = lock_opening(sidecar->fd, place, error);
    if (status == SNECK_OK)
        status = map(sidecar, place, error);
    if (status == SNECK_OK && !snk_file_is(place->sidecar, &sidecar->id))
        status =
            snk_fail(error, SNECK_UNAVAILABLE, 0, "%.150s was replaced while we opened it; try again", place->sidecar);
    if (status != SNECK_OK) {
        snk_sidecar_close(sidecar, false);
        return status;
    }
    *sidecar_out = sidecar;
    return SNECK_OK;
}

sneck_status snk_sidecar_reopen(snk_sidecar *sidecar, const snk_place *place, sneck_error *error)
{
    return lock_opening(sidecar->fd, place, error);
}

void snk_sidecar_opened(snk_sidecar *sidecar)
{
    (void)lock_byte(sidecar->fd, OPENING_BYTE, F_UNLCK);
}

/*
 * Whoever watches a client in this slot looks again. Harmless if the slot is another's by now: those who watch that one
 * merely look once for nothing.
 */
static void end_incarnation(snk_slot *slot)
{
    (void)atomic_fetch_add(&slot->incarnation, 1);
    snk_futex_wake(&slot->incarnation, INT32_MAX, true);
    snk_futex_wake(snk_slot_life_word(slot), INT32_MAX, true);
}

sneck_status snk_sidecar_take_slot(snk_sidecar *sidecar, const snk_id *client, sneck_error *error)
{
    uint64_t halves[2];
    memcpy(halves, client->bytes, sizeof halves);
    for (uint32_t i = 0; i < SNK_SIDECAR_SLOTS; i++) {
        uint32_t index = (uint32_t)((halves[0] + i) % SNK_SIDECAR_SLOTS);
        if (!lock_byte(sidecar->fd, SNK_SIDECAR_LIVENESS + (off_t)index, F_WRLCK))
            continue;
        snk_slot *slot = &sidecar->file->slots[index];
        end_incarnation(slot);
        atomic_store(&slot->client[0], halves[0]);
        atomic_store(&slot->client[1], halves[1]);
        (void)init_robust(&slot->life);
        sidecar->slot = index;
        return SNECK_OK;
    }
    return snk_fail(error, SNECK_LIMIT, 0, "%d clients have the lock file open, which is the limit", SNK_SIDECAR_SLOTS);
}

void snk_sidecar_close(snk_sidecar *sidecar, bool abandon)
{
    if (sidecar == NULL)
        return;
    if (sidecar->fd >= 0)
        (void)close(sidecar->fd); /* with it the liveness lock goes, unless another process shares the descriptor */
    if (sidecar->slot != SNK_SLOT_NONE && !abandon)
        end_incarnation(snk_sidecar_slot(sidecar));
    if (sidecar->file != NULL)
        (void)munmap(sidecar->file, sizeof *sidecar->file);
    free(sidecar);
}

void snk_sidecar_tell_all(snk_sidecar *sidecar)
{
    for (uint32_t i = 0; i < SNK_SIDECAR_SLOTS; i++) {
        snk_slot *slot = &sidecar->file->slots[i];
        /* Nobody has had it, or who had it died: then nobody waits there. */
        if ((atomic_load(&slot->client[0]) | atomic_load(&slot->client[1])) == 0 ||
            (atomic_load(snk_slot_life_word(slot)) & FUTEX_OWNER_DIED) != 0)
            continue;
        for (uint32_t word = 0; word < SNK_SIDECAR_WORDS; word++) {
            (void)atomic_fetch_add(&slot->words[word], 1);
            snk_futex_wake(&slot->words[word], INT32_MAX, true);
        }
    }
}

bool snk_sidecar_lock_writer(snk_sidecar *sidecar, int64_t limit_ns)
{
    int result = snk_mutex_lock_until(&sidecar->file->writer, limit_ns);
    if (result != EOWNERDEAD)
        return result == 0;
    /*
     * Its last owner died in the middle. What it left in the database is rolled back by SQLite; but if it died after
     * the commit, those whom it has granted something may not know.
     */
    snk_sidecar_tell_all(sidecar);
    return pthread_mutex_consistent(&sidecar->file->writer) == 0;
}

void snk_sidecar_unlock_writer(snk_sidecar *sidecar)
{
    (void)pthread_mutex_unlock(&sidecar->file->writer);
}
