local shown = { redis.call('GET', lock) or nil }
