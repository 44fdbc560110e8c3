local function glance()
    return string.sub(redis.call('GET', lock) or '', -32), 0, 0
end
