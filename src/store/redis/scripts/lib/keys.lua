-- What every script is given. Before Redis 7, which has a number for its version, a script that asks for the time may
-- write only if its effects are replicated.
--
-- The server runs all of a script each time, definitions of functions too, and these cost as much as its commands. So the
-- parts that nearly every call needs are no functions but pieces, which stand where they are included and take and leave
-- their values in variables; functions come where they are rarely reached.
local call = redis.call
if not redis.REDIS_VERSION_NUM and redis.replicate_commands then
    redis.replicate_commands()
end
local lock, token, gone, log, queue, queue_info, queue_until = unpack(KEYS, 1, 7)
local DAY_MS = '86400000'
local OFFER_MS, OFFER_MS_TEXT = 2000, '2000'
-- Numbers go to commands as text made by hand: making text of a number is dear, and Lua would round large ones.
local now_ms, now_us, now_ms_text, now_us_text
-- In a cluster: what the name of a channel ends with so that it is in the slot of the lock; else ''. There a message goes
-- to those who listen on this server (from Redis 7 on), not to every server of the cluster.
local shard = ARGV[#ARGV]
local publish = shard ~= '' and redis.REDIS_VERSION_NUM and 'SPUBLISH' or 'PUBLISH'
