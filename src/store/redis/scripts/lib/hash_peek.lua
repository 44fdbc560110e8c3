-- Layout `hash`: the lock is a hash with the owner's field (holds) and fields of ours that begin with `~`.
-- The claim that holds the lock, its tokens and owner, since when, and from where; all false when nobody does, or a
-- client of another kind.
local holding, first, last, owner, since, pid, host, why = unpack(call('HMGET', lock, '~claim', '~token', '~last',
    '~owner', '~since', '~pid', '~host', '~why'))
