-- Takes `claim` out of the queue. `alone`: nobody else is in it.
if alone then
    call('DEL', queue, queue_info, queue_until)
else
    call('ZREM', queue, claim)
    call('HDEL', queue_info, claim)
    call('ZREM', queue_until, claim)
end
