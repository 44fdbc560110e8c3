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
