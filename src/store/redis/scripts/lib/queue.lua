-- The queue: claims by the order in which they came, what is to be known about each, and until when each one counts.
-- A waiter's entry in queue_info: `<lease> <tokens> <fair> <wake> <owner> <pid> <since> <host> <why>`.
local mended_ttl, mended_owner, mended_queue = 0, 0, 0
local OFFER_MS, OFFER_MS_TEXT = 2000, '2000'
-- So many waiters are looked at, by serve and by admit together: they call each other, and a server that runs a script does
-- nothing else. Who is left out is found by the next script.
local LOOKS_MAX = 64
local looks = LOOKS_MAX
-- Grants those who do not want to be alone; with the layout's crowd. They have another word than these.
local admit
local IS_ALONE = { grant = true, one = true, all = true }

-- `alone`: nobody else is in the queue.
local function leave(claim, alone)
    if alone then
        redis.call('DEL', queue, queue_info, queue_until)
    else
        redis.call('ZREM', queue, claim)
        redis.call('HDEL', queue_info, claim)
        redis.call('ZREM', queue_until, claim)
    end
end

-- Takes waiters out that have not been heard of for their lease.
local function trim()
    for _, claim in ipairs(redis.call('ZRANGEBYSCORE', queue_until, '-inf', now_ms_text, 'LIMIT', '0', '16')) do
        leave(claim)
    end
end

-- Sees to it that the queue outlives a waiter with this lease. Raised in large steps, or every waiter would pay for it.
local function keep_queue(lease, is_new)
    if is_new or redis.call('PTTL', queue) < lease + 1000 then
        local life = string.format('%d', 2 * lease + 1000)
        redis.call('PEXPIRE', queue, life)
        redis.call('PEXPIRE', queue_info, life)
        redis.call('PEXPIRE', queue_until, life)
    end
end

-- Refreshes a waiter, of which is known until when it counts.
local function stay(claim, lease, lives)
    if now_ms + lease > tonumber(lives) then
        redis.call('ZADD', queue_until, string.format('%d', now_ms + lease), claim)
    end
    keep_queue(lease, false)
end

local function channel_of(owner)
    return 'lock:wake:' .. string.match(owner, '^[^:]*') .. shard
end

-- Hands a free lock on to the first waiter that listens: an offer, which lives until its first renewal. `asker` (a
-- claim or nil) is there without being asked; `asker_lease` is what it gets. `before` is the highest token so far where
-- that is known, because the hold that had it was just ended; else nil. `heads` (or nil) are the first two of the queue.
-- `passed` (or nil): so many are passed over already. Returns true when the lock is taken, or somebody waits for more
-- than it whom nobody may overtake.
--
-- The waiter may start with what it is told, so it is told only after it has the lock, whatever may be refused later.
-- PUBLISH says whether anybody hears it. Nobody: the waiter is passed over but keeps its place, because its connection
-- may just have been cut; its lease alone removes it. A waiter that wants only a hint is told and must ask.
local function serve(asker, asker_lease, before, heads, passed)
    passed = passed or 0
    while looks > 0 do
        looks = looks - 1
        -- One at a time: mostly the first one is served, however many there are.
        heads = heads or redis.call('ZRANGE', queue, passed, passed + 1)
        local claim, alone = heads[1], passed == 0 and not heads[2]
        heads = nil
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
        elseif not IS_ALONE[wake] then
            if not admit then
                local object = 'lock'
                --@include layout_crowd
            end
            -- Those who were just granted have it, though nobody may wait behind them.
            return admit(asker, asker_lease, passed - 1) or redis.call('EXISTS', lock) == 1
        elseif claim == asker then
            leave(claim, alone)
            grant(claim, owner, tokens, asker_lease, pid, host, why, fair)
            return true
        elseif wake == 'grant' then
            local _, last, first_text, last_text, highest = draw(before, tokens, pid, host, why, fair)
            local life = tonumber(lease) < OFFER_MS and lease or OFFER_MS_TEXT
            put(claim, owner, first_text, last_text, life, pid, host, why, fair)
            if redis.call(publish, channel_of(owner), claim .. ' ' .. first_text .. ' ' .. last_text) > 0 then
                leave(claim, alone)
                -- It has the lock, whatever is in the place of the log.
                note_grant(redis.pcall, highest, owner, first_text, pid, host, why)
                return true
            end
            redis.call('DEL', lock)
            before = last
        elseif wake == 'one' and not asker and redis.call(publish, channel_of(owner), claim) > 0 then
            return false
        end
    end
    return false
end
