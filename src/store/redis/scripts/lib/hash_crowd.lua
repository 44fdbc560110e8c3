-- Holders that are not alone: readers, permits, and what was taken of a count. While there are any, the lock is a hash
-- with `~claim` crowd, the field of each owner, and how many hold it in which way; its time limit is the latest end of a
-- holder's lease. Each holder's own end is in `holders`, and what is to be known about it in `holders:info`:
-- `<mode> <units> <first> <last> <fair> <owner> <pid> <since> <host> <why>`.
--
-- What is taken of a count is subtracted from it only when the hold ends as it should (the count as it stands minus
-- `taken` is what is left), so that a lease which just runs out gives it back.
local base = string.sub(queue, 1, -6)
local holders, holders_info, count_key = base .. 'holders', base .. 'holders:info', base .. 'count'
local KEPT_MS = '2592000000'
local HOLDER = '^(%a+) (%d+) (%d+) (%d+) ([01]) (%S+) (%d+) (%d+) (%S+) (.*)$'

-- Who holds it: `n` in all; `there`: they are in the keys above; `alone`: one of another form, which was there first;
-- `clean`: nothing is left of those before.
local function nobody(clean)
    return { n = 0, shared = 0, permits = 0, used = 0, taken = 0, ends = 0, foreign = 0, clean = clean }
end
local crowd = nobody(false)

-- A server whose memory is full refuses the first write of a script if it could take more, and none after it. What is held
-- must be kept and given back all the same, so that begins with a write which changes nothing.
local function go_on_without_memory()
    call('ZREM', queue, '')
end

-- A latch or a condition without a count is one with 0; a semaphore is not.
local function write_count(value)
    if value == 0 and object ~= 'lock' then
        call('DEL', count_key)
    else
        call('SET', count_key, string.format('%d', value), 'PX', KEPT_MS)
    end
end

local function count_in(mode, units, sign)
    crowd.n = crowd.n + sign
    if mode == 'shared' then
        crowd.shared = crowd.shared + sign
    elseif mode == 'permit' then
        crowd.permits = crowd.permits + sign
        crowd.used = crowd.used + sign * units
    elseif mode == 'take' then
        crowd.taken = crowd.taken + sign * units
    end
end

local function write_crowd(...)
    call('HSET', lock, '~claim', 'crowd', '~holders', crowd.n, '~shared', crowd.shared, '~permits', crowd.permits,
        '~used', crowd.used, '~taken', crowd.taken, ...)
end

-- The time limit of all three keys.
local function set_limit(ends)
    local text = string.format('%d', ends)
    crowd.ends = ends
    call('PEXPIREAT', lock, text)
    call('PEXPIREAT', holders, text)
    call('PEXPIREAT', holders_info, text)
end

local adopt
--@include peek

-- Makes a claim one of the holders.
local function add(claim, mode, units, first_text, last_text, ends, fair, owner, pid, since, host, why)
    if not crowd.there and not crowd.clean then
        -- Somebody's data in the place of ours is refused by a look at it, before anything is written.
        call('ZCARD', holders)
        call('HGET', holders_info, '')
        call('DEL', holders, holders_info)
    end
    if crowd.alone then
        adopt()
    end
    crowd.there = true
    call('ZADD', holders, string.format('%d', ends), claim)
    call('HSET', holders_info, claim, mode .. ' ' .. units .. ' ' .. first_text .. ' ' .. last_text .. ' ' .. fair ..
        ' ' .. owner .. ' ' .. pid .. ' ' .. since .. ' ' .. host .. ' ' .. why)
    count_in(mode, units, 1)
    call('HINCRBY', lock, owner, '1')
    write_crowd('~owner', owner, '~token', first_text)
    if ends > crowd.ends then
        set_limit(ends)
    end
end

-- The one who holds it alone becomes one of several.
adopt = function()
    local claim, first, last, owner, since, pid, host, why = peek()
    local fair = call('HGET', lock, '~fair')
    local ends = now_ms + call('PTTL', lock)
    call('HDEL', lock, owner, '~last', '~host', '~pid', '~why', '~fair', '~since')
    crowd = nobody(true)
    add(claim, 'exclusive', '0', first, last, ends, fair, owner, pid, since, host, why)
end

-- Ends a hold; `used_up`: what was taken is gone for good.
local function remove(claim, mode, units, owner, used_up)
    count_in(mode, units, -1)
    if used_up and mode == 'take' then
        write_count((call('GET', count_key) or 0) - units)
    end
    if crowd.n == 0 then
        call('DEL', lock, holders, holders_info)
        crowd = nobody(true)
        return
    end
    call('ZREM', holders, claim)
    call('HDEL', holders_info, claim)
    if call('HINCRBY', lock, owner, '-1') <= 0 then
        call('HDEL', lock, owner)
    end
    write_crowd()
    crowd.shrunk = true
