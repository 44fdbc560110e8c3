-- Registers a claim: as the holder if the lock is free, else in the queue or not at all.
-- ARGV: claim, lease, tokens, queue (0 or 1), fair (0 or 1), wake, history (0 or 1), owner, pid, host, why
-- Answers {1, first, last} held, {2, ttl, place, foreign, mended…} queued, {3} busy, {4} given up before it came.
--@include keys
local claim, lease, tokens, wants_queue, fair, wake, history = unpack(ARGV, 1, 7)
local owner, pid, host, why = unpack(ARGV, 8, 11)
lease = tonumber(lease)
--@include time
--@include layout
--@include grant
read_clock()

-- The usual case in one look: no lock, no queue, nobody given up.
if redis.call('EXISTS', lock, queue, gone) == 0 then
    local first, last = grant(claim, owner, tokens, lease, pid, host, why, fair)
    return { 1, first, last }
end
if redis.call('ZSCORE', gone, claim) then
    return { 4 }
end

local OFFER_MS = 2000
--@include queue
--@include layout_holder
trim()
local found = holder(lease)
if not found and not serve(claim, lease) then
    local first, last = grant(claim, owner, tokens, lease, pid, host, why, fair)
    return { 1, first, last, 0, mended_ttl, mended_owner, mended_queue }
end
found = found or holder(lease)
if found.alien then
    return redis.error_reply('WRONGTYPE the key of this lock holds something that is no lock')
end
if wants_queue == '0' then
    return { 3, found.ttl, 0, 0, mended_ttl, mended_owner, mended_queue }
end

-- Numbers that only need to rise among those who wait now.
local newest = redis.call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')
-- Written first, as it is the only one not read before: somebody's data in its place leaves no half a waiter behind.
redis.call('HSET', queue_info, claim,
    table.concat({ lease, tokens, fair, wake, owner, pid, now_ms, host, why }, ' '))
redis.call('ZADD', queue, newest[2] and newest[2] + 1 or 1, claim)
redis.call('ZADD', queue_until, now_ms + lease, claim)
-- Raised in large steps, or every waiter would pay for it.
if redis.call('PTTL', queue) < lease + 1000 then
    for _, key in ipairs({ queue, queue_info, queue_until }) do
        redis.call('PEXPIRE', key, 2 * lease + 1000)
    end
end
return { 2, found.ttl, redis.call('ZCARD', queue) - 1, found.claim and 0 or 1, mended_ttl, mended_owner, mended_queue }
