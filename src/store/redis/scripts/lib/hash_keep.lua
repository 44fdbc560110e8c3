local function glance()
    return unpack(call('HMGET', lock, '~claim', '~token', '~last'))
end
