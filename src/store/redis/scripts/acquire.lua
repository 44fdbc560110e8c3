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
    insist_on_master()
    return { 4 }
end
if not ttl then
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
    ttl, foreign = found.ttl, found.claim and 0 or 1
end
if wants_queue == '0' then
    insist_on_master()
    return { 3, ttl, 0, 0, mended_ttl, mended_owner, mended_queue }
end

--@include join
return { 2, ttl, place, foreign, mended_ttl, mended_owner, mended_queue }
