--@include limits
local shown = { call('GET', lock) or nil }
if shown[1] and shown[1] ~= '' then
    local is_owner = string.match(shown[1], '^%S+:%x+$') or call('PTTL', lock) >= 0
    if #shown[1] > TEXT_MAX or not is_owner then
        return redis.error_reply(NO_LOCK)
    end
end
local together, counted = {}, -1
