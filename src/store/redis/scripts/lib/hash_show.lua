--@include limits
local is_crowd = call('HGET', lock, '~claim') == 'crowd'
if not is_crowd and call('HLEN', lock) > FIELDS_MAX then
    return redis.error_reply(NO_LOCK)
end
local shown = call('HGETALL', lock)
for i = 1, #shown, 2 do
    local field, value = shown[i], shown[i + 1]
    local is_ours = string.sub(field, 1, 1) == '~'
    if #field > TEXT_MAX or #value > TEXT_MAX or not (is_ours or string.match(value, '^-?%d+$')) then
        return redis.error_reply(NO_LOCK)
    end
end
local together, base = {}, string.sub(queue, 1, -6)
if is_crowd then
    for _, claim in ipairs(call('ZRANGEBYSCORE', base .. 'holders', '(' .. now_ms_text, '+inf', 'LIMIT', '0', '1000')) do
        local entry = call('HGET', base .. 'holders:info', claim)
        if entry then
            together[#together + 1] = call('ZSCORE', base .. 'holders', claim)
            together[#together + 1] = entry
        end
    end
end
local counted = tonumber(call('GET', base .. 'count') or -1)
if counted >= 0 then
    counted = counted - (call('HGET', lock, '~taken') or 0)
end
