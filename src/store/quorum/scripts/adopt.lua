-- Gives a free lock to a claim that a majority of the other nodes has: its hold goes on here too.
-- KEYS: lock, token, gone
-- ARGV: claim and try, lease (ms), token, fields and values of the lock's hash
-- Answers 1 done, 0 another one has it, or the claim was given up.
--@include begin
local lock, token, gone = KEYS[1], KEYS[2], KEYS[3]
local claim, lease, ballot = ARGV[1], ARGV[2], ARGV[3]
--@include buried
if redis.call('EXISTS', lock) == 1 or is_buried() then
    return 0
end
if tonumber(redis.call('GET', token) or 0) < tonumber(ballot) then
    redis.call('SET', token, ballot, 'PX', 86400000)
end
redis.call('HSET', lock, unpack(ARGV, 4))
redis.call('PEXPIRE', lock, lease)
return 1
