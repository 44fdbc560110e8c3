/* The rule for tokens of stores that keep a counter and floor it by the clock. */
#ifndef SNK_STORE_TOKENS_H
#define SNK_STORE_TOKENS_H

#include <stdint.h>

#include "base/limits.h"

/* A block may end this far ahead of the clock (a token is a microsecond), or tokens would outrun it. */
#define SNK_TOKEN_LEAD_US 1000

typedef struct snk_token_block {
    uint64_t first;
    uint64_t last;
} snk_token_block;

/*
 * The next block of a lock whose highest token so far was `highest`. The clock as floor keeps tokens rising when the
 * counter is lost; a block is as large as asked, but one token where it would end ahead of the clock.
 */
static inline snk_token_block snk_tokens_next(uint64_t highest, int64_t wall_us, uint32_t asked)
{
    uint64_t clock = wall_us > 0 ? (uint64_t)wall_us : 0;
    uint64_t first = highest + 1 > clock ? highest + 1 : clock;
    uint64_t count = asked > SNK_TOKEN_BLOCK_MAX ? SNK_TOKEN_BLOCK_MAX : asked;
    if (count < 1 || first + count - 1 > clock + SNK_TOKEN_LEAD_US)
        count = 1;
    return (snk_token_block){ .first = first, .last = first + count - 1 };
}

#endif
