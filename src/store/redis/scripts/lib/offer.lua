-- Hands the free lock on to a waiter: an offer, which lives until its first renewal. `before` is the highest token so far
-- where that is known, because the hold that had it was just ended; else nil. `alone`: nobody else waits.
--
-- The waiter may start with what it is told, so it is told only after it has the lock, whatever may be refused later.
-- PUBLISH says whether anybody hears it. Nobody: the waiter is passed over but keeps its place, because its connection
-- may just have been cut; its lease alone removes it.
--@include draw
local life = tonumber(lease) < OFFER_MS and lease or OFFER_MS_TEXT
--@include layout_put
local is_heard = call(publish, 'lock:wake:' .. client .. shard, claim .. ' ' .. first_text .. ' ' .. last_text) > 0
if is_heard then
    --@include leave
    -- It has the lock, whatever is in the place of the log.
    local attempt = redis.pcall
    --@include note_grant
else
    call('DEL', lock)
end
