local function glance()
    return unpack(redis.call('HMGET', lock, '~claim', '~token', '~last'))
end
