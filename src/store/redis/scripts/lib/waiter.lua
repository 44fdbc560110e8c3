-- What there is to know about a claim that waits; `counts`: it has been heard of within its lease.
local lease, tokens, fair, wake, owner, client, pid, since, host, why = string.match(call('HGET', queue_info, claim) or '',
    '^(%d+) (%d+) ([01]) (%a+) (([^: ]*)%S*) (%d+) (%d+) (%S+) (.*)$')
local lives = call('ZSCORE', queue_until, claim)
local counts = lease and lives and tonumber(lives) > now_ms
