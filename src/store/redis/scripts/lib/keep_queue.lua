-- Sees to it that the queue outlives a waiter with this lease. Raised in large steps, or every waiter would pay for it.
if is_new or call('PTTL', queue) < lease + 1000 then
    local life = string.format('%d', 2 * lease + 1000)
    call('PEXPIRE', queue, life)
    call('PEXPIRE', queue_info, life)
    call('PEXPIRE', queue_until, life)
end
