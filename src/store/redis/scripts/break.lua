-- Takes the lock away from the claim that holds it with this token; the next waiter gets it.
-- ARGV: token, reason, history (0 or 1), channel ('': no public message), message up to its time
-- Answers {5} done, {4} it is free, or held with another token.
--@include keys
local wanted, reason, history, channel, message = unpack(ARGV, 1, 5)
--@include time
--@include layout
--@include note
read_clock()
local holding, first, last, owner, since, pid, host = peek()
if not holding or first ~= wanted then
    return { 4 }
end
redis.call('DEL', lock)
note('broken', first, owner, since, pid, host, reason)
if channel ~= '' then
    redis.call('PUBLISH', channel, message .. now_ms_text .. ',"holder":"' .. owner .. '"}')
end
--@include grant
--@include queue
serve(nil, nil, tonumber(last))
return { 5 }
