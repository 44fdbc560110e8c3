-- The limit of the log is not set at each grant but only at the first one in a minute: the highest token so far says when
-- the last one was.
local LOG_SPAN_US = 60000000

-- A block of tokens above `before` and not below the clock, so that tokens rise even when the counter was lost. One that
-- would end more than a millisecond ahead of the clock is one token, so that tokens never outrun it.
local function block(before, tokens)
    local first, first_text = now_us, now_us_text
    if before >= first then
        first = before + 1
        first_text = string.format('%d', first)
    end
    if tokens == '1' or first + tokens - 1 > now_us + 1000 then
        return first, first, first_text, first_text
    end
    local last = first + tokens - 1
    return first, last, first_text, string.format('%d', last)
end

-- Draws a block and writes it down. `before` is the highest token so far, nil where that is not known: then the counter
-- tells it as it is written, and is written again if it was ahead of the clock.
-- Returns the tokens as numbers and as text, and the highest one before.
local function draw(before, tokens, pid, host, why, fair)
    local first, last, first_text, last_text = block(before or 0, tokens)
    local found = count_up(not before, first_text, last_text, pid, host, why, fair)
    if not before and found >= first then
        first, last, first_text, last_text = block(found, tokens)
        count_up(false, first_text, last_text, pid, host, why, fair)
    end
    return first, last, first_text, last_text, before or found
end

-- Writes a grant into the log, by redis.call or redis.pcall. An entry that is still `acquired` when another one follows
-- has ended with its lease.
local function note_grant(call, before, owner, first_text, pid, host, why)
    if history ~= '1' then
        return
    end
    local length = call('RPUSH', log, now_ms_text .. ' acquired ' .. first_text .. ' ' .. owner .. ' ' ..
        now_ms_text .. ' ' .. pid .. '@' .. host .. ' ' .. why)
    if type(length) ~= 'number' then
        return
    end
    if length > 32 then
        call('LTRIM', log, '-32', '-1')
    end
    if length == 1 or math.floor(before / LOG_SPAN_US) ~= math.floor(now_us / LOG_SPAN_US) then
        call('PEXPIRE', log, DAY_MS)
    end
end

-- Gives a free lock to a claim; last of all, so that somebody's data in the place of a helper leaves no half a grant.
local function grant(claim, owner, tokens, life, pid, host, why, fair)
    local first, last, first_text, last_text, before = draw(nil, tokens, pid, host, why, fair)
    note_grant(redis.call, before, owner, first_text, pid, host, why)
    put(claim, owner, first_text, last_text, life, pid, host, why, fair)
    return first, last
end
