#include "store/zookeeper/flight.h"

#include <stdlib.h>
#include <string.h>

#include "base/futex.h"

snk_zk_flight *snk_zk_flight_new(size_t count, snk_zk_flights *flights)
{
    snk_zk_flight *flight = calloc(1, sizeof *flight);
    if (flight == NULL)
        return NULL;
    flight->count = count;
    flight->flights = flights;
    flight->replies = calloc(count, sizeof *flight->replies);
    flight->seats = calloc(count, sizeof *flight->seats);
    atomic_store(&flight->owners, 2);
    atomic_store(&flight->pending, (uint32_t)count);
    if (flight->replies == NULL || flight->seats == NULL) {
        atomic_store(&flight->owners, 1);
        snk_zk_flight_unref(flight);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        flight->seats[i].flight = flight;
        flight->seats[i].reply = &flight->replies[i];
        flight->replies[i].rc = ZOPERATIONTIMEOUT;
    }
    return flight;
}

static void free_reply(snk_zk_reply *reply)
{
    free(reply->text);
    for (size_t i = 0; i < reply->count; i++)
        free(reply->names[i]);
    free(reply->names);
}

void snk_zk_flight_unref(snk_zk_flight *flight)
{
    if (flight == NULL || atomic_fetch_sub(&flight->owners, 1) != 1)
        return;
    for (size_t i = 0; i < flight->count && flight->replies != NULL && flight->seats != NULL; i++) {
        free_reply(&flight->replies[i]);
        free(flight->seats[i].path_buffer);
    }
    free(flight->replies);
    free(flight->seats);
    free(flight);
}

void snk_zk_flight_arrive(snk_zk_flight *flight)
{
    if (atomic_fetch_sub(&flight->pending, 1) != 1)
        return;
    flight->next = flight->flights->landed;
    flight->flights->landed = flight;
    flight->flights->under_way--;
    atomic_store(&flight->landed, 1);
}

void snk_zk_flights_wake(snk_zk_flight *landed)
{
    while (landed != NULL) {
        snk_zk_flight *next = landed->next;
        snk_futex_wake(&landed->landed, 1, false);
        snk_zk_flight_unref(landed);
        landed = next;
    }
}

/* ---- What the library answers ---- */

static snk_zk_seat *seat_of(const void *data)
{
    union {
        const void *in;
        snk_zk_seat *out;
    } pointer = { .in = data };
    return pointer.out;
}

static void arrive(snk_zk_seat *seat, int rc, const struct Stat *stat)
{
    seat->reply->rc = rc;
    if (rc == ZOK && stat != NULL)
        seat->reply->stat = *stat;
    snk_zk_flight_arrive(seat->flight);
}

static void on_void(int rc, const void *data)
{
    arrive(seat_of(data), rc, NULL);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
    arrive(seat_of(data), rc, stat);
}

static void on_made(int rc, const char *path, const void *data)
{
    (void)path;
    arrive(seat_of(data), rc == ZNODEEXISTS ? ZOK : rc, NULL);
}

static void on_entered(int rc, const char *path, const struct Stat *stat, const void *data)
{
    snk_zk_seat *seat = seat_of(data);
    if (rc == ZOK) {
        seat->reply->text = strdup(path);
        if (seat->reply->text == NULL)
            rc = ZSYSTEMERROR;
    }
    arrive(seat, rc, stat);
}

static void on_data(int rc, const char *value, int length, const struct Stat *stat, const void *data)
{
    snk_zk_seat *seat = seat_of(data);
    if (rc == ZOK) {
        size_t size = length > 0 ? (size_t)length : 0;
        seat->reply->text = calloc(1, size + 1);
        if (seat->reply->text == NULL)
            rc = ZSYSTEMERROR;
        else if (size > 0)
            memcpy(seat->reply->text, value, size);
    }
    arrive(seat, rc, stat);
}

static bool copy_names(snk_zk_reply *reply, const struct String_vector *strings)
{
    size_t count = strings->count > 0 ? (size_t)strings->count : 0;
    reply->names = calloc(count + 1, sizeof *reply->names);
    if (reply->names == NULL)
        return false;
    for (; reply->count < count; reply->count++) {
        reply->names[reply->count] = strdup(strings->data[reply->count]);
        if (reply->names[reply->count] == NULL)
            return false;
    }
    return true;
}

static void on_names(int rc, const struct String_vector *strings, const struct Stat *stat, const void *data)
{
    snk_zk_seat *seat = seat_of(data);
    if (rc == ZOK && !copy_names(seat->reply, strings))
        rc = ZSYSTEMERROR;
    arrive(seat, rc, stat);
}

/* The two operations of one transaction have one number, which is the new node's czxid and the other one's mzxid. */
static void on_entered_marked(int rc, const void *data)
{
    snk_zk_seat *seat = seat_of(data);
    if (rc == ZOK) {
        seat->reply->text = seat->path_buffer;
        seat->path_buffer = NULL;
        seat->stat.czxid = seat->stat.mzxid;
    }
    arrive(seat, rc, &seat->stat);
}

