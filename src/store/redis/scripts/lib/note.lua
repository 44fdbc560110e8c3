-- Writes down how a hold ends, in the entry that its grant has made: `<time> <kind> <token> <owner> <since> <pid>@<host>
-- <why, or the reason why it was ended>`. The log may be gone: then there is nothing to say. Somebody's data in its place
-- must not keep a lock from being given back: then nothing is logged.
if history == '1' and since then
    local reply = redis.pcall('LSET', log, '-1', now_ms_text .. ' ' .. kind .. ' ' .. first .. ' ' .. owner .. ' ' ..
        since .. ' ' .. pid .. '@' .. host .. ' ' .. why)
    if reply.err and not string.find(reply.err, 'no such key', 1, true) then
        history = '0'
    end
end
