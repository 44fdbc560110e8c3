/*
 * The inside of a command connection.
 *
 * A call goes through these stages, under the mutex: QUEUED while there is no connection; STREAMED when its bytes stand
 * in `out` and its slot in the ring; DONE. The replies come in the order of the slots. A call that is given up alone
 * leaves its slot empty, so that its reply is dropped when it comes; when the connection is given up, all slots are
 * settled at once.
 *
 * Two roles do the I/O, each held by at most one thread, taken and given back under the mutex, which is not held during
 * system calls:
 *
 *   writer  (`writing`) sends `sending`. Who adds bytes to `out` and finds no writer becomes the writer; it swaps `out`
 *           and `sending` and sends until `out` is empty, so that it also sends what others add meanwhile. When the
 *           socket takes no more (`clogged`), the role is left, and only the connection's own thread takes it again,
 *           waits until the socket is writable, and goes on.
 *   reader  (`reading`) receives, parses and settles calls for everybody. A driver that has something to wait for and
 *           finds no reader becomes the reader, until its own calls are done; then it gives the role back and wakes the
 *           driver that went to sleep last (whose reply probably comes last, so that the role moves seldom), or, when
 *           no driver sleeps but calls without driver are on their way, the connection's own thread.
 *
 *           A thread that asks several servers at once (attend.c) is the reader of all their connections meanwhile, until it
 *           knows enough. What is still to come then is left in the sockets for a moment, if nobody waits for it.
 *
 * Whenever replies are outstanding and nobody reads, a driver that wants one of them is awake or was just woken, or the
 * thread was, or will wake up soon (`linger_until_ns`): who gives the role back sees to that, and who wakes up looks again. A reply is taken off the ring, and its
 * driver's count lowered, in one critical section; so nobody becomes the reader with nothing left to come.
 *
 * Cork: a reader that completes replies while SNK_REDIS_CORK_AT or more calls are in flight lets the woken threads add
 * their next commands without sending (`corks`), and sends them in one go when it has woken all. Whoever uncorks flushes.
 *
 * Giving a connection up (`broken`): all calls are settled at once; those who hold a role are told by hanging up, and
 * the last of them to leave closes the wire. New calls queue meanwhile, and the thread connects again.
 *
 * Order of locks: `mutex`, then the wire's. Callbacks run with neither.
 */
#ifndef SNK_REDIS_CONN_PARTS_H
#define SNK_REDIS_CONN_PARTS_H

#include <pthread.h>

#include "base/spin.h"
#include "redis/bytes.h"
#include "redis/conn.h"
#include "redis/parser.h"
#include "redis/wire.h"

#define SNK_REDIS_RECEIVE_SIZE 16384
#define SNK_REDIS_WAKES_MAX 64
/* Calls in flight, as measured with bench/redis_store.c. */
#define SNK_REDIS_CORK_AT 33 /* from here on the server is busy meanwhile; below, it would wait for the corked ones */
#define SNK_REDIS_SPIN_AT 2  /* up to here nothing else is to be done while the answer is on its way */

/* call.stage */
enum {
    SNK_REDIS_STAGE_IDLE,
    SNK_REDIS_STAGE_QUEUED,
    SNK_REDIS_STAGE_STREAMED,
    SNK_REDIS_STAGE_DONE
};

/* driver.word */
enum {
    SNK_REDIS_DRIVER_ASLEEP,
    SNK_REDIS_DRIVER_LOOK, /* woken to take over the role of the reader */
    SNK_REDIS_DRIVER_DONE  /* nothing left; from now on nobody touches the driver */
};

/* A thread inside drive; lives on its stack. */
typedef struct snk_redis_driver {
    _Atomic uint32_t word; /* stored under the mutex (release), loaded by the driver without it (acquire) */
    size_t left;           /* under the mutex: calls that are not done */
    snk_link sleeping;     /* under the mutex: in conn.sleepers */
} snk_redis_driver;

