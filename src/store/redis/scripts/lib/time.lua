-- The server's clock: leases of waiters and the floor of tokens know no other.
local time = call('TIME')
now_us_text = time[2]
if #now_us_text < 6 then
    now_us_text = string.sub('00000' .. now_us_text, -6)
end
now_us_text = time[1] .. now_us_text
now_ms_text = string.sub(now_us_text, 1, -4)
now_us = time[1] * 1000000 + time[2]
now_ms = (now_us - now_us % 1000) / 1000