end

-- The time limit again, after holds have ended: nobody waits for a lease that was given back.
local function lower_limit()
    if crowd.shrunk and crowd.there then
        local last = call('ZREVRANGE', holders, '0', '0', 'WITHSCORES')
        if tonumber(last[2]) ~= crowd.ends then
            set_limit(tonumber(last[2]))
        end
    end
    crowd.shrunk = false
end

-- Writes down how a hold has ended that nobody else wrote down: of those who are not alone, only if it was not given back.
-- Somebody's data in the place of the log keeps nobody from anything.
local function note_end(kind, mode, first, owner, since, pid, host, why)
    if history ~= '1' or object ~= 'lock' or (kind == 'released' and mode ~= 'exclusive') then
        return
    end
    local text = now_ms_text .. ' ' .. kind .. ' ' .. first .. ' ' .. owner .. ' ' .. since .. ' ' .. pid .. '@' .. host ..
        ' ' .. why
    local newest = redis.pcall('LINDEX', log, '-1')
    if type(newest) == 'table' then
        return
    end
    if newest and string.find(newest, ' acquired ' .. first .. ' ', 1, true) then
        call('LSET', log, '-1', text)
        return
    end
    call('RPUSH', log, text)
    call('LTRIM', log, '-32', '-1')
    call('PEXPIRE', log, DAY_MS)
end

-- Ends the hold of a claim in some way and says how. `reason` stands for its own why. False: it holds nothing.
local function finish(claim, kind, used_up, reason)
    local entry = crowd.there and call('HGET', holders_info, claim)
    if not entry then
        return false
    end
    local mode, units, first, _, _, owner, pid, since, host, why = string.match(entry, HOLDER)
    remove(claim, mode, units, owner, used_up)
    note_end(kind, mode, first, owner, since, pid, host, reason or why)
    return true, mode, owner
end

-- Counts again, where what was counted is not what is there: somebody has deleted some of it.
local function recount()
    local found = nobody(false)
    found.there, found.ends = true, crowd.ends
    crowd = found
    for _, claim in ipairs(call('ZRANGE', holders, '0', '-1')) do
        local mode, units = string.match(call('HGET', holders_info, claim) or '', HOLDER)
        if mode then
            count_in(mode, units, 1)
        else
            call('ZREM', holders, claim)
        end
    end
    mended_owner = mended_owner + 1
    if crowd.n == 0 then
        call('DEL', lock, holders, holders_info)
        crowd = nobody(true)
    else
        write_crowd()
    end
end

-- Finds out who holds it, and ends what is over. False: the key is somebody's data. `lease` is for what has no limit.
local function gather(lease)
    local fields = call('HMGET', lock, '~claim', '~holders', '~shared', '~permits', '~used', '~taken')
    crowd = nobody(false)
    if fields[1] ~= 'crowd' then
        local found = holder(lease)
        if found then
            crowd.n, crowd.alone, crowd.foreign = 1, found.claim or '', found.claim and 0 or 1
        end
        return not (found and found.alien)
    end
    crowd.there, crowd.ends = true, now_ms + call('PTTL', lock)
    crowd.n, crowd.shared, crowd.permits = tonumber(fields[2]), tonumber(fields[3]), tonumber(fields[4])
    crowd.used, crowd.taken = tonumber(fields[5]), tonumber(fields[6])
    if call('ZCARD', holders) ~= crowd.n then
        recount()
    end
    if crowd.there then
        for _, claim in ipairs(call('ZRANGEBYSCORE', holders, '-inf', now_ms_text, 'LIMIT', '0', '64')) do
            if not finish(claim, 'expired', false) then
                recount()
            end
        end
    end
    return true
end

-- What is left of the count; -1: a semaphore that never had one.
local function left()
    local count = call('GET', count_key)
    if not count then
        return object == 'lock' and -1 or 0
    end
    return count - crowd.taken
end

-- Whether a claim can be granted, those who wait left aside (store/grip.h). `beside`: how many holders it stands beside.
local function allows(mode, units, beside)
    local in_the_way, least = crowd.n - beside, math.max(1, units)
    if mode == 'shared' then
        return in_the_way == crowd.shared
    elseif mode == 'permit' then
        return in_the_way == crowd.permits and crowd.used + least <= left()
    elseif mode == 'take' then
        return crowd.foreign == 0 and least <= left()
    end
    return left() == 0
end

local function next_token(pid, host, why, fair)
    local before, tokens = nil, '1'
    --@include draw
    return first_text
end

