-- Refreshes a claim that holds or waits; never registers one that is unknown.
-- ARGV: claim, lease, history (0 or 1), levels (how often its owner has it, for those who look; 0: not said)
-- Answers {1, first, last} held, with at least the full lease; {2, ttl, place, foreign, mended…} queued; {4} unknown.
--@include keys
local claim, lease, history, levels = unpack(ARGV, 1, 4)
-- Less than any lease: this is a look, which prolongs nothing, and must not end what has no time limit.
local is_look = tonumber(lease) < 100
--@include layout_peek
if holding == claim then
    -- A renewal never shortens.
    local ttl = call('PTTL', lock)
    if ttl <= tonumber(lease) and not (is_look and ttl < 0) then
        call('PEXPIRE', lock, lease)
    else
        --@include insist_on_master
    end
    -- After that: a server whose memory is full would refuse it as the first write of the script.
    if levels ~= '0' then
        --@include layout_count
    end
    return { 1, tonumber(first), tonumber(last) }
end

--@include time
local object = 'lock'
--@include grant
--@include queue
if holding == 'crowd' then
    go_on_without_memory()
    gather(lease)
    return renew(claim, lease)
end
trim()
local queued = call('ZSCORE', queue_until, claim)
local mending = is_look and '30000' or lease
local found = holder(mending)
if not found and not serve(queued and claim, lease) and queued then
    -- Nobody before it listens, however many they are.
    local tokens, fair, owner, pid, host, why = string.match(call('HGET', queue_info, claim) or '',
        '^%d+ (%d+) ([01]) %a+ (%S+) (%d+) %d+ (%S+) (.*)$')
    leave(claim)
    if tokens then
        grant(claim, owner, tokens, lease, pid, host, why, fair)
    end
end
-- Nobody holds it: somebody waits for more than it.
found = found or holder(mending) or { ttl = tonumber(lease), claim = '' }
if found and found.alien then
    return redis.error_reply(NO_LOCK)
end
if found and found.claim == claim then
    return { 1, tonumber(found.first), tonumber(found.last), 0, mended_ttl, mended_owner, mended_queue }
end
--@include insist_on_master
local place = queued and call('ZRANK', queue, claim)
if not place then
    return { 4, 0, 0, 0, mended_ttl, mended_owner, mended_queue }
end
stay(claim, lease, queued)
return { 2, found.ttl, place, found.claim and 0 or 1, mended_ttl, mended_owner, mended_queue }
