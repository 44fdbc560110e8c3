-- Enters the claim into the queue, at its end.
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
