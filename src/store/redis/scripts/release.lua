-- Ends a claim, wherever it is, and touches no other. A hold is handed to the next waiter in the same execution.
-- ARGV: claim, tombstone (ms; 0: none), history (0 or 1), channel ('': no public message), message up to its time,
-- how the hold ended (released or lost), the command that publishes it
-- Answers {5} it was there, {4} it was not.
--@include keys
local claim, tombstone, history, channel, message, kind, announce = unpack(ARGV, 1, 7)
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
        redis.call(announce, channel, message .. now_ms_text .. ',"holder":"' .. owner .. '"}')
    end
end
if holding == 'crowd' then
    --@include grant
    --@include queue
    --@include layout_holder
    local object = 'lock'
    --@include layout_crowd
    go_on_without_memory()
    gather(DAY_MS)
    local ended, _, whose = finish(claim, kind, false)
    result = ended and 5 or 4
    if ended and channel ~= '' then
        redis.call(announce, channel, message .. now_ms_text .. ',"holder":"' .. whose .. '"}')
    elseif redis.call('ZSCORE', queue_until, claim) then
        result = 5
        leave(claim)
    end
    settle(nil, nil)
elseif heads[1] then
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
    --@include bury
    bury(claim, tombstone)
end
return { result }
