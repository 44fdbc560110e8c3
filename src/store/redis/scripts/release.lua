-- Ends a claim, wherever it is, and touches no other. A hold is handed to the next waiter in the same execution.
-- ARGV: claim, tombstone (ms; 0: none), history (0 or 1), channel ('': no public message), message up to its time,
-- how the hold ended (released or lost), the command that publishes it
-- Answers {5} it was there, {4} it was not.
--@include keys
local claim, tombstone, history, channel, message, kind, announce = unpack(ARGV, 1, 7)
tombstone = tonumber(tombstone)
--@include time
--@include layout
--@include note
read_clock()

local result = 4
local holding, first, _, owner = peek()
local queue_exists = redis.call('EXISTS', queue) == 1
if holding == claim then
    result = 5
    redis.call('DEL', lock)
    note(kind, first)
    if channel ~= '' then
        redis.call(announce, channel, message .. now_ms .. ',"holder":"' .. owner .. '"}')
    end
else
    insist_on_master()
end
if queue_exists then
    local OFFER_MS = 2000
    --@include grant
    --@include queue
    trim()
    if result == 4 and redis.call('ZSCORE', queue_until, claim) then
        result = 5
        leave(claim)
    end
    -- One that leaves may have been told that the lock is free: then the next one must be.
    if redis.call('EXISTS', lock) == 0 then
        serve(nil, 0)
    end
end
if tombstone > 0 then
    redis.call('ZREMRANGEBYSCORE', gone, '-inf', now_ms)
    redis.call('ZADD', gone, now_ms + tombstone, claim)
    if redis.call('PTTL', gone) < tombstone then
        redis.call('PEXPIRE', gone, tombstone)
    end
end
return { result }
