-- What a client must know before it asks for votes. The first one that comes says what the longest lease is.
-- KEYS: marker
-- ARGV: longest lease (ms)
-- Answers {now (us), longest lease (ms), since when this node is in use (ms)}.
--@include begin
if redis.replicate_commands then
    redis.replicate_commands()
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local known, since = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
if not known then
    known, since = ARGV[1], math.floor(now / 1000)
    redis.call('SET', KEYS[1], known .. ' ' .. since)
end
redis.call('PEXPIRE', KEYS[1], 31536000000)
return { now, tonumber(known), tonumber(since) }