-- Grants what nothing stands in the way of. Whoever shares gets the epoch, the last token that was given out; a token of a
-- permit is higher than all before; what else is granted is never fenced by its token. Returns tokens and units.
local function hold(claim, mode, units, life, fair, owner, pid, since, host, why)
    local first_text = now_us_text
    local epoch = mode == 'shared' and string.match(call('GET', token) or '', '^%d+$')
    if epoch then
        first_text = epoch
    elseif mode == 'shared' or mode == 'permit' then
        first_text = next_token(pid, host, why, fair)
    end
    if mode == 'permit' then
        if units == '0' then
            units = string.format('%d', left() - crowd.used)
        end
        call('PEXPIRE', count_key, KEPT_MS)
    end
    add(claim, mode, units, first_text, first_text, now_ms + life, fair, owner, pid, since, host, why)
    return tonumber(first_text), first_text, tonumber(units)
end

-- Grants a waiter its turn as an offer, and tells it. Returns false when nobody hears that, and then it waits as before;
-- but a signal, and what keeps nobody out, is its own for as long as it would have waited.
local function offer(claim, mode, units, lease, lives, fair, owner, pid, since, host, why)
    local life = math.min(tonumber(lease), OFFER_MS)
    local _, first_text, given = hold(claim, mode, units, life, fair, owner, pid, since, host, why)
    if call(publish, 'lock:wake:' .. string.match(owner, '^[^:]*') .. shard, claim .. ' ' .. first_text .. ' ' .. first_text) > 0 then
        return true
    end
    if mode == 'pass' or object == 'condition' then
        call('ZADD', holders, lives, claim)
        if tonumber(lives) > crowd.ends then
            set_limit(tonumber(lives))
        end
        return true
    end
    remove(claim, mode, given, owner, false)
    return false
end

-- Grants those who wait, from place `passed` on, as far as they can be granted; `asker` is there without being asked, and
-- gets its lease. True: somebody waits whom nobody may overtake.
admit = function(asker, asker_lease, passed)
    while looks > 0 do
        looks = looks - 1
        local heads = call('ZRANGE', queue, passed, passed + 1)
        local claim, alone = heads[1], passed == 0 and not heads[2]
        if not claim then
            return false
        end
        --@include waiter
        local units = tokens
        if not counts then
            mended_queue = mended_queue + ((lease and lives) and 0 or 1)
            leave(claim)
        elseif IS_ALONE[wake] then
            if crowd.n > 0 then
                return true
            end
            return serve(asker, asker_lease, nil, passed)
        elseif not allows(wake, units, 0) then
            return true
        elseif claim == asker then
            leave(claim, alone)
            hold(claim, wake, units, asker_lease, fair, owner, pid, now_ms_text, host, why)
        elseif offer(claim, wake, units, lease, lives, fair, owner, pid, now_ms_text, host, why) then
            leave(claim, alone)
        else
            passed = passed + 1
        end
    end
    return true
end

-- Brings everything up to date after gather, and after each change. Returns what admit does.
local function settle(asker, asker_lease)
    trim()
    looks = LOOKS_MAX
    local waits = admit(asker, asker_lease, 0)
    -- A signal is for those who wait; what none of them took is over.
    if object == 'condition' and left() ~= 0 then
        write_count(crowd.taken)
    end
    lower_limit()
    return waits
end

-- When to look again at the latest: when the first lease ends that somebody holds it with.
local function first_end(lease)
    if crowd.there then
        return call('ZRANGE', holders, '0', '0', 'WITHSCORES')[2] - now_ms
    end
    local ttl = call('PTTL', lock)
    return ttl > 0 and ttl or tonumber(lease)
end

-- The whole of a renewal, after gather; see renew.lua.
local function renew(claim, lease)
    local queued = call('ZSCORE', queue_until, claim)
    settle(queued and claim, lease)
    local entry = crowd.there and call('HGET', holders_info, claim)
    if entry then
        local ends = now_ms + lease
        if ends > tonumber(call('ZSCORE', holders, claim)) then
            call('ZADD', holders, string.format('%d', ends), claim)
            if ends > crowd.ends then
                set_limit(ends)
            end
        end
        local mode, units, first, last = string.match(entry, HOLDER)
        if mode == 'permit' then
            call('PEXPIRE', count_key, KEPT_MS)
        end
        return { 1, tonumber(first), tonumber(last), tonumber(units), mended_ttl, mended_owner, mended_queue }
    end
    local holding, first, last = peek()
    if holding == claim then
        return { 1, tonumber(first), tonumber(last), 0, mended_ttl, mended_owner, mended_queue }
    end
    local place = queued and call('ZRANK', queue, claim)
    if not place then
        return { 4, 0, 0, 0, mended_ttl, mended_owner, mended_queue }
    end
    stay(claim, lease, queued)
    call('PEXPIRE', count_key, KEPT_MS)
    return { 2, first_end(lease), place, crowd.foreign, mended_ttl, mended_owner, mended_queue }
end
