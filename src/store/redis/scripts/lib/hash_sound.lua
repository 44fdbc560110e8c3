-- A hold of ours that needs no mending: for how long it lasts yet, or nil.
local found = call('HMGET', lock, '~claim', '~owner')
local ttl = found[1] and found[2] and call('PTTL', lock)
