-- The newest entry of the log.
local entry

-- Draws a block of tokens. The first one is above every token before and not below the clock, so that tokens rise even
-- when the counter was lost; a block that would end more than a millisecond ahead of the clock is one token, so that
-- tokens never outrun it. Returns them as text too, because Lua would round numbers of this size when it makes text.
local function draw(tokens, pid, host, why, fair)
    local first = now_us
    local before = tonumber(string.match(redis.call('GET', token) or '', '^%d+') or 0)
    if before >= first then
        first = before + 1
    end
    local last = first + tokens - 1
    if last > now_us + 1000 then
        last = first
    end
    local first_text, last_text = string.format('%.0f', first), string.format('%.0f', last)
    -- Before anything is written or said, so that somebody's data in its place leaves no half a grant behind.
    entry = history == '1' and redis.call('LINDEX', log, -1)
    count_up(first_text, last_text, pid, host, why, fair)
    return first, last, first_text, last_text
end

-- Gives a free lock to a claim, with tokens that were drawn for it.
local function give(claim, owner, first_text, last_text, life, pid, host, why, fair)
    put(claim, owner, first_text, last_text, life, pid, host, why, fair)
    if history == '1' then
        -- A hold that did not end by a release or by force has ended with its lease.
        local ended = entry and string.match(entry, '^%d+ acquired (.*)$')
        if ended then
            redis.call('LSET', log, -1, now_ms .. ' expired ' .. ended)
        end
        local length = redis.call('RPUSH', log, table.concat({ now_ms, 'acquired', first_text, owner, now_ms,
            pid .. '@' .. host, why }, ' '))
        if length > 32 then
            redis.call('LTRIM', log, -32, -1)
        end
        redis.call('PEXPIRE', log, DAY_MS)
    end
end

local function grant(claim, owner, tokens, life, pid, host, why, fair)
    local first, last, first_text, last_text = draw(tokens, pid, host, why, fair)
    give(claim, owner, first_text, last_text, life, pid, host, why, fair)
    return first, last
end
