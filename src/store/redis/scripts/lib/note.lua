-- Writes down how the hold that was just ended has ended, in the entry that its grant has made: `<time> <kind> <token>
-- <owner> <since> <pid>@<host> <why, or the reason why it was ended>`. The log may be gone: then there is nothing to say.
local function note(kind, first, owner, since, pid, host, why)
    if history == '1' and since then
        redis.pcall('LSET', log, '-1', now_ms_text .. ' ' .. kind .. ' ' .. first .. ' ' .. owner .. ' ' .. since .. ' ' ..
            pid .. '@' .. host .. ' ' .. why)
    end
end
