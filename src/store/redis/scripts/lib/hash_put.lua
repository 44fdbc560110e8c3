-- Makes `claim` the holder of a free lock, for its `life`.
call('HSET', lock, owner, '1', '~claim', claim, '~token', first_text, '~last', last_text, '~owner', owner,
    '~host', host, '~pid', pid, '~why', why, '~fair', fair, '~since', now_ms_text)
call('PEXPIRE', lock, life)
