-- The queue: claims by the order in which they came, what is to be known about each, and until when each one counts.
-- A waiter's entry in queue_info: `<lease> <tokens> <fair> <wake> <owner> <pid> <since> <host> <why>`.
local mended_ttl, mended_owner, mended_queue = 0, 0, 0
-- So many waiters are looked at, by serve and by admit together: they call each other, and a server that runs a script does
-- nothing else. Who is left out is found by the next script.
local LOOKS_MAX = 64
local looks = LOOKS_MAX
-- Grants those who do not want to be alone: see the layout's crowd. They have another word than these.
local admit
local IS_ALONE = { grant = true, one = true, all = true }

local function leave(claim, alone)
    --@include leave
end

local function trim()
    --@include trim
end

-- Refreshes a waiter, of which is known until when it counts.
local function stay(claim, lease, lives)
    local is_new = false
    if now_ms + lease > tonumber(lives) then
        call('ZADD', queue_until, string.format('%d', now_ms + lease), claim)
    end
    --@include keep_queue
end

-- Hands a free lock on to the first waiter that listens. `asker` (a claim or nil) is there without being asked;
-- `asker_lease` is what it gets. `before` is the highest token so far where that is known; else nil. `passed` (or nil): so
-- many are passed over already. Returns true when the lock is taken, or somebody waits for more than it whom nobody may
-- overtake. A waiter that wants only a hint is told and must ask.
local function serve(asker, asker_lease, before, passed)
    passed = passed or 0
    while looks > 0 do
        looks = looks - 1
        -- One at a time: mostly the first one is served, however many there are.
        local heads = call('ZRANGE', queue, passed, passed + 1)
        local claim, alone = heads[1], passed == 0 and not heads[2]
        if not claim then
            return false
        end
        --@include waiter
        passed = passed + 1
        if not counts then
            mended_queue = mended_queue + ((lease and lives) and 0 or 1)
            leave(claim)
            passed = passed - 1
        elseif not IS_ALONE[wake] then
            -- Those who were just granted have it, though nobody may wait behind them.
            return admit(asker, asker_lease, passed - 1) or call('EXISTS', lock) == 1
        elseif claim == asker then
            leave(claim, alone)
            grant(claim, owner, tokens, asker_lease, pid, host, why, fair)
            return true
        elseif wake == 'grant' then
            --@include offer
            if is_heard then
                return true
            end
            before = last
        elseif wake == 'one' and not asker and call(publish, 'lock:wake:' .. client .. shard, claim) > 0 then
            return false
        end
    end
    return false
end

--@include layout_holder
--@include layout_crowd
