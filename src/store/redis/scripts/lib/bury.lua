-- Remembers an id for so many milliseconds.
local function bury(id, life)
    call('ZREMRANGEBYSCORE', gone, '-inf', now_ms_text)
    call('ZADD', gone, string.format('%d', now_ms + life), id)
    if call('PTTL', gone) < tonumber(life) then
        call('PEXPIRE', gone, life)
    end
end
