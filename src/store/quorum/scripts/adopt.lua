-- Gives a free lock to a claim that a majority of the other nodes has: its hold goes on here too.
-- KEYS: lock, token, gone
-- ARGV: claim and try, lease (ms), token, whether the majority was asked just now (1) or some time ago (0: then nobody
-- else may have been here since), fields and values of the lock's hash
-- Answers 1 done, 0 another one has it, or had it, or the claim was given up.
--@include begin
local lock, token, gone = KEYS[1], KEYS[2], KEYS[3]
local claim, lease, ballot, renewed = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
--@include buried
if redis.call('EXISTS', lock) == 1 or is_buried() then
    return 0
end
local floor = tonumber(redis.call('GET', token) or 0)
if renewed == '0' and floor > tonumber(ballot) then
    return 0
end
if floor < tonumber(ballot) then
    redis.call('SET', token, ballot, 'PX', 86400000)
end
redis.call('HSET', lock, unpack(ARGV, 5))
redis.call('PEXPIRE', lock, lease)
return 1
