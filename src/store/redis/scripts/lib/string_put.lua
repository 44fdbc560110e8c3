-- Makes `claim` the holder of a free lock, for its `life`.
call('SET', lock, owner .. ':' .. claim, 'NX', 'PX', life)
