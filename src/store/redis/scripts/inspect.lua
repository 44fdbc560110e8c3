-- What there is to know about a lock; changes nothing.
-- Answers {now, ttl, lock, counter, waiters, log, holders, count}: ttl -2 when it is free; lock and counter as they stand in the store;
-- for each waiter until when it counts and its entry; the log as it stands;
-- for each of several holders its end and its entry; what is left of the count, or -1.
--@include keys
--@include time
--@include layout_show
local waiters = {}
for _, claim in ipairs(call('ZRANGE', queue, 0, 999)) do
    local ends = call('ZSCORE', queue_until, claim)
    local entry = call('HGET', queue_info, claim)
    if ends and entry and tonumber(ends) > now_ms then
        waiters[#waiters + 1] = ends
        waiters[#waiters + 1] = entry
    end
end
return { now_ms, call('PTTL', lock), shown, call('GET', token) or '', waiters,
    call('LRANGE', log, -32, -1), together, counted }
