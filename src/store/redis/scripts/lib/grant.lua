-- The limit of the log is not set at each grant but only at the first one in a minute: the highest token so far says when
-- the last one was.
local LOG_SPAN_US = 60000000

-- The newest entry of the log.
local entry

-- Draws a block of tokens. The first one is above every token before and not below the clock, so that tokens rise even
-- when the counter was lost; a block that would end more than a millisecond ahead of the clock is one token, so that
-- tokens never outrun it. `before` is the highest token so far. Returns them as numbers and as text. `follows`: how the
-- hold before this one ended was written into the log by this script.
local function draw(before, follows, tokens, pid, host, why, fair)
    local first, first_text = now_us, now_us_text
    if before >= first then
        first = before + 1
        first_text = string.format('%d', first)
    end
    local last, last_text = first, first_text
    if tokens ~= '1' and first + tokens - 1 <= now_us + 1000 then
        last = first + tokens - 1
        last_text = string.format('%d', last)
    end
    -- Before anything is written or said, so that somebody's data in its place leaves no half a grant behind.
    entry = history == '1' and not follows and redis.call('LINDEX', log, '-1')
    count_up(first_text, last_text, pid, host, why, fair)
    return first, last, first_text, last_text
end

-- Writes the grant into the log. A hold that ended neither by a release nor by force has ended with its lease.
local function note_grant(before, owner, first_text, pid, host, why)
    if history ~= '1' then
        return
    end
    local ended = entry and string.match(entry, '^%d+ acquired (.*)$')
    if ended then
        redis.call('LSET', log, '-1', now_ms_text .. ' expired ' .. ended)
    end
    local length = redis.call('RPUSH', log, now_ms_text .. ' acquired ' .. first_text .. ' ' .. owner .. ' ' ..
        now_ms_text .. ' ' .. pid .. '@' .. host .. ' ' .. why)
    if length > 32 then
        redis.call('LTRIM', log, '-32', '-1')
    end
    if length == 1 or math.floor(before / LOG_SPAN_US) ~= math.floor(now_us / LOG_SPAN_US) then
        redis.call('PEXPIRE', log, DAY_MS)
    end
end

-- Gives a free lock to a claim.
local function grant(claim, owner, tokens, life, pid, host, why, fair)
    local before = highest()
    local first, last, first_text, last_text = draw(before, false, tokens, pid, host, why, fair)
    put(claim, owner, first_text, last_text, life, pid, host, why, fair)
    note_grant(before, owner, first_text, pid, host, why)
    return first, last
end
