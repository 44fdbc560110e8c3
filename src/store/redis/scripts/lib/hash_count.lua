-- Shows how often the holder has the lock.
call('HSET', lock, owner, levels)
