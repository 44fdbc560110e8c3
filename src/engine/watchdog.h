/*
 * The watchdog's decisions, without I/O, clock or threads: facts go in, findings come out, and what to do about them.
 *
 * Five checks, each with its own result:
 *
 *   renewal     does the renewal thread move, how late is it, do its requests succeed
 *   state       does the store still show our claims
 *   owner       is the thread that holds a lock alive and moving, and for how long has it held it
 *   connection  does the store answer, how often is the connection made anew
 *   recovery    did the remedies for earlier findings work
 *
 * A remedy is tried at a limited rate, and counts as failed when the finding is still there at the next look. A check
 * that finds something `SNK_ALERT_THRESHOLD` times in a row raises an alert, once.
 *
 * The caller serializes all calls on one watchdog (client: watchdog.mutex).
 */
#ifndef SNK_ENGINE_WATCHDOG_H
#define SNK_ENGINE_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/machine.h"
#include "sneck.h"

typedef enum snk_finding {
    SNK_FINDING_NONE,
    SNK_FINDING_RENEWAL_STUCK,   /* something is due, and the renewal thread does not move */
    SNK_FINDING_RENEWAL_LATE,    /* it moves, and comes so late that holds are at risk */
    SNK_FINDING_RENEWAL_FAILING, /* since the last look renewals failed, and none succeeded */
    SNK_FINDING_CLAIM_LOST,      /* the store no longer shows a claim of ours */
    SNK_FINDING_OWNER_DIED,
    SNK_FINDING_OWNER_STUCK,
    SNK_FINDING_OWNER_OVERDUE,
    SNK_FINDING_DISCONNECTED,    /* and nobody is connected */
    SNK_FINDING_HALF_OPEN,       /* connected as far as the socket knows, and no answer comes */
    SNK_FINDING_FLAPPING,        /* it answers, and is made anew again and again */
    SNK_FINDING_RECOVERY_FAILED, /* a remedy did not help */
    SNK_FINDING_COUNT
} snk_finding;

typedef enum snk_remedy {
    SNK_REMEDY_NOTIFY, /* tell, and do nothing */
    SNK_REMEDY_REPLACE_RENEWER,
    SNK_REMEDY_RECONNECT,
    SNK_REMEDY_RELEASE,
    SNK_REMEDY_REACQUIRE,
    SNK_REMEDY_COUNT
} snk_remedy;

/* "renewal-stuck", "reconnect": for logs and metrics. */
const char *snk_finding_name(snk_finding finding);
const char *snk_remedy_name(snk_remedy remedy);
/* Which check finds this. */
sneck_check_kind snk_finding_check(snk_finding finding);

/* ---- Facts ---- */

typedef struct snk_renewal_facts {
    bool runs;             /* there is a renewal thread */
    int64_t beat_at_ns;    /* when it last showed that it moves */
    int64_t pending_at_ns; /* since when something waits for it, in its hands or not; SNK_NEVER_NS: nothing does */
    int64_t late_ns;       /* the latest renewal since the last look: how long after it was due it left */
    int64_t lease_ns;      /* that renewal's lease */
    uint64_t succeeded;    /* so far */
    uint64_t failed;
    int64_t patience_ns; /* how long it may stand still */
} snk_renewal_facts;

/* What the kernel says about a thread. */
typedef struct snk_thread_facts {
    bool known;     /* false: there is no such thread */
    bool runs;      /* it is on a processor, or waits for one */
    int64_t cpu_ns; /* time that it used so far */
} snk_thread_facts;

/* What was seen of a thread at earlier looks. */
typedef struct snk_stillness {
    int64_t cpu_ns;
    int64_t since_ns; /* since when it has not moved */
} snk_stillness;

typedef struct snk_connection_facts {
    bool has_one;      /* the store has a connection */
    bool answers;      /* it answered just now */
    bool is_open;      /* the socket is connected, as far as it knows */
    uint64_t connects; /* made so far */
} snk_connection_facts;

/* ---- The watchdog ---- */

typedef struct snk_check {
    uint64_t runs;
    uint64_t findings;
    uint32_t in_a_row;   /* runs in a row that found something */
    snk_finding last;    /* what the last run found */
    int64_t run_at_ns;   /* 0: never */
    int64_t found_at_ns; /* when something was found last; 0: never */
} snk_check;

typedef struct snk_remedy_state {
    uint64_t tried;
    uint64_t worked;
    uint64_t failed;
    uint64_t put_off;      /* not tried, because it was tried too often */
    bool pending;          /* tried, and not known yet whether it worked */
    uint32_t window_count; /* tried within the present window */
    int64_t window_at_ns;  /* when that began */
} snk_remedy_state;

typedef struct snk_watchdog {
    snk_check checks[SNECK_CHECK_COUNT];
    snk_remedy_state remedies[SNK_REMEDY_COUNT];
    uint64_t by_finding[SNK_FINDING_COUNT];
    uint64_t alerts[SNECK_CHECK_COUNT];
    uint64_t renewals_succeeded; /* as of the last look */
    uint64_t renewals_failed;
    uint64_t connects;                             /* as of the last look */
    int64_t connects_at_ns[SNK_FLAPPING_CONNECTS]; /* the last ones, as a ring */
    uint32_t connects_next;
    bool has_looked; /* at the connection, once */
} snk_watchdog;

void snk_watchdog_init(snk_watchdog *watchdog);

/* ---- Judging: what the facts mean. Nothing is noted yet ---- */

snk_finding snk_watchdog_judge_renewal(snk_watchdog *watchdog, const snk_renewal_facts *facts, int64_t now_ns);
snk_finding snk_watchdog_judge_connection(snk_watchdog *watchdog, const snk_connection_facts *facts, int64_t now_ns);

/*
 * The owner of a hold. `thread` is what the kernel says about it, NULL when it is not to be asked; `stillness` (may be
 * NULL) is kept for this thread from look to look, zeroed at first.
 */
snk_finding snk_watchdog_judge_owner(const snk_hold *hold, const snk_thread_facts *thread, snk_stillness *stillness,
                                     int64_t now_ns);

/* Is the hold to be looked up in the store now? One that a request confirmed within its watchdog_ms is not. */
bool snk_watchdog_wants_check(const snk_hold *hold, int64_t now_ns);
/* Is a hold that is to be renewed nearer to its end than a renewal in time would let it come? */
bool snk_watchdog_is_at_risk(const snk_hold *hold, int64_t deadline_ns, int64_t now_ns);

/* ---- Noting ---- */

/* A check ran: what it found first, and how much. True: an alert is to be raised. */
bool snk_watchdog_note(snk_watchdog *watchdog, sneck_check_kind kind, snk_finding finding, uint64_t count,
                       int64_t now_ns);

/* ---- Remedies ---- */

/* What to do about a finding; `recovery` is what the lock's options say, where it is about a lock. */
snk_remedy snk_watchdog_choose(snk_finding finding, sneck_recovery recovery);
/* May it be tried now? If so it counts as tried. */
bool snk_watchdog_may_try(snk_watchdog *watchdog, snk_remedy remedy, int64_t now_ns);
/* It helped, or did not. */
void snk_watchdog_worked(snk_watchdog *watchdog, snk_remedy remedy, bool worked);
/*
 * Closes the accounts of remedies for findings that a look shows at once: one that is pending worked if the finding is
 * gone, and failed if it is still there. True when one failed.
 */
bool snk_watchdog_settle(snk_watchdog *watchdog, snk_remedy remedy, bool finding_is_there);

#endif
