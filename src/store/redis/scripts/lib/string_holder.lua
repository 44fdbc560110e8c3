--@include limits
--@include peek
-- Who holds the lock, nil when nobody does. Mends what is wrong with it on the way: `lease` is what a lock without
-- time limit gets. A text without time limit that is no owner is somebody's data: `alien`, never touched.
local function holder(lease)
    local value = call('GET', lock)
    if not value then
        return nil
    end
    if value == '' then
        call('DEL', lock)
        mended_owner = mended_owner + 1
        return nil
    end
    local found = { ttl = call('PTTL', lock) }
    found.claim, found.first, found.last, found.owner = peek()
    if not found.claim then
        found.owner = value
    end
    if found.ttl < 0 then
        if not string.match(value, '^%S+:%d+$') and not found.claim then
            return { alien = true }
        end
        call('PEXPIRE', lock, lease)
        found.ttl = tonumber(lease)
        mended_ttl = mended_ttl + 1
    end
    return found
end
