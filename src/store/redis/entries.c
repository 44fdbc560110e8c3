#include "store/redis/entries.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void snk_entry_word(char *to, size_t size, const char *text)
{
    (void)snk_copy_text(to, size, text);
    for (char *at = to; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ')
            *at = '_';
    }
    if (to[0] == '\0')
        (void)snk_copy_text(to, size, "-");
}
#include "store/grip.h"

/* Copies a reply's text so that it can be cut into words. False when it is none, or too long. */
static bool copy_entry(const redisReply *reply, char text[SNK_ENTRY_SIZE])
{
    if (reply->type != REDIS_REPLY_STRING || (size_t)reply->len >= SNK_ENTRY_SIZE)
        return false;
    memcpy(text, reply->str, (size_t)reply->len);
    text[reply->len] = '\0';
    return true;
}

/* Cuts `text` at spaces into `count` words, the last of which is the rest. False when there are fewer. */
static bool cut_words(char *text, size_t count, char *words[])
{
    for (size_t i = 0; i < count; i++) {
        words[i] = text;
        if (i + 1 == count)
            return true;
        char *space = strchr(text, ' ');
        if (space == NULL)
            return false;
        *space = '\0';
        text = space + 1;
    }
    return true;
}

static void set_field(snk_holder_entry *holder, const char *field, const char *value)
{
    if (strcmp(field, "~token") == 0)
        holder->token = strtoull(value, NULL, 10);
    else if (strcmp(field, "~host") == 0)
        holder->party.host = value;
    else if (strcmp(field, "~why") == 0)
        holder->party.why = value;
    else if (strcmp(field, "~pid") == 0)
        holder->party.pid = strtoll(value, NULL, 10);
    else if (strcmp(field, "~since") == 0)
        holder->since_ms = strtoll(value, NULL, 10);
    else if (strcmp(field, "~fair") == 0)
        holder->fair = strcmp(value, "1") == 0;
    else if (field[0] != '~' && strtoll(value, NULL, 10) > 0)
        holder->party.owner = field;
}

static void set_empty(snk_holder_entry *holder)
{
    holder->party = (sneck_party){ .owner = "", .host = "", .why = "" };
    holder->token = 0;
    holder->since_ms = 0;
    holder->fair = false;
}

bool snk_entry_read_hash(const redisReply *fields, snk_holder_entry *holder)
{
    set_empty(holder);
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        if (fields->element[i]->type != REDIS_REPLY_STRING || fields->element[i + 1]->type != REDIS_REPLY_STRING)
            return false;
        set_field(holder, fields->element[i]->str, fields->element[i + 1]->str);
    }
    return holder->party.owner[0] != '\0';
}

/* What a grant of ours has written behind its token: last first since fair pid host why. */
static void read_counter(const char *counter, snk_holder_entry *holder)
{
    char *words[7];
    size_t length = strnlen(counter, SNK_ENTRY_SIZE);
    if (length == SNK_ENTRY_SIZE)
        return;
    memcpy(holder->text[1], counter, length + 1);
    if (!cut_words(holder->text[1], 7, words))
        return;
    holder->token = strtoull(words[1], NULL, 10);
    holder->since_ms = strtoll(words[2], NULL, 10);
    holder->fair = strcmp(words[3], "1") == 0;
    holder->party.pid = strtoll(words[4], NULL, 10);
    holder->party.host = words[5];
    holder->party.why = words[6];
}

bool snk_entry_read_string(const redisReply *value, const char *counter, snk_holder_entry *holder)
{
    set_empty(holder);
    if (value->elements != 1 || !copy_entry(value->element[0], holder->text[0]) || holder->text[0][0] == '\0')
        return false;
    holder->party.owner = holder->text[0];
    char *claim = strrchr(holder->text[0], ':');
    if (claim != NULL && strlen(claim) == 33 && strspn(claim + 1, "0123456789abcdef") == 32) {
        *claim = '\0';
        read_counter(counter, holder);
    }
    return true;
}

/* Static text for a mode's word; that of a waiter who wants to be alone says how it wants to be woken. */
static const char *mode_of_word(const char *word)
{
    static const snk_mode modes[] = { SNK_MODE_SHARED, SNK_MODE_PERMIT, SNK_MODE_TAKE, SNK_MODE_PASS };
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(word, snk_mode_word(modes[i])) == 0)
            return snk_mode_word(modes[i]);
    }
    return snk_mode_word(SNK_MODE_EXCLUSIVE);
}

bool snk_entry_read_one_of_many(const redisReply *entry, snk_holder_entry *holder)
{
    char *words[10]; /* mode units first last fair owner pid since host why */
    set_empty(holder);
    if (!copy_entry(entry, holder->text[0]) || !cut_words(holder->text[0], 10, words))
        return false;
    holder->party = (sneck_party){
        .mode = mode_of_word(words[0]),
        .units = (uint32_t)strtoul(words[1], NULL, 10),
        .owner = words[5],
        .pid = strtoll(words[6], NULL, 10),
        .host = words[8],
        .why = words[9],
    };
    holder->token = strtoull(words[2], NULL, 10);
    holder->since_ms = strtoll(words[7], NULL, 10);
    holder->fair = strcmp(words[4], "1") == 0;
    return true;
}

bool snk_entry_read_waiter(const redisReply *entry, snk_waiter_entry *waiter)
{
    char *words[9]; /* lease tokens fair wake owner pid since host why */
    if (!copy_entry(entry, waiter->text) || !cut_words(waiter->text, 9, words))
        return false;
    waiter->party = (sneck_party){
        .mode = mode_of_word(words[3]),
        .owner = words[4],
        .pid = strtoll(words[5], NULL, 10),
        .host = words[7],
        .why = words[8],
    };
    waiter->since_ms = strtoll(words[6], NULL, 10);
    /* Whoever wants to be alone says there how many tokens would be useful. */
    if (strcmp(waiter->party.mode, snk_mode_word(SNK_MODE_EXCLUSIVE)) != 0)
        waiter->party.units = (uint32_t)strtoul(words[1], NULL, 10);
    return true;
}

bool snk_entry_read_log(const redisReply *entry, snk_log_entry *out)
{
    char *words[6]; /* time kind token owner since text */
    if (!copy_entry(entry, out->text) || !cut_words(out->text, 6, words))
        return false;
    out->incident = (sneck_incident){
        .time_ms = strtoll(words[0], NULL, 10),
        .kind = words[1],
        .token = strtoull(words[2], NULL, 10),
        .owner = words[3],
        .text = words[5],
    };
    out->since_ms = strtoll(words[4], NULL, 10);
    return true;
}
