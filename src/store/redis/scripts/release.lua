-- Ends a claim, wherever it is, and touches no other. A hold is handed to the next waiter in the same execution.
-- ARGV: claim, tombstone (ms; 0: none), history (0 or 1), channel ('': no public message), message up to its time,
-- how the hold ended (released or lost)
-- Answers {5} it was there, {4} it was not.
--@include keys
local claim, tombstone, history, channel, message, kind = unpack(ARGV, 1, 6)
--@include time
--@include layout
--@include note
read_clock()

local result = 4
local holding, first, last, owner, since, pid, host, why = peek()
local heads = redis.call('ZRANGE', queue, '0', '1')
if holding == claim then
    result = 5
    redis.call('DEL', lock)
    note(kind, first, owner, since, pid, host, why)
    if channel ~= '' then
        redis.call('PUBLISH', channel, message .. now_ms_text .. ',"holder":"' .. owner .. '"}')
    end
end
if heads[1] then
    --@include grant
    --@include queue
    if result == 5 then
        serve(nil, nil, tonumber(last), heads)
    else
        trim()
        if redis.call('ZSCORE', queue_until, claim) then
            result = 5
            leave(claim)
        end
        -- One that leaves may have been told that the lock is free: then the next one must be.
        if redis.call('EXISTS', lock) == 0 then
            serve(nil, nil)
        end
    end
end
if result == 4 then
    -- Access rules may have stopped its acquire when half a waiter was written.
    redis.call('HDEL', queue_info, claim)
end
if tombstone ~= '0' then
    redis.call('ZREMRANGEBYSCORE', gone, '-inf', now_ms_text)
    redis.call('ZADD', gone, string.format('%d', now_ms + tombstone), claim)
    if redis.call('PTTL', gone) < tonumber(tombstone) then
        redis.call('PEXPIRE', gone, tombstone)
    end
end
return { result }
