-- Votes for a claim if the lock is free here and the token is above every token and the clock; raises the vote that the
-- claim has already.
-- KEYS: lock, token, gone, marker
-- ARGV: claim and try, lease (ms), token, longest lease (ms), fields and values of the lock's hash
-- Answers {1, now} voted; {2, now, floor} the token is not above the floor; {3, now, floor, ttl, claim, token} another
-- one has it; {4, now, floor} the token is too far ahead; {5, now} given up before it came; {6, now, ms} this node was
-- emptied, and counts again after so long; {7, now, ms} others say that the longest lease is this. Times are in
-- microseconds where not said otherwise.
--@include begin
if redis.replicate_commands then
    redis.replicate_commands()
end
local lock, token, gone, marker = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local claim, lease, ballot, longest = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local kept = redis.call('MGET', token, marker)
if not kept[1] or not kept[2] then
    -- Somebody's data in their place is not overwritten: this fails then.
    redis.call('GET', token)
    redis.call('GET', marker)
end
local floor, wanted, ahead = tonumber(kept[1] or 0), tonumber(ballot), now + longest * 500
if floor < now then
    floor = now
end
local known, since = string.match(kept[2] or '', '^(%d+) (%d+)$')

local function vote()
    redis.call('SET', token, ballot, 'PX', 86400000)
    redis.call('HSET', lock, unpack(ARGV, 5))
    redis.call('PEXPIRE', lock, lease)
    return { 1, now }
end

-- The usual case in as few commands as it takes.
if known == longest and now >= (since + longest + 1000) * 1000 and wanted > floor and wanted <= ahead
    and redis.call('EXISTS', lock, gone) == 0 then
    return vote()
end
--@include buried
if is_buried() then
    return { 5, now }
end
local now_ms = math.floor(now / 1000)
if known and known ~= longest then
    return { 7, now, tonumber(known) }
end
if not known or tonumber(since) > now_ms then
    -- Nobody knows what was forgotten here: from now on this node is in use.
    since = now_ms
    redis.call('SET', marker, longest .. ' ' .. since, 'PX', 31536000000)
end
local mended_ttl, mended_owner = 0, 0
local call = redis.call
--@include ../../../redis/scripts/lib/hash_holder
local found = holder(tonumber(lease))
if found and found.alien then
    return redis.error_reply('WRONGTYPE the key of this lock holds something that is no lock')
end
if found and found.claim ~= claim then
    return { 3, now, floor, found.ttl, found.claim or '', tonumber(found.first or 0) }
end
local young = since + longest + 1000 - now_ms
if young > 0 then
    return { 6, now, young }
end
if found and found.first == ballot then
    return { 1, now }
end
if wanted <= floor then
    return { 2, now, floor }
end
if wanted > ahead then
    return { 4, now, floor }
end
return vote()
