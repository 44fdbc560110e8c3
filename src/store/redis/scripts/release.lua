-- Ends a claim, wherever it is, and touches no other. A hold is handed to the next waiter in the same execution.
-- ARGV: claim, tombstone (ms; 0: none), history (0 or 1), channel ('': no public message), message up to its time,
-- how the hold ended (released or lost), the command that publishes it
-- Answers {5} it was there, {4} it was not.
--@include keys
local claim, tombstone, history, channel, message, kind, announce = unpack(ARGV, 1, 7)
--@include time

local result = 4
--@include layout_peek
local heads = call('ZRANGE', queue, '0', '1')
-- What serve needs if the lock is to be handed on: how many were passed over, and the highest token so far.
local is_free, passed, before = false, 0, nil
if holding == claim then
    result, is_free, before = 5, heads[1], tonumber(last)
    call('DEL', lock)
    --@include note
    if channel ~= '' then
        call(announce, channel, message .. now_ms_text .. ',"holder":"' .. owner .. '"}')
    end
end
if is_free then
    -- The usual case: the first one wants the lock alone, and hears of it.
    local claim, alone = heads[1], not heads[2]
    --@include waiter
    if counts and wake == 'grant' then
        --@include offer
        is_free, passed, before = not is_heard, 1, last
    end
end
if is_free or (heads[1] and result == 4) or holding == 'crowd' then
    local object = 'lock'
    --@include grant
    --@include queue
    if holding == 'crowd' then
        go_on_without_memory()
        gather(DAY_MS)
        local ended, _, whose = finish(claim, kind, false)
        result = ended and 5 or 4
        if ended and channel ~= '' then
            call(announce, channel, message .. now_ms_text .. ',"holder":"' .. whose .. '"}')
        elseif call('ZSCORE', queue_until, claim) then
            result = 5
            leave(claim)
        end
        settle(nil, nil)
    elseif is_free then
        serve(nil, nil, before, passed)
    else
        trim()
        if call('ZSCORE', queue_until, claim) then
            result = 5
            leave(claim)
        end
        -- One that leaves may have been told that the lock is free: then the next one must be.
        if call('EXISTS', lock) == 0 then
            serve(nil, nil)
        end
    end
end
if result == 4 then
    -- Access rules may have stopped its acquire when half a waiter was written.
    call('HDEL', queue_info, claim)
end
if tombstone ~= '0' then
    --@include bury
    bury(claim, tombstone)
end
return { result }
