#include "store/quorum/fields.h"

void snk_quorum_texts_make(const snk_quorum_store *store, const snk_quorum_fields *fields, uint64_t token,
                           snk_quorum_texts *texts)
{
    snk_attempt_text(&fields->claim, fields->attempt, texts->claim);
    (void)snk_text_number(texts->token, (int64_t)token);
    char *end = snk_text_append(texts->owner, store->identity.uuid, SNK_UUID_TEXT_SIZE - 1);
    (void)snk_text_number(snk_text_append(end, ":", 1), fields->thread > 0 ? fields->thread : 0);
    texts->why = fields->why;
}

void snk_quorum_texts_add(const snk_quorum_store *store, const snk_quorum_texts *texts, snk_node_words *words)
{
    snk_node_words_add(words, texts->owner);
    snk_node_words_add(words, "1");
    snk_node_words_add(words, "~claim");
    snk_node_words_add(words, texts->claim);
    snk_node_words_add(words, "~token");
    snk_node_words_add(words, texts->token);
    snk_node_words_add(words, "~owner");
    snk_node_words_add(words, texts->owner);
    snk_node_words_add(words, "~host");
    snk_node_words_add(words, store->host);
    snk_node_words_add(words, "~pid");
    snk_node_words_add(words, store->pid);
    if (texts->why[0] == '\0')
        return;
    snk_node_words_add(words, "~why");
    snk_node_words_add(words, texts->why);
}
