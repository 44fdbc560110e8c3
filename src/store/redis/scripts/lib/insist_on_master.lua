-- A replica does not write, but would answer from what it has, which may be old: a claim that it has not heard of yet
-- would be gone. So whatever could end without a write ends with one that changes nothing. (Not before: a server whose
-- memory is full refuses the first write of a script, and none after it.)
call('ZREM', queue, '')
