redis.call('HSET', lock, owner, levels)
