local shown = redis.call('HGETALL', lock)
local together, base = {}, string.sub(queue, 1, -6)
if redis.call('HGET', lock, '~claim') == 'crowd' then
    for _, claim in ipairs(redis.call('ZRANGEBYSCORE', base .. 'holders', '(' .. now_ms_text, '+inf', 'LIMIT', '0', '1000')) do
        local entry = redis.call('HGET', base .. 'holders:info', claim)
        if entry then
            together[#together + 1] = redis.call('ZSCORE', base .. 'holders', claim)
            together[#together + 1] = entry
        end
    end
end
local counted = tonumber(redis.call('GET', base .. 'count') or -1)
if counted >= 0 then
    counted = counted - (redis.call('HGET', lock, '~taken') or 0)
end
