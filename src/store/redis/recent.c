#include "store/redis/recent.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void snk_recent_init(snk_recent *recent)
{
    (void)pthread_mutex_init(&recent->mutex, NULL);
}

void snk_recent_deinit(snk_recent *recent)
{
    for (size_t i = 0; i < SNK_RECENT_BUCKETS; i++)
        for (size_t j = 0; j < SNK_RECENT_WAYS; j++)
            free(recent->names[i][j].text);
    (void)pthread_mutex_destroy(&recent->mutex);
}

static snk_recent_name *bucket_of(snk_recent *recent, const char *name)
{
    uint32_t hash = 5381;
    for (const char *at = name; *at != '\0'; at++)
        hash = hash * 33 ^ (unsigned char)*at;
    return recent->names[hash % SNK_RECENT_BUCKETS];
}

void snk_recent_note(snk_recent *recent, const char *name, uint16_t slot)
{
    (void)pthread_mutex_lock(&recent->mutex);
    snk_recent_name *bucket = bucket_of(recent, name);
    snk_recent_name *place = &bucket[0];
    bool found = false;
    for (size_t i = 0; i < SNK_RECENT_WAYS && !found; i++) {
        found = bucket[i].text != NULL && strcmp(bucket[i].text, name) == 0;
        if (found || bucket[i].used_at_ns < place->used_at_ns)
            place = &bucket[i];
    }
    if (!found) {
        free(place->text);
        place->text = strdup(name);
        place->slot = slot;
    }
    place->used_at_ns = place->text == NULL ? 0 : snk_now_ns();
    (void)pthread_mutex_unlock(&recent->mutex);
}

/* Copies the names of one bucket that are in these slots; how many. */
static size_t copy_bucket(snk_recent *recent, size_t index, const uint8_t slots[],
                          char names[SNK_RECENT_WAYS][SNK_NAME_LENGTH_MAX + 1])
{
    size_t count = 0;
    (void)pthread_mutex_lock(&recent->mutex);
    for (size_t i = 0; i < SNK_RECENT_WAYS; i++) {
        const snk_recent_name *name = &recent->names[index][i];
        if (name->text == NULL || (slots[name->slot / 8] >> name->slot % 8 & 1) == 0)
            continue;
        memcpy(names[count], name->text, strnlen(name->text, SNK_NAME_LENGTH_MAX) + 1);
        names[count++][SNK_NAME_LENGTH_MAX] = '\0';
    }
    (void)pthread_mutex_unlock(&recent->mutex);
    return count;
}

void snk_recent_visit(snk_recent *recent, const uint8_t slots[], void (*each)(void *context, const char *name),
                      void *context)
{
    char names[SNK_RECENT_WAYS][SNK_NAME_LENGTH_MAX + 1];
    for (size_t i = 0; i < SNK_RECENT_BUCKETS; i++) {
        size_t count = copy_bucket(recent, i, slots, names);
        for (size_t j = 0; j < count; j++)
            each(context, names[j]);
    }
}
