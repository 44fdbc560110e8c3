#include "client/idpool.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

void snk_idpool_init(snk_idpool *pool)
{
    *pool = (snk_idpool){ 0 };
    (void)pthread_mutex_init(&pool->mutex, NULL);
}

void snk_idpool_deinit(snk_idpool *pool)
{
    explicit_bzero(pool->ids, sizeof pool->ids);
    (void)pthread_mutex_destroy(&pool->mutex);
}

static bool refill_locked(snk_idpool *pool)
{
    unsigned char *bytes = (unsigned char *)pool->ids;
    size_t filled = 0;
    while (filled < sizeof pool->ids) {
        ssize_t got = getrandom(bytes + filled, sizeof pool->ids - filled, GRND_NONBLOCK);
        if (got < 0 && errno != EINTR)
            return false;
        if (got > 0)
            filled += (size_t)got;
    }
    pool->left = SNK_IDPOOL_IDS;
    return true;
}

bool snk_idpool_draw(snk_idpool *pool, snk_id *id_out)
{
    (void)pthread_mutex_lock(&pool->mutex);
    bool drawn = pool->left > 0 || refill_locked(pool);
    if (drawn) {
        snk_id *id = &pool->ids[--pool->left];
        *id_out = *id;
        *id = (snk_id){ { 0 } };
        drawn = !snk_id_is_none(id_out);
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    return drawn;
}
