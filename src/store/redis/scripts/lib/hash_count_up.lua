-- Writes down the highest token so far, `last_text`. What it was before is asked, if `before` does not say it; since Redis
-- 6.2 in one command.
if before then
    call('SET', token, last_text, 'PX', DAY_MS)
elseif redis.REDIS_VERSION_NUM then
    highest = tonumber(call('SET', token, last_text, 'PX', DAY_MS, 'GET') or 0) or 0
else
    highest = tonumber(call('GET', token) or 0) or 0
    call('SET', token, last_text, 'PX', DAY_MS)
end
