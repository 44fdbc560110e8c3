-- What there is to know about a lock here; changes nothing.
-- KEYS: lock, token, log
-- Answers {now (us), ttl (ms; -2: it is free), lock, highest token, log}, as they stand in the store.
--@include begin
local time = redis.call('TIME')
return { time[1] * 1000000 + time[2], redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1]),
    redis.call('GET', KEYS[2]) or '', redis.call('LRANGE', KEYS[3], -32, -1) }
