-- Writes down how a hold has ended, in the entry that its grant has made: `<time> <kind> <token> <owner> <since>
-- <pid>@<host> <why>`. `reason` (or nil) takes the place of why it was taken.
local function note(kind, first, reason)
    if history ~= '1' then
        return
    end
    local rest = string.match(redis.call('LINDEX', log, -1) or '', '^%d+ acquired (.*)$')
    if not rest or string.match(rest, '^%d+') ~= first then
        return
    end
    if reason then
        rest = string.match(rest, '^%S+ %S+ %S+ %S+ ') .. reason
    end
    redis.call('LSET', log, -1, now_ms .. ' ' .. kind .. ' ' .. rest)
end
