local function glance()
    return string.sub(call('GET', lock) or '', -32), 0, 0
end
