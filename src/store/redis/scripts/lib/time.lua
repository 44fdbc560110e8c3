-- The server's clock: leases of waiters and the floor of tokens know no other.
local function read_clock()
    local time = redis.call('TIME')
    now_us = time[1] * 1000000 + time[2]
    now_ms = math.floor(now_us / 1000)
end
