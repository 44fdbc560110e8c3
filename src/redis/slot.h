/* The hash slots of a Redis Cluster. */
#ifndef SNK_REDIS_SLOT_H
#define SNK_REDIS_SLOT_H

#include <stddef.h>
#include <stdint.h>

#define SNK_REDIS_SLOTS 16384
#define SNK_REDIS_SLOT_ANY UINT16_MAX /* of a command without keys: any master will do */
#define SNK_REDIS_SLOT_TAG_SIZE 8

/* The slot of a key, by its hash tag if it has one. */
uint16_t snk_redis_slot_of(const char *key, size_t length);

/* For each slot the smallest number whose digits, as a key, are in it. An array of SNK_REDIS_SLOTS. */
void snk_redis_slot_tags(uint32_t tags[]);

#endif
