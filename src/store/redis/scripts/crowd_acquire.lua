-- Registers a claim that does not want to be alone: as one of the holders if nothing stands in its way, else in the queue
-- or not at all.
-- ARGV: claim, lease, mode, units, queue (0 or 1), beside (claim, or ''), object, fair (0 or 1), history (0 or 1), owner,
-- pid, host, why
-- Answers as acquire does, {1, first, last, units, …} if it holds.
--@include keys
local claim, lease, mode, units, wants_queue, beside, object, fair, history = unpack(ARGV, 1, 9)
local owner, pid, host, why = unpack(ARGV, 10, 13)
--@include time
--@include grant
--@include queue

local waits, stands = false, false
-- The usual case in one look: nobody holds it, nobody waits, nobody given up.
if call('EXISTS', lock, queue, gone, holders, holders_info) == 0 then
    crowd = nobody(true)
else
    if call('ZSCORE', gone, claim) then
        --@include insist_on_master
        return { 4 }
    end
    if not gather(lease) then
        return redis.error_reply(NO_LOCK)
    end
    waits = settle(nil, nil)
    -- A hold that it stands beside lets it pass those who wait for that very hold to end.
    stands = beside ~= '' and (crowd.alone == beside or (crowd.there and call('ZSCORE', holders, beside)))
end
if (stands or not waits) and allows(mode, units, stands and 1 or 0) then
    local first, _, given = hold(claim, mode, units, lease, fair, owner, pid, now_ms_text, host, why)
    return { 1, first, first, given, mended_ttl, mended_owner, mended_queue }
end
local ttl = first_end(lease)
if wants_queue == '0' then
    --@include insist_on_master
    return { 3, ttl, 0, 0, mended_ttl, mended_owner, mended_queue }
end
local tokens, wake = units, mode
local newest = call('ZREVRANGE', queue, '0', '0', 'WITHSCORES')
--@include join
return { 2, ttl, place, crowd.foreign, mended_ttl, mended_owner, mended_queue }
