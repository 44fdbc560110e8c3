/* A doubly linked list whose links live in the elements. A zeroed link is in no list. */
#ifndef SNK_BASE_LIST_H
#define SNK_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct snk_link {
    struct snk_link *next;
    struct snk_link *previous;
} snk_link;

typedef struct snk_list {
    snk_link head; /* next: first, previous: last */
} snk_list;

/* The element of type `type` whose link `member` is at `pointer`. */
/* clang-format off */
#define SNK_CONTAINER(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))
/* clang-format on */

static inline void snk_list_init(snk_list *list)
{
    list->head.next = &list->head;
    list->head.previous = &list->head;
}

static inline bool snk_list_is_empty(const snk_list *list)
{
    return list->head.next == &list->head;
}

static inline bool snk_link_is_linked(const snk_link *link)
{
    return link->next != NULL;
}

static inline void snk_list_append(snk_list *list, snk_link *link)
{
    link->previous = list->head.previous;
    link->next = &list->head;
    list->head.previous->next = link;
    list->head.previous = link;
}

static inline void snk_list_prepend(snk_list *list, snk_link *link)
{
    link->next = list->head.next;
    link->previous = &list->head;
    list->head.next->previous = link;
    list->head.next = link;
}

/* Takes a link out of its list; one that is in none stays so. */
static inline void snk_list_remove(snk_link *link)
{
    if (!snk_link_is_linked(link))
        return;
    link->previous->next = link->next;
    link->next->previous = link->previous;
    link->next = NULL;
    link->previous = NULL;
}

/* First link, or NULL. */
static inline snk_link *snk_list_first(const snk_list *list)
{
    return snk_list_is_empty(list) ? NULL : list->head.next;
}

/* Takes the first link out; NULL when there is none. */
static inline snk_link *snk_list_take_first(snk_list *list)
{
    snk_link *link = snk_list_first(list);
    if (link == NULL)
        return NULL;
    list->head.next = link->next;
    link->next->previous = &list->head;
    link->next = NULL;
    link->previous = NULL;
    return link;
}

/* Last link, or NULL. */
static inline snk_link *snk_list_last(const snk_list *list)
{
    return snk_list_is_empty(list) ? NULL : list->head.previous;
}

/* The link after `link`, or NULL at the end. */
static inline snk_link *snk_list_next(const snk_list *list, const snk_link *link)
{
    return link->next == &list->head ? NULL : link->next;
}

#endif
