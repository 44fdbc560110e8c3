#include "store/redis/crowd.h"

const char *snk_object_word(snk_object object)
{
    static const char *const words[] = {
        [SNK_OBJECT_LOCK] = "lock",
        [SNK_OBJECT_LATCH] = "latch",
        [SNK_OBJECT_CONDITION] = "condition",
    };
    return words[object];
}

static snk_run acquire_run(const snk_redis_store *store, const snk_claim *claim, snk_texts *text)
{
    static const snk_id none;
    const snk_send *send = &claim->send;
    const snk_grip *grip = &claim->grip;
    snk_texts_asker(text, store, claim->thread);
    (void)snk_text_number(text->tokens, grip->units);
    text->beside[0] = '\0';
    if (!snk_id_equal(&grip->beside, &none))
        snk_id_to_hex(&grip->beside, text->beside);
    return (snk_run){
        .script = SNK_SCRIPT_CROWD_ACQUIRE,
        .keys = &text->keys,
        .count = 13,
        .arguments = { text->claim, text->lease, snk_mode_word(grip->mode), text->tokens, snk_text_flag(send->queue),
                       text->beside, snk_object_word(grip->object), snk_text_flag(send->fair),
                       snk_text_flag(store->options.history), text->owner, text->pid, store->host,
                       claim->why == NULL ? "" : claim->why },
    };
}

static snk_run renew_run(const snk_redis_store *store, const snk_claim *claim, snk_texts *text)
{
    return (snk_run){
        .script = SNK_SCRIPT_CROWD_RENEW,
        .keys = &text->keys,
        .count = 4,
        .arguments = { text->claim, text->lease, snk_text_flag(store->options.history),
                       snk_object_word(claim->grip.object) },
    };
}

static snk_run release_run(const snk_redis_store *store, const snk_claim *claim, snk_texts *text)
{
    const snk_send *send = &claim->send;
    bool is_lock = claim->grip.object == SNK_OBJECT_LOCK;
    snk_texts_tombstone(text, send);
    snk_announcement_make(store, claim->name, &text->keys, &text->announcement);
    return (snk_run){
        .script = SNK_SCRIPT_CROWD_RELEASE,
        .keys = &text->keys,
        .count = 10,
        .arguments = { text->claim, text->lease, text->tombstone, snk_text_flag(store->options.history),
                       is_lock ? text->announcement.channel : "", text->announcement.message,
                       send->not_before_ns > 0 ? "lost" : "released", snk_object_word(claim->grip.object),
                       snk_text_flag(send->ends_hold), text->announcement.command },
    };
}

snk_run snk_crowd_run(const snk_redis_store *store, const snk_claim *claim, snk_texts *text)
{
    switch (claim->send.ask) {
    case SNK_ASK_ACQUIRE:
        return acquire_run(store, claim, text);
    case SNK_ASK_RENEW:
        return renew_run(store, claim, text);
    case SNK_ASK_RELEASE:
        return release_run(store, claim, text);
    }
    return (snk_run){ .count = 0 };
}
