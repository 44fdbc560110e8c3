/* Questions about claims that have their votes: renewals and releases, tallied by engine/quorum.h. */
#ifndef SNK_STORE_QUORUM_QUESTIONS_H
#define SNK_STORE_QUORUM_QUESTIONS_H

#include "store/quorum/operation.h"
#include "store/quorum/undo.h"

/* Each is ready to be asked; NULL: `answer` says why not. */

snk_operation *snk_question_renew_begin(snk_quorum_store *store, const snk_claim *claim, const snk_quorum_claim *known,
                                        snk_answer *answer);
void snk_question_renew_end(snk_operation *operation, const snk_quorum_claim *known, snk_answer *answer);

/* Nodes of `unanswered` get a tombstone as well. `touched`: where it may be, so that it is taken back there in any case. */
snk_operation *snk_question_release_begin(snk_quorum_store *store, const snk_release_terms *terms, uint32_t touched,
                                          uint32_t unanswered, sneck_error *error);
/* YES, NO, FAILED or UNCERTAIN; the last two with why. */
snk_quorum_says snk_question_release_end(snk_operation *operation, sneck_error *error);

#endif
