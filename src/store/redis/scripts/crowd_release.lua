-- Ends a claim that is not alone, or waits to be, and touches no other; whoever can be granted then is.
-- ARGV: claim, lease, tombstone (ms; 0: none), history (0 or 1), channel ('': no public message), message up to its time,
-- how the hold ended (released or lost), object, whether what it took was used (0 or 1), the command that publishes
-- Answers {5} it was there, {4} it was not.
--@include keys
local claim, lease, tombstone, history, channel, message, kind, object, used_up, announce = unpack(ARGV, 1, 10)
--@include time
--@include grant
--@include queue
go_on_without_memory()

local result = 4
gather(lease)
local ended, mode, whose = finish(claim, kind, used_up == '1')
if ended then
    result = 5
    if channel ~= '' and mode ~= 'take' then
        call(announce, channel, message .. now_ms_text .. ',"holder":"' .. whose .. '"}')
    end
elseif call('ZSCORE', queue_until, claim) then
    result = 5
    leave(claim)
else
    -- Access rules may have stopped its acquire when half a waiter was written.
    call('HDEL', queue_info, claim)
end
settle(nil, nil)
if tombstone ~= '0' then
    --@include bury
    bury(claim, tombstone)
end
return { result, 0, 0, 0, mended_ttl, mended_owner, mended_queue }
