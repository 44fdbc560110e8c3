-- Registers a claim: as the holder if the lock is free, else in the queue or not at all.
-- ARGV: claim, lease, tokens, queue (0 or 1), fair (0 or 1), wake, history (0 or 1), owner, pid, host, why
-- Answers {1, first, last} held, {2, ttl, place, foreign, mended…} queued, {3} busy, {4} given up before it came.
--@include keys
local claim, lease, tokens, wants_queue, fair, wake, history = unpack(ARGV, 1, 7)
local owner, pid, host, why = unpack(ARGV, 8, 11)
--@include time
--@include layout
--@include grant
read_clock()

-- The usual case in one look: no lock, no queue, nobody given up.
local keys = redis.call('EXISTS', lock, queue, gone)
if keys == 0 then
    local first, last = grant(claim, owner, tokens, lease, pid, host, why, fair)
    return { 1, first, last }
end

--@include queue
--@include layout_holder
local ttl, foreign = sound_ttl(), 0
-- The usual case of one that must wait: the lock, and nothing else.
local lonely = ttl and keys == 1
if not lonely and redis.call('ZSCORE', gone, claim) then
    return { 4 }
end
if not ttl then
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
    ttl, foreign = found.ttl, found.claim and 0 or 1
end
if wants_queue == '0' then
    return { 3, ttl, 0, 0, mended_ttl, mended_owner, mended_queue }
end

-- Numbers that only need to rise among those who wait now.
local newest = lonely and {} or redis.call('ZREVRANGE', queue, '0', '0', 'WITHSCORES')
if newest[1] then
    trim()
end
-- Two of the three were not read before. Somebody's data in their place leaves no half a waiter behind.
redis.call('ZADD', queue_until, string.format('%d', now_ms + lease), claim)
local refused = redis.pcall('HSET', queue_info, claim, lease .. ' ' .. tokens .. ' ' .. fair .. ' ' .. wake .. ' ' ..
    owner .. ' ' .. pid .. ' ' .. now_ms_text .. ' ' .. host .. ' ' .. why)
if type(refused) == 'table' then
    redis.call('ZREM', queue_until, claim)
    return refused
end
redis.call('ZADD', queue, newest[2] and string.format('%d', newest[2] + 1) or '1', claim)
keep_queue(lease, not newest[1])
local place = newest[1] and redis.call('ZCARD', queue) - 1 or 0
return { 2, ttl, place, foreign, mended_ttl, mended_owner, mended_queue }
