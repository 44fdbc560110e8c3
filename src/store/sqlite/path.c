#include "store/sqlite/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"

#define FILE_NAME "locks.db"
#define MODE_DEFAULT 0600

/*
 * File systems of one machine with working byte-range locks and shared mappings. An allow-list: on a file that several
 * machines share, locks of one are not seen by the other (or not in time), and the file would be corrupted.
 */
static const uint64_t local_filesystems[] = {
    0xEF53,     /* ext2, ext3, ext4 */
    0x58465342, /* xfs */
    0x9123683E, /* btrfs */
    0xF2F52010, /* f2fs */
    0x2FC12FC1, /* zfs */
    0xCA451A4E, /* bcachefs */
    0x794C7630, /* overlayfs */
    0x3153464A, /* jfs */
    0x52654973, /* reiserfs */
    0x01021994, /* tmpfs */
    0x858458F6, /* ramfs */
};

static const uint64_t volatile_filesystems[] = {
    0x01021994, /* tmpfs */
    0x858458F6, /* ramfs */
};

static bool has(const uint64_t magics[], size_t count, uint64_t magic)
{
    for (size_t i = 0; i < count; i++) {
        if (magics[i] == magic)
            return true;
    }
    return false;
}

bool snk_filesystem_is_local(uint64_t magic)
{
    return has(local_filesystems, sizeof local_filesystems / sizeof local_filesystems[0], magic);
}

bool snk_filesystem_is_volatile(uint64_t magic)
{
    return has(volatile_filesystems, sizeof volatile_filesystems / sizeof volatile_filesystems[0], magic);
}

static sneck_status parse_mode(snk_place *place, const char *text, sneck_error *error)
{
    place->mode = MODE_DEFAULT;
    if (text == NULL)
        return SNECK_OK;
    unsigned long mode = 0;
    bool is_octal = *text != '\0' && strlen(text) <= 4;
    for (const char *digit = text; *digit != '\0'; digit++) {
        is_octal = is_octal && *digit >= '0' && *digit <= '7';
        mode = mode * 8 + (unsigned long)(*digit - '0');
    }
    if (!is_octal || (mode & 0600U) != 0600U || (mode & ~0666UL) != 0)
        return snk_fail(error, SNECK_INVALID, 0, "file_mode=%.20s: give an octal mode such as 0600 or 0660", text);
    place->mode = (mode_t)mode;
    return SNECK_OK;
}

sneck_status snk_place_init(snk_place *place, const snk_url *url, sneck_error *error)
{
    *place = (snk_place){ .mode = MODE_DEFAULT };
    bool has_host = url->host_count > 1 || (url->host_count == 1 && url->hosts[0].name[0] != '\0');
    if (has_host || url->user[0] != '\0' || (url->path[0] != '\0' && url->path[0] != '/'))
        return snk_fail(error, SNECK_INVALID, 0,
                        "sqlite: takes an absolute path: sqlite:///absolute/file (or sqlite: alone)");
    size_t length = strlen(url->path);
    if (length > sizeof place->asked - sizeof "-journal" - sizeof SNK_SIDECAR_SUFFIX)
        return snk_fail(error, SNECK_INVALID, 0, "sqlite: the path is too long");
    if (length > 0 && url->path[length - 1] == '/')
        return snk_fail(error, SNECK_INVALID, 0, "sqlite: %.150s is a folder; name a file in it", url->path);
    (void)snk_copy_text(place->asked, sizeof place->asked, url->path);
    return parse_mode(place, snk_url_value(url, "file_mode"), error);
}

/* Makes, if needed, and checks a folder that only this user may use. True: it is there; else `*cause` says why not. */
static bool make_own_folder(const char *path, int *cause)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return true;
    *cause = errno;
    return false;
}

static sneck_status check_own_folder(const char *path, sneck_error *error)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return snk_fail(error, SNECK_UNAVAILABLE, errno, "%s: %s", path, snk_errno_text(errno));
    if (!S_ISDIR(found.st_mode))
        return snk_fail(error, SNECK_DENIED, 0, "%s is not a folder: somebody else put it there; remove it", path);
    if (found.st_uid != geteuid())
        return snk_fail(error, SNECK_DENIED, 0, "%s belongs to user %u, not to us (%u): remove it", path,
                        (unsigned)found.st_uid, (unsigned)geteuid());
    if ((found.st_mode & 077U) != 0)
        return snk_fail(error, SNECK_DENIED, 0, "%s may be used by others: say chmod 0700 %s", path, path);
    return SNECK_OK;
}

/*
 * The default folder depends on the effective user alone, never on the environment: a cron job and a login shell must
 * meet. A folder that is there but not ours is refused, not avoided, for the same reason.
 */
