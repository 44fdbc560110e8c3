-- What every script is given. Before Redis 7, which has a number for its version, a script that asks for the time may
-- write only if its effects are replicated.
if not redis.REDIS_VERSION_NUM and redis.replicate_commands then
    redis.replicate_commands()
end
local lock, token, gone, log = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local queue, queue_info, queue_until = KEYS[5], KEYS[6], KEYS[7]
local DAY_MS = '86400000'
-- Numbers go to commands as text made by hand: making text of a number is dear, and Lua would round large ones.
local now_ms, now_us, now_ms_text, now_us_text
-- In a cluster: what the name of a channel ends with so that it is in the slot of the lock; else ''. There a message goes
-- to those who listen on this server (from Redis 7 on), not to every server of the cluster.
local shard = ARGV[#ARGV]
local publish = shard ~= '' and redis.REDIS_VERSION_NUM and 'SPUBLISH' or 'PUBLISH'

-- A replica does not write, but would answer from what it has, which may be old: a claim that it has not heard of yet
-- would be gone. So whatever could end without a write ends with one that changes nothing. (Not before: a server whose
-- memory is full refuses the first write of a script, and none after it.)
local function insist_on_master()
    redis.call('ZREM', queue, '')
end
