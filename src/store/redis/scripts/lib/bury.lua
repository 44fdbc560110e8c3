-- Remembers an id for so many milliseconds.
local function bury(id, life)
    redis.call('ZREMRANGEBYSCORE', gone, '-inf', now_ms_text)
    redis.call('ZADD', gone, string.format('%d', now_ms + life), id)
    if redis.call('PTTL', gone) < tonumber(life) then
        redis.call('PEXPIRE', gone, life)
    end
end
