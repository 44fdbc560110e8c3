-- Gives a free lock to a claim. The first token is above every token before and not below the clock, so that tokens
-- rise even when the counter was lost; a block that would end more than a millisecond ahead of the clock is one token,
-- so that tokens never outrun it.
local function grant(claim, owner, tokens, life, pid, host, why, fair)
    local first = now_us
    local before = tonumber(string.match(redis.call('GET', token) or '', '^%d+') or 0)
    if before >= first then
        first = before + 1
    end
    local last = first + tokens - 1
    if last > now_us + 1000 then
        last = first
    end
    -- Lua itself would round numbers of this size when it makes text of them.
    local first_text = string.format('%.0f', first)
    put(claim, owner, first_text, string.format('%.0f', last), life, pid, host, why, fair)
    if history == '1' then
        local entry = now_ms .. ' acquired ' .. first_text .. ' ' .. owner .. ' ' .. pid .. '@' .. host .. ' ' .. why
        local expired_token, expired_owner =
            string.match(redis.call('LINDEX', log, -1) or '', '^%d+ acquired (%d+) (%S+)')
        if expired_token then
            redis.call('RPUSH', log, now_ms .. ' expired ' .. expired_token .. ' ' .. expired_owner .. ' ', entry)
        else
            redis.call('RPUSH', log, entry)
        end
        redis.call('LTRIM', log, -32, -1)
        redis.call('PEXPIRE', log, DAY_MS)
    end
    return first, last
end
