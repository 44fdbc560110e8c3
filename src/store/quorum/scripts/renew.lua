-- Prolongs the vote that this try of a claim has; never shortens it, never makes one.
-- KEYS: lock
-- ARGV: claim and try, lease (ms), levels (how often its owner has it, for those who look; 0: not said)
-- Answers 1 it has it, 0 it does not.
--@include begin
local fields = redis.call('HMGET', KEYS[1], '~claim', '~owner')
if fields[1] ~= ARGV[1] then
    return 0
end
if ARGV[3] ~= '0' then
    redis.call('HSET', KEYS[1], fields[2], ARGV[3])
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
