-- Takes the vote of a claim back, and touches no other.
-- KEYS: lock, gone, log
-- ARGV: claim (then whichever try of it), or claim and try; tombstone (ms; 0: none); channel ('': no message); message
-- up to its holder; how the hold ended, for the log ('': not noted); reason ('': why it was taken)
-- Answers 1 it was there, 0 it was not.
--@include begin
local lock, gone, log = KEYS[1], KEYS[2], KEYS[3]
local claim, tombstone, channel, message, kind, reason = unpack(ARGV, 1, 6)
local now_ms
if tombstone ~= '0' or kind ~= '' then
    if redis.replicate_commands then
        redis.replicate_commands()
    end
    local time = redis.call('TIME')
    now_ms = math.floor((time[1] * 1000000 + time[2]) / 1000)
end
local fields = redis.call('HMGET', lock, '~claim', '~owner')
local there = fields[1] and (fields[1] == claim or (#claim == 32 and string.sub(fields[1], 1, 32) == claim))
if there then
    if kind ~= '' then
        local hold = redis.call('HMGET', lock, '~token', '~pid', '~host', '~why')
        local first = hold[1] or '0'
        redis.call('RPUSH', log, table.concat({ now_ms, kind, first, fields[2] or '-', math.floor(first / 1000),
            (hold[2] or '0') .. '@' .. (hold[3] or '-'), reason ~= '' and reason or hold[4] or '' }, ' '))
        redis.call('LTRIM', log, -32, -1)
        redis.call('PEXPIRE', log, 86400000)
    end
    redis.call('DEL', lock)
    if channel ~= '' then
        redis.call('PUBLISH', channel, message .. (fields[2] or '') .. '"}')
    end
end
if tombstone ~= '0' then
    redis.call('ZREMRANGEBYSCORE', gone, '-inf', now_ms)
    redis.call('ZADD', gone, now_ms + tombstone, claim)
    if redis.call('PTTL', gone) < tonumber(tombstone) then
        redis.call('PEXPIRE', gone, tombstone)
    end
end
return there and 1 or 0
