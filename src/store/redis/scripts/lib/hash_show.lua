local shown = redis.call('HGETALL', lock)
