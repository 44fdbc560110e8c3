local shown = { redis.call('GET', lock) or nil }
local together, counted = {}, -1