/* A call whose bytes are in the stream. */
typedef struct snk_redis_slot {
    snk_redis_call *call; /* NULL: given up */
    uint64_t start;       /* offset of its first byte in the stream */
    int64_t at_ns;        /* when it entered */
    int64_t deadline_ns;
} snk_redis_slot;

typedef enum snk_redis_conn_state {
    SNK_REDIS_DOWN,
    SNK_REDIS_DIALLING, /* the wire belongs to the thread */
    SNK_REDIS_UP,
    SNK_REDIS_BROKEN /* given up; somebody still holds a role */
} snk_redis_conn_state;

struct snk_redis_conn {
    const snk_redis_settings *settings; /* borrowed; unchanging */
    snk_redis_lane lane;
    int stop_fd;            /* borrowed; readable from the moment of closing */
    int wake_fd;            /* owned; wakes the thread */
    _Atomic uint32_t users; /* threads inside submit and drive; the top bit: somebody waits for the last one */

    pthread_mutex_t mutex;
    /* Under mutex: */
    snk_redis_conn_state state;
    bool closing;
    bool reading; /* the role of the reader is taken */
    bool writing; /* the role of the writer is taken */
    bool clogged; /* the socket took no more; only the thread may write */
    unsigned corks;
    snk_list queue;    /* calls that wait for a connection */
    snk_list later;    /* calls that are to be sent later; nobody drives them. Their deadline is when. */
    snk_list sleepers; /* drivers; the last went to sleep last */
    snk_redis_bytes out;
    uint64_t stream_end;     /* offset of the end of `out` */
    uint64_t left;           /* up to this offset bytes may have left */
    snk_redis_slot *slots;   /* owned; a ring */
    size_t slot_capacity;    /* a power of 2, or 0 */
    uint64_t head;           /* number of the oldest slot */
    uint64_t tail;           /* number of the next slot */
    size_t queued;           /* calls in `queue` */
    size_t undriven;         /* calls on their way that nobody drives */
    size_t patient;          /* those of them whose answers nobody waits for */
    int64_t linger_until_ns; /* until then the thread leaves those answers in the socket */
    uint64_t lingered;       /* slots before this one were left there once */
    int64_t undriven_at_ns;  /* no undriven call is due before this */
    int64_t later_at_ns;     /* no call of `later` is due before this */
    int64_t received_at_ns;  /* when the server last said something */
    bool thread_started;
    bool thread_asleep;      /* in poll: wake_fd must be written */
    int64_t thread_until_ns; /* when it wakes by itself */
    pthread_t thread;
    int64_t retry_at_ns; /* no attempt to connect before this */
    unsigned attempts;   /* since the last reply */
    uint64_t random;
    snk_redis_server server;
    bool is_told_up; /* the listener knows of the connection; only the thread changes it */

    /* The role of the writer: */
    snk_redis_bytes sending;
    size_t sent; /* bytes of `sending` that the wire has taken */

    /* The role of the reader: */
    snk_redis_parser parser;
    snk_spin spin;
    char received[SNK_REDIS_RECEIVE_SIZE];

    /* Both roles; opened by the thread before they can be taken, closed by who leaves the last one. */
    snk_redis_wire wire;
};

/* What is to be done once the mutex is free: wake drivers, call back. */
typedef struct snk_redis_finish {
    _Atomic uint32_t *wakes[SNK_REDIS_WAKES_MAX]; /* borrowed from drivers that may be gone by then */
    size_t wake_count;
    snk_list callbacks; /* of calls */
} snk_redis_finish;

/* ---- conn.c: who is inside ---- */

/* A thread uses the connection: until it leaves, which is the last thing it does, the connection is not freed. */
void snk_redis_conn_arrive(snk_redis_conn *conn);
void snk_redis_conn_leave(snk_redis_conn *conn);

/* ---- stream.c: calls, slots and outcomes ---- */

