-- Refreshes a claim that holds or waits; never registers one that is unknown.
-- ARGV: claim, lease, history (0 or 1), levels (how often its owner has it, for those who look; 0: not said)
-- Answers {1, first, last} held, with at least the full lease; {2, ttl, place, foreign, mended…} queued; {4} unknown.
--@include keys
local claim, lease, history, levels = unpack(ARGV, 1, 4)
--@include layout
local holding, first, last, owner = peek()
if holding == claim then
    if levels ~= '0' then
        count(owner, levels)
    end
    -- A renewal never shortens.
    if redis.call('PTTL', lock) < tonumber(lease) then
        redis.call('PEXPIRE', lock, lease)
    end
    return { 1, tonumber(first), tonumber(last) }
end

--@include time
--@include grant
--@include queue
--@include layout_holder
read_clock()
trim()
local queued = redis.call('ZSCORE', queue_until, claim)
local found = holder(lease)
if not found and not serve(queued and claim, lease) and queued then
    -- Nobody before it listens, however many they are.
    local tokens, fair, owner, pid, host, why = string.match(redis.call('HGET', queue_info, claim) or '',
        '^%d+ (%d+) ([01]) %a+ (%S+) (%d+) %d+ (%S+) (.*)$')
    leave(claim)
    if tokens then
        grant(claim, owner, tokens, lease, pid, host, why, fair)
    end
end
found = found or holder(lease)
if found and found.alien then
    return redis.error_reply('WRONGTYPE the key of this lock holds something that is no lock')
end
if found and found.claim == claim then
    return { 1, tonumber(found.first), tonumber(found.last), 0, mended_ttl, mended_owner, mended_queue }
end
local place = queued and redis.call('ZRANK', queue, claim)
if not place or not found then
    return { 4, 0, 0, 0, mended_ttl, mended_owner, mended_queue }
end
if now_ms + lease > tonumber(queued) then
    redis.call('ZADD', queue_until, string.format('%d', now_ms + lease), claim)
end
keep_queue(lease, false)
return { 2, found.ttl, place, found.claim and 0 or 1, mended_ttl, mended_owner, mended_queue }
