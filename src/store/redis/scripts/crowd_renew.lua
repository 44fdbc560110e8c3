-- Refreshes a claim that is not alone, or waits to be; never registers one that is unknown.
-- ARGV: claim, lease, history (0 or 1), object
-- Answers as renew does, {1, first, last, units, …} if it holds.
--@include keys
local claim, lease, history, object = unpack(ARGV, 1, 4)
--@include time
--@include grant
--@include queue
go_on_without_memory()
if not gather(lease) then
    return redis.error_reply(NO_LOCK)
end
return renew(claim, lease)
