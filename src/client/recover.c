#include "client/recover.h"

#include "client/async.h"
#include "client/client.h"

static bool has_lost_levels_locked(const snk_entry *entry, uint64_t owner)
{
    const snk_list *lost = &entry->machine.lost;
    for (snk_link *link = snk_list_first(lost); link != NULL; link = snk_list_next(lost, link))
        if (SNK_CONTAINER(link, snk_hold, link)->owner == owner)
            return true;
    return false;
}

bool snk_recover_is_needed(const snk_letter *lost)
{
    (void)pthread_mutex_lock(&lost->entry->mutex);
    bool needed = has_lost_levels_locked(lost->entry, lost->owner);
    (void)pthread_mutex_unlock(&lost->entry->mutex);
    return needed;
}

bool snk_recover_start(sneck_client *client, const snk_letter *lost)
{
    snk_waiter waiter = {
        .owner = lost->owner,
        .terms = lost->terms,
        .reentrant = true,
        .reserves = true,
    };
    return snk_request_rescue(client, lost->entry, &waiter, lost->thread);
}
