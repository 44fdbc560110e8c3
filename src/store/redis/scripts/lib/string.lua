-- Layout `string`: the lock is `<owner>:<claim>`; what else there is to know about the holder stands behind its last
-- token in the counter, which is written at each grant anyway: `<last> <first> <since> <fair> <pid> <host> <why>`.

local function parse(value)
    local owner, claim = string.match(value, '^(.+:%d+):(%x+)$')
    if claim and #claim == 32 then
        return owner, claim
    end
    return nil
end

-- The claim that holds the lock, its tokens and owner, since when, and from where; all nil when nobody does, or a client
-- of another kind.
local function peek()
    local value = redis.call('GET', lock)
    local owner, claim
    if value then
        owner, claim = parse(value)
    end
    if not claim then
        return nil
    end
    local last, first, since, pid, host, why = string.match(redis.call('GET', token) or '',
        '^(%d+) (%d+) (%d+) [01] (%S+) (%S+) (.*)$')
    -- The counter is gone but the lock is not: somebody deleted it. Its holder goes on with what it was told.
    return claim, first or '0', last or '0', owner, since, pid, host, why
end

-- Writes down the highest token so far, and for whom it is. `asks`: returns, as a number, what it was before.
local function count_up(asks, first, last, pid, host, why, fair)
    local before = asks and redis.call('GET', token) or ''
    redis.call('SET', token, last .. ' ' .. first .. ' ' .. now_ms_text .. ' ' .. fair .. ' ' .. pid .. ' ' .. host ..
        ' ' .. why, 'PX', DAY_MS)
    return tonumber(string.match(before, '^%d+') or 0)
end

-- Makes a claim the holder of a free lock.
local function put(claim, owner, _, _, life)
    redis.call('SET', lock, owner .. ':' .. claim, 'NX', 'PX', life)
end

-- There is no place for how often the holder has the lock.
local function count()
end
