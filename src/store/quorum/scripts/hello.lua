-- What a client must know before it asks for votes. Where nothing says what the longest lease is, it is said only on demand:
-- who asks may be wrong about it, and is told so by the other nodes.
-- KEYS: marker
-- ARGV: longest lease (ms); 1: say it where nobody has
-- Answers {now (us), longest lease (ms; 0: nobody has said it), since when this node is in use (ms)}.
--@include begin
if redis.replicate_commands then
    redis.replicate_commands()
end
local marker, longest, says = KEYS[1], ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local known, since = string.match(redis.call('GET', marker) or '', '^(%d+) (%d+)$')
if not known and says == '1' then
    known, since = longest, math.floor(now / 1000)
    redis.call('SET', marker, known .. ' ' .. since)
end
if known == longest then
    redis.call('PEXPIRE', marker, 31536000000)
end
return { now, tonumber(known or 0), tonumber(since or 0) }
