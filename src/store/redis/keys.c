#include "store/redis/keys.h"

#include <string.h>

#include "base/error.h"
#include "base/name.h"

struct helper {
    const char *end; /* with its ':' */
    size_t length;
};

#define HELPER(text)                                                                                                   \
    {                                                                                                                  \
        (text), sizeof(text) - 1                                                                                       \
    }
static const struct helper helpers[SNK_KEYS] = {
    [SNK_KEY_LOCK] = HELPER(""),
    [SNK_KEY_TOKEN] = HELPER(":token"),
    [SNK_KEY_GONE] = HELPER(":gone"),
    [SNK_KEY_LOG] = HELPER(":log"),
    [SNK_KEY_QUEUE] = HELPER(":queue"),
    [SNK_KEY_QUEUE_INFO] = HELPER(":queue:info"),
    [SNK_KEY_QUEUE_UNTIL] = HELPER(":queue:until"),
};

/* Those that only the scripts know by name; see keys.h. */
static const struct helper more_helpers[] = {
    HELPER(":holders"),
    HELPER(":holders:info"),
    HELPER(":count"),
    HELPER(":version"),
};
#define MORE_HELPERS (sizeof more_helpers / sizeof more_helpers[0])

/* As Redis looks for it: between the first '{' and the first '}' after that, and not empty. */
static bool has_hash_tag(const char *key)
{
    const char *open = strchr(key, '{');
    const char *end = open == NULL ? NULL : strchr(open, '}');
    return end != NULL && end > open + 1;
}

/* What stands between the key of a name and its helpers, by object. */
static const struct helper objects[] = {
    [SNK_OBJECT_LOCK] = HELPER(""),
    [SNK_OBJECT_LATCH] = HELPER(":latch"),
    [SNK_OBJECT_CONDITION] = HELPER(":condition"),
};
#define OBJECTS (sizeof objects / sizeof objects[0])

static char *append(char *to, const char *text, size_t length)
{
    memcpy(to, text, length);
    to[length] = '\0';
    return to + length;
}

/* Every request makes all of them, so they are put together by hand. */
sneck_status snk_keys_make_for(snk_keys *keys, snk_object object, const char *prefix, const char *name,
                               sneck_error *error)
{
    char *lock = keys->text[SNK_KEY_LOCK];
    char *end = append(lock, prefix, strnlen(prefix, SNK_PREFIX_LENGTH_MAX));
    end = append(end, name, strnlen(name, SNK_NAME_LENGTH_MAX));
    size_t length = (size_t)(end - lock);
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
        to = append(to, lock, length);
        if (!tagged)
            *to++ = '}';
        to = append(to, objects[object].end, objects[object].length);
        to = append(to, helpers[i].end, helpers[i].length);
        keys->length[i] = (size_t)(to - keys->text[i]);
    }
    if (object == SNK_OBJECT_LOCK)
        return SNECK_OK;
    keys->length[SNK_KEY_LOCK] = keys->length[SNK_KEY_TOKEN] - helpers[SNK_KEY_TOKEN].length;
    (void)append(lock, keys->text[SNK_KEY_TOKEN], keys->length[SNK_KEY_LOCK]);
    return SNECK_OK;
}

sneck_status snk_keys_make(snk_keys *keys, const char *prefix, const char *name, sneck_error *error)
{
    return snk_keys_make_for(keys, SNK_OBJECT_LOCK, prefix, name, error);
}

static bool ends_with(const char *text, size_t length, const char *end, size_t end_length)
{
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

/* The length of what is left of a key without the one of these that it ends with; 0: with none. `*index_out`: which. */
static size_t strip(const char *key, size_t length, const struct helper ends[], size_t count, size_t *index_out)
{
    for (size_t i = 0; i < count; i++) {
        if (ends[i].length > 0 && ends_with(key, length, ends[i].end, ends[i].length)) {
            *index_out = i;
            return length - ends[i].length;
        }
    }
    return 0;
}

/*
 * The length of the key that a helper's key belongs to, or 0 when it is no helper's; `*is_queue_out`: it is the queue of
 * a lock.
 */
static size_t strip_helper(const char *key, size_t length, bool *is_queue_out)
{
    size_t index = SNK_KEY_LOCK;
    size_t lock_length = strip(key, length, helpers, SNK_KEYS, &index);
    *is_queue_out = index == SNK_KEY_QUEUE;
    if (lock_length == 0)
        lock_length = strip(key, length, more_helpers, MORE_HELPERS, &index);
    size_t object_length = strip(key, lock_length == 0 ? length : lock_length, objects, OBJECTS, &index);
    if (object_length == 0)
        return lock_length;
    *is_queue_out = false;
    return object_length;
}

bool snk_keys_name_of(const char *key, size_t length, const char *prefix, char name[SNK_NAME_LENGTH_MAX + 1])
{
    char lock[SNK_KEY_SIZE];
    if (length == 0 || length >= sizeof lock || memchr(key, '\0', length) != NULL)
        return false;
    bool is_queue = false;
    size_t lock_length = strip_helper(key, length, &is_queue);
    bool braced = lock_length > 2 && key[0] == '{' && key[lock_length - 1] == '}';
    if (braced) {
        key++;
        lock_length -= 2;
    }
    memcpy(lock, key, lock_length == 0 ? length : lock_length);
    lock[lock_length == 0 ? length : lock_length] = '\0';
    /* A helper stands beside a key with a hash tag, or around one without; else it is a lock with an odd name. */
    bool is_helper = lock_length > 0 && braced != has_hash_tag(lock);
    if (is_helper && !is_queue)
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