void snk_redis_finish_init(snk_redis_finish *finish);
/* Wakes and calls back. Without the mutex. */
void snk_redis_finish_run(snk_redis_conn *conn, snk_redis_finish *finish);
static inline bool snk_redis_finish_is_empty(const snk_redis_finish *finish)
{
    return finish->wake_count == 0 && snk_list_is_empty(&finish->callbacks);
}
/* The same with the mutex, which it releases meanwhile if there is anything to do. */
static inline void snk_redis_finish_locked(snk_redis_conn *conn, snk_redis_finish *finish)
{
    if (snk_redis_finish_is_empty(finish))
        return;
    pthread_mutex_unlock(&conn->mutex);
    snk_redis_finish_run(conn, finish);
    pthread_mutex_lock(&conn->mutex);
}
/* Notes a driver to be woken. */
void snk_redis_finish_wake(snk_redis_finish *finish, _Atomic uint32_t *word);

/*
 * After a pause the server may have hung up: a call sent now would be lost, and nobody could say so for certain. So that is
 * looked for first, as long as nobody has a role.
 */
void snk_redis_check_idle_locked(snk_redis_conn *conn, int64_t now, snk_redis_finish *finish);
/* Takes a new call in: into the stream, the queue, or (with an error) straight to its end. */
void snk_redis_enter_locked(snk_redis_conn *conn, snk_redis_call *call, int64_t now, snk_redis_finish *finish);
/* Takes in those that were to be sent later and are due at `until_ns`. */
void snk_redis_enter_later_locked(snk_redis_conn *conn, int64_t until_ns, snk_redis_finish *finish);
/* Moves the queue into the stream of a new connection. */
void snk_redis_stream_queue_locked(snk_redis_conn *conn, int64_t now, snk_redis_finish *finish);
/* Ends every queued call as not sent. */
void snk_redis_fail_queue_locked(snk_redis_conn *conn, const sneck_error *why, snk_redis_finish *finish);
/* Gives replies to the oldest slots. */
void snk_redis_complete_locked(snk_redis_conn *conn, redisReply *replies[], size_t count, snk_redis_finish *finish);
/* Gives one call up, whose time is over; perhaps the whole connection with it. */
void snk_redis_expire_locked(snk_redis_conn *conn, snk_redis_call *call, int64_t now, snk_redis_finish *finish);
/* When the server has been silent for too long; SNK_NEVER_NS without anything outstanding. */
int64_t snk_redis_stale_at_locked(const snk_redis_conn *conn);
/* Gives the connection up. */
void snk_redis_break_locked(snk_redis_conn *conn, const sneck_error *why, snk_redis_finish *finish);
/* Closes the wire of a broken connection unless somebody holds a role. */
void snk_redis_retire_locked(snk_redis_conn *conn);
/* One call of a driver is done, callback included. */
void snk_redis_driver_step_locked(snk_redis_driver *driver, snk_redis_finish *finish);

/* ---- roles.c: who does the I/O ---- */

/* Sends `out` unless somebody else does or may; releases the mutex meanwhile. */
void snk_redis_flush_locked(snk_redis_conn *conn, snk_redis_finish *finish);
/* The same for the thread, when a clogged socket is writable again. */
void snk_redis_unclog_locked(snk_redis_conn *conn, snk_redis_finish *finish);
/*
 * Receives once and settles what came; for the holder of the role of the reader. `until_ns` 0: without waiting. The
 * mutex is released meanwhile, and held again when it returns. When `driver` (may be NULL) has nothing left, the role
 * is passed on before the others are woken, and false is returned. True: the role is still held.
 */
bool snk_redis_receive_locked(snk_redis_conn *conn, const snk_redis_driver *driver, int64_t until_ns);
/* Gives the role of the reader back and wakes who should have it now. */
void snk_redis_pass_on_locked(snk_redis_conn *conn, snk_redis_finish *finish);
/* If nobody has that role: wakes who should. */
void snk_redis_offer_locked(snk_redis_conn *conn, snk_redis_finish *finish);

/* ---- thread.c: the connection's own thread ---- */

/* Sees to it that the thread runs and looks at the state anew. False when it cannot be started. */
bool snk_redis_wake_thread_locked(snk_redis_conn *conn);
void snk_redis_thread_join(snk_redis_conn *conn);

#endif
