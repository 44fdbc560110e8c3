-- Layout `hash`: the lock is a hash with the owner's field (holds) and fields of ours that begin with `~`.

-- The claim that holds the lock, its tokens and owner, since when, and from where; all false when nobody does, or a
-- client of another kind.
local function peek()
    return unpack(redis.call('HMGET', lock, '~claim', '~token', '~last', '~owner', '~since', '~pid', '~host', '~why'))
end

-- Writes down the highest token so far. `asks`: returns, as a number, what it was before; since Redis 6.2 in one command.
local function count_up(asks, _, last)
    local before = 0
    if asks and redis.REDIS_VERSION_NUM then
        before = redis.call('SET', token, last, 'PX', DAY_MS, 'GET')
    else
        before = asks and redis.call('GET', token)
        redis.call('SET', token, last, 'PX', DAY_MS)
    end
    return tonumber(before or 0) or 0
end

-- Makes a claim the holder of a free lock.
local function put(claim, owner, first, last, life, pid, host, why, fair)
    redis.call('HSET', lock, owner, '1', '~claim', claim, '~token', first, '~last', last, '~owner', owner,
        '~host', host, '~pid', pid, '~why', why, '~fair', fair, '~since', now_ms_text)
    redis.call('PEXPIRE', lock, life)
end

-- Shows how often the holder has the lock.
local function count(owner, levels)
    redis.call('HSET', lock, owner, levels)
end