static sneck_status find_default_folder(char *folder, size_t size, sneck_error *error)
{
    int cause = 0;
    (void)snprintf(folder, size, "/run/lock/sneck-%u", (unsigned)geteuid());
    if (!make_own_folder(folder, &cause)) {
        if (cause != ENOENT && cause != EACCES && cause != EPERM && cause != EROFS && cause != ENOTDIR)
            return snk_fail(error, SNECK_UNAVAILABLE, cause, "%s: %s", folder, snk_errno_text(cause));
        (void)snprintf(folder, size, "/tmp/sneck-%u", (unsigned)geteuid());
        if (!make_own_folder(folder, &cause))
            return snk_fail(error, SNECK_UNAVAILABLE, cause, "%s: %s; name a file: sqlite:///path", folder,
                            snk_errno_text(cause));
    }
    return check_own_folder(folder, error);
}

/* The folder of the file that was asked for, without symbolic links in its path, and the file's own name. */
static sneck_status find_asked_folder(const char *asked, char folder[PATH_MAX], const char **name_out,
                                      sneck_error *error)
{
    char path[PATH_MAX];
    (void)snk_copy_text(path, sizeof path, asked);
    char *slash = strrchr(path, '/');
    *name_out = asked + (slash - path) + 1;
    slash[slash == path ? 1 : 0] = '\0';
    if (realpath(path, folder) == NULL)
        return snk_fail(error, errno == EACCES ? SNECK_DENIED : SNECK_UNAVAILABLE, errno, "%.150s: %s", path,
                        snk_errno_text(errno));
    struct stat found;
    if (stat(folder, &found) != 0)
        return snk_fail(error, SNECK_UNAVAILABLE, errno, "%.150s: %s", folder, snk_errno_text(errno));
    if ((found.st_mode & S_IWOTH) != 0 && (found.st_mode & S_ISVTX) == 0)
        return snk_fail(error, SNECK_DENIED, 0, "anybody may replace files in %.150s: say chmod o-w on it", folder);
    return SNECK_OK;
}

static sneck_status check_filesystem(snk_place *place, const char *folder, sneck_error *error)
{
    struct statfs found;
    if (statfs(folder, &found) != 0)
        return snk_fail(error, SNECK_UNAVAILABLE, errno, "%.150s: %s", folder, snk_errno_text(errno));
    uint64_t magic = (uint32_t)found.f_type;
    if (!snk_filesystem_is_local(magic))
        return snk_fail(error, SNECK_UNSUPPORTED, 0,
                        "%.120s: its file system (0x%llx) is shared between machines or unknown; put the lock file on "
                        "a local one, or use a server",
                        folder, (unsigned long long)magic);
    place->durable = place->asked[0] != '\0' && !snk_filesystem_is_volatile(magic);
    return SNECK_OK;
}

sneck_status snk_place_prepare(snk_place *place, sneck_error *error)
{
    char folder[PATH_MAX];
    const char *name = FILE_NAME;
    sneck_status status = place->asked[0] == '\0' ? find_default_folder(folder, sizeof folder, error)
                                                  : find_asked_folder(place->asked, folder, &name, error);
    if (status == SNECK_OK)
        status = check_filesystem(place, folder, error);
    if (status != SNECK_OK)
        return status;
    int length =
        snprintf(place->database, sizeof place->database, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    if (length < 0 || (size_t)length + sizeof "-journal" + sizeof SNK_SIDECAR_SUFFIX > sizeof place->sidecar)
        return snk_fail(error, SNECK_INVALID, ENAMETOOLONG, "sqlite: the path is too long");
    memcpy(place->sidecar, place->database, (size_t)length);
    memcpy(place->sidecar + length, SNK_SIDECAR_SUFFIX, sizeof SNK_SIDECAR_SUFFIX);
    return SNECK_OK;
}

sneck_status snk_place_check_file(const snk_place *place, const char *path, const struct stat *found,
                                  sneck_error *error)
{
    if (S_ISLNK(found->st_mode))
        return snk_fail(error, SNECK_DENIED, 0, "%.150s is a symbolic link, which sneck does not follow", path);
    if (!S_ISREG(found->st_mode))
        return snk_fail(error, SNECK_INVALID, 0, "%.150s is not a file", path);
    bool shared = (place->mode & 0066U) != 0;
    if (found->st_uid != geteuid() && found->st_uid != 0 && !shared)
        return snk_fail(error, SNECK_DENIED, 0,
                        "%.120s belongs to user %u; for a file that users share say file_mode=0660", path,
                        (unsigned)found->st_uid);
    if ((found->st_mode & 0022U & ~place->mode) != 0)
        return snk_fail(error, SNECK_DENIED, 0,
                        "%.120s may be written by others (mode %04o): chmod it, or say file_mode=%04o", path,
                        (unsigned)found->st_mode & 07777U, (unsigned)found->st_mode & 0666U);
    return SNECK_OK;
}

bool snk_file_is(const char *path, const snk_file_id *id)
{
    struct stat found;
    return lstat(path, &found) == 0 && found.st_ino == id->inode && found.st_dev == id->device;
}
