#include "store/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct snk_text {
    struct snk_text *next;
    char data[];
};

static const char *copy_text(snk_view *view, const char *text)
{
    size_t size = strlen(text) + 1;
    if (size == 1)
        return "";
    struct snk_text *copy = malloc(sizeof *copy + size);
    if (copy == NULL) {
        view->out_of_memory = true;
        return "";
    }
    memcpy(copy->data, text, size);
    copy->next = view->texts;
    view->texts = copy;
    return copy->data;
}

static sneck_party copy_party(snk_view *view, const sneck_party *party)
{
    sneck_party copy = *party;
    copy.owner = copy_text(view, party->owner);
    copy.host = copy_text(view, party->host);
    copy.why = copy_text(view, party->why);
    if (copy.mode == NULL)
        copy.mode = snk_mode_word(SNK_MODE_EXCLUSIVE);
    return copy;
}

/*
 * The array with room for one more. It has no field for its room: that is used up exactly when the count is a power of
 * two.
 */
static void *grown(snk_view *view, void *array, size_t count, size_t element_size)
{
    size_t room = (count & (count - 1)) == 0 ? count : count + 1;
    void *larger = snk_array_with_room(array, count, &room, element_size);
    if (larger == NULL)
        view->out_of_memory = true;
    return larger;
}

static void free_texts(snk_view *view)
{
    while (view->texts != NULL) {
        struct snk_text *next = view->texts->next;
        free(view->texts);
        view->texts = next;
    }
}

static void set_empty(snk_view *view)
{
    *view = (snk_view){ .info = {
                            .name = "", .permits = -1, .holder = { .owner = "", .host = "", .why = "", .mode = "" } } };
}

snk_view *snk_view_new(void)
{
    snk_view *view = malloc(sizeof *view);
    if (view != NULL)
        set_empty(view);
    return view;
}

void snk_view_reset(snk_view *view)
{
    free_texts(view);
    free(view->holders);
    free(view->waiters);
    free(view->incidents);
    free(view->nodes);
    set_empty(view);
}

void snk_view_free(snk_view *view)
{
    if (view == NULL)
        return;
    snk_view_reset(view);
    free(view);
}

void snk_view_name(snk_view *view, const char *name)
{
    view->info.name = copy_text(view, name);
}

void snk_view_hold(snk_view *view, const sneck_party *holder, uint64_t token, bool fair)
{
    sneck_party *holders = grown(view, view->holders, view->info.holder_count, sizeof *holders);
    if (holders == NULL)
        return;
    holders[view->info.holder_count] = copy_party(view, holder);
    holders[view->info.holder_count].token = token;
    view->holders = holders;
    view->info.holders = holders;
    if (view->info.holder_count++ > 0)
        return;
    view->info.held = true;
    view->info.holder = holders[0];
    view->info.token = token;
    view->info.fair = fair;
}

void snk_view_waiter(snk_view *view, const sneck_party *waiter)
{
    sneck_party *waiters = grown(view, view->waiters, view->info.waiter_count, sizeof *waiters);
    if (waiters == NULL)
        return;
    waiters[view->info.waiter_count++] = copy_party(view, waiter);
    view->waiters = waiters;
    view->info.waiters = waiters;
}

void snk_view_incident(snk_view *view, const sneck_incident *incident)
{
    sneck_incident *incidents = grown(view, view->incidents, view->info.incident_count, sizeof *incidents);
    if (incidents == NULL)
        return;
    sneck_incident copy = *incident;
    copy.kind = copy_text(view, incident->kind);
    copy.owner = copy_text(view, incident->owner);
    copy.text = copy_text(view, incident->text);
    incidents[view->info.incident_count++] = copy;
    view->incidents = incidents;
    view->info.incidents = incidents;
}

void snk_view_node(snk_view *view, const sneck_node *node)
{
    sneck_node *nodes = grown(view, view->nodes, view->info.node_count, sizeof *nodes);
    if (nodes == NULL)
        return;
    sneck_node *copy = &nodes[view->info.node_count++];
    *copy = *node;
    copy->name = copy_text(view, node->name);
    copy->state = copy_text(view, node->state);
    copy->trouble = copy_text(view, node->trouble);
    view->nodes = nodes;
    view->info.nodes = nodes;
}
