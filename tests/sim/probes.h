/* What a batch must have seen at least once: a rare path that no seed takes is a path that nothing checks. */
#ifndef SIM_PROBES_H
#define SIM_PROBES_H

#define SIM_PROBES(X)                                                                                                  \
    X(GRANTED, "granted at once by the store")                                                                         \
    X(QUEUED, "queued in the store")                                                                                   \
    X(GRANTED_LATER, "granted by a later look")                                                                        \
    X(OFFERED, "offer made to the head of the queue")                                                                  \
    X(OFFER_LAPSED, "offer that nobody confirmed lapsed")                                                              \
    X(WAITER_EXPIRED, "waiter's lease ended in the queue")                                                             \
    X(HANDED_OFF, "hand-off inside a process")                                                                         \
    X(BARGED, "newcomer took a hold kept for hand-off")                                                                \
    X(SERVED_DIRECTLY, "passed-over waiter served by the release itself")                                              \
    X(PLACE_INHERITED, "waiter left and another one got its claim")                                                    \
    X(LATE_GRANT, "grant came after its deadline and was refused")                                                     \
    X(CHASE_OVERTOOK, "chase overtook the acquire")                                                                    \
    X(ACQUIRE_REFUSED, "acquire refused because of a tombstone")                                                       \
    X(CHASE_REPEATED, "chase had to be repeated")                                                                      \
    X(CHASE_FOUND, "chase found its claim")                                                                            \
    X(LOST_BY_TIME, "hold lost by its deadline")                                                                       \
    X(LOST_BY_ANSWER, "hold lost by a clear answer")                                                                   \
    X(LOST_WHILE_IDLE, "hold lost while kept for hand-off")                                                            \
    X(LOST_NESTED, "hold lost with several levels")                                                                    \
    X(RENEWED_LATE, "renewal answered after the loss")                                                                 \
    X(RENEWAL_FAILED, "renewal failed and the hold went on")                                                           \
    X(ACQUIRE_LOST, "acquire refused because levels of a lost hold are left")                                          \
    X(DEEP, "255 levels, and the 256th refused")                                                                       \
    X(DEADLOCK, "second acquire without re-entry")                                                                     \
    X(NOT_OWNER, "release by somebody who is not the owner")                                                           \
    X(BUSY, "try without waiting found somebody else")                                                                 \
    X(TIMED_OUT, "wait ended by its limit")                                                                            \
    X(UNKNOWN, "acquire ended without knowing")                                                                        \
    X(UNAVAILABLE, "acquire ended because the store was away")                                                         \
    X(INTERRUPTED, "wait interrupted")                                                                                 \
    X(NO_ID, "no claim id was to be had")                                                                              \
    X(EXTENDED, "hold extended by hand")                                                                               \
    X(UNSURE_RESOLVED, "look told about an acquire that was not answered")                                             \
    X(OUTAGE_WAITED_OUT, "waiter granted after requests had failed")                                                   \
    X(BROKEN, "hold broken by force")                                                                                  \
    X(WIPED, "store lost everything")                                                                                  \
    X(CLOSED_WAITING, "client closed with somebody waiting")                                                           \
    X(CLOSED_HOLDING, "client closed with a lock held")                                                                \
    X(CRASHED_HOLDING, "process died with a lock held")                                                                \
    X(FORGED_NEWS, "news with an id that is nobody's")                                                                 \
    X(FOREIGN_NEWS, "news with the id of another claim")                                                               \
    X(PAUSED_PAST_LEASE, "process paused past its lease")                                                              \
    X(WRITE_REFUSED, "write with an old token refused")                                                                \
    X(RELEASE_UNKNOWN, "release whose answer never came")                                                              \
    X(SHARED_OWNER, "two threads as one owner")                                                                        \
    X(DENIED, "store refused by its access rules")                                                                     \
    X(FAIR_GRANT, "grant in fair mode")                                                                                \
    X(STARTED, "hold begun by the message that it was granted")                                                        \
    X(STARTED_UNANSWERED, "hold begun by that message before the acquire was answered")                                \
    X(GRANT_OF_OTHER_RUN, "grant of another run of the server not believed")                                           \
    X(GRANT_TOO_OLD, "grant that may be older than its offer not believed")                                            \
    X(QUEUED_OVERTAKEN, "queued heard after the grant")                                                                \
    X(CONFIRMED, "offer confirmed by a renewal")                                                                       \
    X(RELEASED_UNCONFIRMED, "hold released before its offer was confirmed")                                            \
    X(RESTARTED, "store restarted with its data")                                                                      \
    X(ROLLED_BACK, "store restarted with older data")                                                                  \
    X(RESERVED, "lost lock acquired again by the watchdog")                                                            \
    X(ADOPTED, "lock acquired again taken over by its owner")                                                          \
    X(RESERVE_LAPSED, "lock acquired again, for which nobody came, given back")                                        \
    X(REVOKED, "hold ended by the watchdog")                                                                           \
    X(CHECK_FOUND_LOSS, "loss found by a look of the watchdog")                                                        \
    X(OWNER_DIED, "owner died with a lock held")                                                                       \
    X(GIVEN_UP, "hold given up at the first failed renewal")                                                           \
    X(INJECTED, "pause, cut or freeze of somebody who held a lock")                                                    \
    X(TAKEN_OVER, "replica took the master's place with all that it had")                                              \
    X(TAKEN_OVER_BEHIND, "replica took the master's place without the last writes")                                    \
    X(HELD_ACROSS, "hold that the replica had heard of went on")                                                       \
    X(CLOCK_WENT_BACK, "new master's clock behind that of the old one")

#define SIM_PROBE_NAME(name, text) SIM_PROBE_##name,
typedef enum sim_probe {
    SIM_PROBES(SIM_PROBE_NAME) SIM_PROBE_COUNT
} sim_probe;
#undef SIM_PROBE_NAME
/* The others are for a store with a replica. */
#define SIM_PROBE_ALONE_COUNT SIM_PROBE_TAKEN_OVER

#endif
