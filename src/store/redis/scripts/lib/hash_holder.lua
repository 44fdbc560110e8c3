--@include limits
-- A hold of ours that needs no mending: for how long it lasts yet, or nil.
local function sound_ttl()
    local fields = redis.call('HMGET', lock, '~claim', '~owner')
    local ttl = fields[1] and fields[2] and redis.call('PTTL', lock)
    return ttl and ttl > 0 and ttl
end

-- Who holds the lock, nil when nobody does. Mends what is wrong with it on the way: `lease` is what a lock without
-- time limit gets. A hash that is no lock (a field that is no count) is somebody's data: `alien`, never touched.
local function holder(lease)
    if redis.call('HLEN', lock) > FIELDS_MAX and redis.call('HGET', lock, '~claim') ~= 'crowd' then
        return { alien = true }
    end
    local fields = redis.call('HGETALL', lock)
    if #fields == 0 then
        return nil
    end
    local found = {}
    for i = 1, #fields, 2 do
        if string.sub(fields[i], 1, 1) == '~' then
            found[fields[i]] = fields[i + 1]
        elseif #fields[i + 1] > 20 or not string.match(fields[i + 1], '^-?%d+$') then
            return { alien = true }
        elseif tonumber(fields[i + 1]) > 0 then
            found.owner = fields[i]
        end
    end
    if not found.owner then
        redis.call('DEL', lock)
        mended_owner = mended_owner + 1
        return nil
    end
    found.claim, found.first, found.last = found['~claim'], found['~token'], found['~last']
    found.ttl = redis.call('PTTL', lock)
    if found.ttl < 0 then
        redis.call('PEXPIRE', lock, lease)
        found.ttl = tonumber(lease)
        mended_ttl = mended_ttl + 1
    end
    return found
end
