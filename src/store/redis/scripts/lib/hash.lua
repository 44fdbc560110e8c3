-- Layout `hash`: the lock is a hash with the owner's field (holds) and fields of ours that begin with `~`.

-- The claim that holds the lock, with its tokens and owner; all false when nobody does, or a client of another kind.
local function peek()
    local fields = redis.call('HMGET', lock, '~claim', '~token', '~last', '~owner')
    return fields[1], fields[2], fields[3], fields[4]
end

-- Writes down the highest token so far.
local function count_up(_, last)
    redis.call('SET', token, last, 'PX', DAY_MS)
end

-- Makes a claim the holder of a free lock.
local function put(claim, owner, first, last, life, pid, host, why, fair)
    redis.call('HSET', lock, owner, 1, '~claim', claim, '~token', first, '~last', last, '~owner', owner,
        '~host', host, '~pid', pid, '~why', why, '~fair', fair, '~since', now_ms)
    redis.call('PEXPIRE', lock, life)
end

-- Shows how often the holder has the lock.
local function count(owner, levels)
    redis.call('HSET', lock, owner, levels)
end
