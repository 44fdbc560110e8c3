#include "store/redis/keys.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/name.h"

static const char *const helpers[SNK_KEYS] = {
    [SNK_KEY_TOKEN] = "token",
    [SNK_KEY_GONE] = "gone",
    [SNK_KEY_LOG] = "log",
    [SNK_KEY_QUEUE] = "queue",
    [SNK_KEY_QUEUE_INFO] = "queue:info",
    [SNK_KEY_QUEUE_UNTIL] = "queue:until",
};

/* As Redis looks for it: between the first '{' and the first '}' after that, and not empty. */
static bool has_hash_tag(const char *key)
{
    const char *open = strchr(key, '{');
    const char *end = open == NULL ? NULL : strchr(open, '}');
    return end != NULL && end > open + 1;
}

sneck_status snk_keys_make(snk_keys *keys, const char *prefix, const char *name, sneck_error *error)
{
    char *lock = keys->text[SNK_KEY_LOCK];
    keys->length[SNK_KEY_LOCK] = (size_t)snprintf(lock, SNK_KEY_SIZE, "%s%s", prefix, name);
    bool tagged = has_hash_tag(lock);
    if (!tagged && strpbrk(lock, "{}") != NULL)
        return snk_fail(error, SNECK_INVALID, 0,
                        "\"%.120s\" cannot be a lock on Redis: braces in a name must be a hash tag, as in {order}/42",
                        name);
    for (size_t i = SNK_KEY_LOCK + 1; i < SNK_KEYS; i++)
        keys->length[i] = (size_t)snprintf(keys->text[i], SNK_KEY_SIZE, "%s%s%s:%s", tagged ? "" : "{", lock,
                                           tagged ? "" : "}", helpers[i]);
    return SNECK_OK;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t end_length = strlen(end);
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

/* The length of the key that a helper's key belongs to, or 0 when it is no helper's; `*which` says whose. */
static size_t strip_helper(const char *key, size_t length, snk_key *which)
{
    for (size_t i = SNK_KEY_LOCK + 1; i < SNK_KEYS; i++) {
        char end[16];
        (void)snprintf(end, sizeof end, ":%s", helpers[i]);
        if (ends_with(key, length, end)) {
            *which = (snk_key)i;
            return length - strlen(end);
        }
    }
    return 0;
}

bool snk_keys_name_of(const char *key, size_t length, const char *prefix, char name[SNK_NAME_LENGTH_MAX + 1])
{
    char lock[SNK_KEY_SIZE];
    if (length == 0 || length >= sizeof lock || memchr(key, '\0', length) != NULL)
        return false;
    snk_key which = SNK_KEY_LOCK;
    size_t lock_length = strip_helper(key, length, &which);
    bool braced = lock_length > 2 && key[0] == '{' && key[lock_length - 1] == '}';
    if (braced) {
        key++;
        lock_length -= 2;
    }
    memcpy(lock, key, lock_length == 0 ? length : lock_length);
    lock[lock_length == 0 ? length : lock_length] = '\0';
    /* A helper stands beside a key with a hash tag, or around one without; else it is a lock with an odd name. */
    bool is_helper = lock_length > 0 && braced != has_hash_tag(lock);
    if (is_helper && which != SNK_KEY_QUEUE)
        return false;
    if (!is_helper && lock_length > 0) {
        memcpy(lock, braced ? key - 1 : key, length);
        lock[length] = '\0';
    }
    size_t prefix_length = strlen(prefix);
    if (strncmp(lock, prefix, prefix_length) != 0 || snk_name_check(lock + prefix_length, NULL) != SNECK_OK)
        return false;
    memcpy(name, lock + prefix_length, strlen(lock + prefix_length) + 1);
    return true;
}