/* ---- What it is asked ---- */

static int length_of(const snk_zk_request *request)
{
    return request->data == NULL ? 0 : (int)strlen(request->data);
}

static const char *data_of(const snk_zk_request *request)
{
    return request->data == NULL ? "" : request->data;
}

static int send_marked(snk_zk_seat *seat, zhandle_t *handle, const snk_zk_request *request,
                       const struct ACL_vector *acl)
{
    seat->path_buffer = calloc(1, SNK_ZK_PATH_SIZE);
    if (seat->path_buffer == NULL)
        return ZSYSTEMERROR;
    zoo_create_op_init(&seat->ops[0], request->path, data_of(request), length_of(request), acl,
                       ZOO_EPHEMERAL | ZOO_SEQUENCE, seat->path_buffer, SNK_ZK_PATH_SIZE);
    zoo_set_op_init(&seat->ops[1], request->other, "", 0, -1, &seat->stat);
    return zoo_amulti(handle, 2, seat->ops, seat->results, on_entered_marked, seat);
}

static int send_beside(snk_zk_seat *seat, zhandle_t *handle, const snk_zk_request *request,
                       const struct ACL_vector *acl)
{
    seat->path_buffer = calloc(1, SNK_ZK_PATH_SIZE);
    if (seat->path_buffer == NULL)
        return ZSYSTEMERROR;
    zoo_create_op_init(&seat->ops[0], request->path, data_of(request), length_of(request), acl, ZOO_EPHEMERAL,
                       seat->path_buffer, SNK_ZK_PATH_SIZE);
    zoo_set_op_init(&seat->ops[1], request->other, request->other_data, (int)strlen(request->other_data), -1,
                    &seat->stat);
    return zoo_amulti(handle, 2, seat->ops, seat->results, on_entered_marked, seat);
}

static int send_settle(snk_zk_seat *seat, zhandle_t *handle, const snk_zk_request *request)
{
    zoo_set_op_init(&seat->ops[0], request->path, data_of(request), length_of(request), request->version, &seat->stat);
    zoo_delete_op_init(&seat->ops[1], request->other, -1);
    return zoo_amulti(handle, 2, seat->ops, seat->results, on_void, seat);
}

static int send_make(snk_zk_seat *seat, zhandle_t *handle, const snk_zk_request *request, const struct ACL_vector *acl)
{
    int mode = request->verb == SNK_ZK_MAKE_CONTAINER ? ZOO_CONTAINER : 0;
    return zoo_acreate(handle, request->path, data_of(request), length_of(request), acl, mode, on_made, seat);
}

static int send_request(snk_zk_seat *seat, zhandle_t *handle, const snk_zk_request *request,
                        const struct ACL_vector *acl, watcher_fn watcher, void *context)
{
    switch (request->verb) {
    case SNK_ZK_MAKE:
    case SNK_ZK_MAKE_CONTAINER:
        return send_make(seat, handle, request, acl);
    case SNK_ZK_ENTER:
        return zoo_acreate2(handle, request->path, data_of(request), length_of(request), acl,
                            ZOO_EPHEMERAL | ZOO_SEQUENCE, on_entered, seat);
    case SNK_ZK_ENTER_MARKED:
        return send_marked(seat, handle, request, acl);
    case SNK_ZK_ENTER_BESIDE:
        return send_beside(seat, handle, request, acl);
    case SNK_ZK_GET:
        return zoo_aget(handle, request->path, 0, on_data, seat);
    case SNK_ZK_GET_WATCH:
        return zoo_awget(handle, request->path, watcher, context, on_data, seat);
    case SNK_ZK_SET:
        return zoo_aset(handle, request->path, data_of(request), length_of(request), request->version, on_stat, seat);
    case SNK_ZK_STAT:
        return zoo_aexists(handle, request->path, 0, on_stat, seat);
    case SNK_ZK_LIST:
        return zoo_aget_children2(handle, request->path, 0, on_names, seat);
    case SNK_ZK_LIST_WATCH:
        return zoo_awget_children2(handle, request->path, watcher, context, on_names, seat);
    case SNK_ZK_DELETE:
        return zoo_adelete(handle, request->path, -1, on_void, seat);
    case SNK_ZK_SETTLE:
        return send_settle(seat, handle, request);
    case SNK_ZK_SYNC:
        return zoo_async(handle, request->path, on_made, seat);
    }
    return ZUNIMPLEMENTED;
}

void snk_zk_seat_send(snk_zk_seat *seat, zhandle_t *handle, const snk_zk_request *request, const struct ACL_vector *acl,
                      watcher_fn watcher, void *context)
{
    int rc = send_request(seat, handle, request, acl, watcher, context);
    if (rc != ZOK)
        arrive(seat, rc, NULL);
}
