-- Registers a claim: as the holder if the lock is free, else in the queue or not at all.
-- ARGV: claim, lease, tokens, queue (0 or 1), fair (0 or 1), wake, history (0 or 1), owner, pid, host, why
-- Answers {1, first, last} held, {2, ttl, place, foreign, mended…} queued, {3} busy, {4} given up before it came.
--@include keys
local claim, lease, tokens, wants_queue, fair, wake, history, owner, pid, host, why = unpack(ARGV, 1, 11)
--@include time

-- The usual case in one look: no lock, no queue, nobody given up.
local keys = call('EXISTS', lock, queue, gone)
if keys == 0 then
    local life = lease
    --@include grant_now
    return { 1, first, last }
end

-- The usual case of one that must wait: a lock that needs no mending, perhaps others who wait, and nothing else.
--@include layout_sound
local is_sound, newest = ttl and ttl > 0, {}
if is_sound and keys > 1 then
    newest = call('ZREVRANGE', queue, '0', '0', 'WITHSCORES')
end
local is_usual = is_sound and (keys == 1 or (keys == 2 and newest[1]))
if not is_usual and call('ZSCORE', gone, claim) then
    --@include insist_on_master
    return { 4 }
end
if is_sound then
    if wants_queue == '0' then
        --@include insist_on_master
        return { 3 }
    end
    --@include join
    return { 2, ttl, place }
end

local object = 'lock'
--@include grant
--@include queue
trim()
local found = holder(lease)
if not found and not serve(claim, lease) then
    local first, last = grant(claim, owner, tokens, lease, pid, host, why, fair)
    return { 1, first, last, 0, mended_ttl, mended_owner, mended_queue }
end
-- Nobody holds it: somebody waits for more than it.
found = found or holder(lease) or { ttl = tonumber(lease), claim = claim }
if found.alien then
    return redis.error_reply(NO_LOCK)
end
if wants_queue == '0' then
    --@include insist_on_master
    return { 3, 0, 0, 0, mended_ttl, mended_owner, mended_queue }
end
newest = call('ZREVRANGE', queue, '0', '0', 'WITHSCORES')
--@include join
return { 2, found.ttl, place, found.claim and 0 or 1, mended_ttl, mended_owner, mended_queue }
