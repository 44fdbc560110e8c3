--@include limits
-- Who holds the lock, nil when nobody does. Mends what is wrong with it on the way: `lease` is what a lock without
-- time limit gets. A hash that is no lock (a field that is no count) is somebody's data: `alien`, never touched.
local function holder(lease)
    if call('HLEN', lock) > FIELDS_MAX and call('HGET', lock, '~claim') ~= 'crowd' then
        return { alien = true }
    end
    local fields = call('HGETALL', lock)
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
        call('DEL', lock)
        mended_owner = mended_owner + 1
        return nil
    end
    found.claim, found.first, found.last = found['~claim'], found['~token'], found['~last']
    found.ttl = call('PTTL', lock)
    if found.ttl < 0 then
        call('PEXPIRE', lock, lease)
        found.ttl = tonumber(lease)
        mended_ttl = mended_ttl + 1
    end
    return found
end
