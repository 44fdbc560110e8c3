-- The queue: claims by the order in which they came, what is to be known about each, and until when each one counts.
-- A waiter's entry in queue_info: `<lease> <tokens> <fair> <wake> <owner> <pid> <since> <host> <why>`.
local mended_ttl, mended_owner, mended_queue = 0, 0, 0

local function leave(claim)
    redis.call('ZREM', queue, claim)
    redis.call('HDEL', queue_info, claim)
    redis.call('ZREM', queue_until, claim)
end

-- Takes waiters out that have not been heard of for their lease.
local function trim()
    for _, claim in ipairs(redis.call('ZRANGEBYSCORE', queue_until, '-inf', now_ms, 'LIMIT', 0, 16)) do
        leave(claim)
    end
end

local function channel_of(owner)
    return 'lock:wake:' .. string.match(owner, '^[^:]*')
end

-- Hands a free lock on to the first waiter that listens: an offer, which lives until its first renewal. `asker` (a
-- claim or nil) is there without being asked; `asker_lease` is what it gets. Returns true when the lock is taken.
--
-- The waiter may start with what it is told, so nothing may go wrong after that: its tokens are drawn first, which is a
-- write, and a server that lets a script write once lets it write on. PUBLISH says whether anybody hears it. Nobody: the
-- waiter is passed over but keeps its place, because its connection may just have been cut; its lease alone removes it.
-- A waiter that wants only a hint is told and must ask.
local function serve(asker, asker_lease)
    local passed = 0
    for _ = 1, 64 do
        -- One at a time: mostly the first one is served, however many there are.
        local claim = redis.call('ZRANGE', queue, passed, passed)[1]
        if not claim then
            return false
        end
        local lease, tokens, fair, wake, owner, pid, host, why = string.match(redis.call('HGET', queue_info, claim) or '',
            '^(%d+) (%d+) ([01]) (%a+) (%S+) (%d+) %d+ (%S+) (.*)$')
        local lives = redis.call('ZSCORE', queue_until, claim)
        passed = passed + 1
        if not lease or not lives or tonumber(lives) <= now_ms then
            mended_queue = mended_queue + ((lease and lives) and 0 or 1)
            leave(claim)
            passed = passed - 1
        elseif claim == asker then
            leave(claim)
            grant(claim, owner, tokens, asker_lease, pid, host, why, fair)
            return true
        elseif wake == 'grant' then
            local _, _, first, last = draw(tokens, pid, host, why, fair)
            if redis.call('PUBLISH', channel_of(owner), claim .. ' ' .. first .. ' ' .. last) > 0 then
                leave(claim)
                give(claim, owner, first, last, math.min(OFFER_MS, tonumber(lease)), pid, host, why, fair)
                return true
            end
        elseif wake == 'one' and not asker and redis.call('PUBLISH', channel_of(owner), claim) > 0 then
            return false
        end
    end
    return false
end
