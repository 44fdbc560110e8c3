-- The server's clock: leases of waiters and the floor of tokens know no other.
local function read_clock()
    local time = redis.call('TIME')
    now_us_text = time[1] .. string.sub('00000' .. time[2], -6)
    now_ms_text = string.sub(now_us_text, 1, -4)
    now_us, now_ms = tonumber(now_us_text), tonumber(now_ms_text)
end
