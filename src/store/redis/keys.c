#include "store/redis/keys.h"

#include <string.h>

#include "base/error.h"
#include "base/name.h"

static const struct helper {
    const char *end; /* with its ':' */
    size_t length;
} helpers[SNK_KEYS] = {
#define HELPER(text)                                                                                                   \
    {                                                                                                                  \
        (text), sizeof(text) - 1                                                                                       \
    }
    [SNK_KEY_LOCK] = HELPER(""),
    [SNK_KEY_TOKEN] = HELPER(":token"),
    [SNK_KEY_GONE] = HELPER(":gone"),
    [SNK_KEY_LOG] = HELPER(":log"),
    [SNK_KEY_QUEUE] = HELPER(":queue"),
    [SNK_KEY_QUEUE_INFO] = HELPER(":queue:info"),
    [SNK_KEY_QUEUE_UNTIL] = HELPER(":queue:until"),
#undef HELPER
};

/* As Redis looks for it: between the first '{' and the first '}' after that, and not empty. */
static bool has_hash_tag(const char *key)
{
    const char *open = strchr(key, '{');
    const char *end = open == NULL ? NULL : strchr(open, '}');
    return end != NULL && end > open + 1;
}

/* Every request makes all of them, so they are put together by hand. */
sneck_status snk_keys_make(snk_keys *keys, const char *prefix, const char *name, sneck_error *error)
{
    size_t prefix_length = strnlen(prefix, SNK_PREFIX_LENGTH_MAX);
    size_t name_length = strnlen(name, SNK_NAME_LENGTH_MAX);
    size_t length = prefix_length + name_length;
    char *lock = keys->text[SNK_KEY_LOCK];
    memcpy(lock, prefix, prefix_length);
    memcpy(lock + prefix_length, name, name_length);
    lock[length] = '\0';
    keys->length[SNK_KEY_LOCK] = length;
    bool tagged = has_hash_tag(lock);
    if (!tagged && strpbrk(lock, "{}") != NULL)
        return snk_fail(error, SNECK_INVALID, 0,
                        "\"%.120s\" cannot be a lock on Redis: braces in a name must be a hash tag, as in {order}/42",
                        name);
    for (size_t i = SNK_KEY_LOCK + 1; i < SNK_KEYS; i++) {
        char *to = keys->text[i];
        if (!tagged)
            *to++ = '{';
        memcpy(to, lock, length);
        to += length;
        if (!tagged)
            *to++ = '}';
        memcpy(to, helpers[i].end, helpers[i].length + 1);
        keys->length[i] = (size_t)(to - keys->text[i]) + helpers[i].length;
    }
    return SNECK_OK;
}

static bool ends_with(const char *text, size_t length, const char *end, size_t end_length)
{
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

/* The length of the key that a helper's key belongs to, or 0 when it is no helper's; `*which` says whose. */
static size_t strip_helper(const char *key, size_t length, snk_key *which)
{
    for (size_t i = SNK_KEY_LOCK + 1; i < SNK_KEYS; i++) {
        if (ends_with(key, length, helpers[i].end, helpers[i].length)) {
            *which = (snk_key)i;
            return length - helpers[i].length;
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
