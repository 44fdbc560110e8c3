-- Enters the claim into the queue, at its end; `newest` is who is there now, with its number. Numbers only need to rise among
-- those who wait.
local is_new = not newest[1]
if not is_new then
    --@include trim
end
-- Two of the three were not read before. Somebody's data in their place leaves no half a waiter behind.
call('ZADD', queue_until, string.format('%d', now_ms + lease), claim)
local refused = redis.pcall('HSET', queue_info, claim, lease .. ' ' .. tokens .. ' ' .. fair .. ' ' .. wake .. ' ' ..
    owner .. ' ' .. pid .. ' ' .. now_ms_text .. ' ' .. host .. ' ' .. why)
if type(refused) == 'table' then
    call('ZREM', queue_until, claim)
    return refused
end
call('ZADD', queue, is_new and '1' or string.format('%d', newest[2] + 1), claim)
--@include keep_queue
local place = is_new and 0 or call('ZCARD', queue) - 1
