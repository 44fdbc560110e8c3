-- What every script is given. On Redis 4 a script that asks for the time may write only if its effects are replicated.
if redis.replicate_commands then
    redis.replicate_commands()
end
local lock, token, gone, log = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local queue, queue_info, queue_until = KEYS[5], KEYS[6], KEYS[7]
local DAY_MS = 86400000
local now_ms, now_us
-- In a cluster: what the name of a channel ends with so that it is in the slot of the lock; else ''. There a message goes
-- to those who listen on this server (from Redis 7 on), not to every server of the cluster.
local shard = ARGV[#ARGV]
local publish = shard ~= '' and redis.REDIS_VERSION_NUM and 'SPUBLISH' or 'PUBLISH'

-- A replica does not write, but would answer from what it has, which may be old: a claim that it has not heard of yet
-- would be gone. So whatever could end without a write begins with one that changes nothing.
local function insist_on_master()
    redis.call('ZREM', queue, '')
end
