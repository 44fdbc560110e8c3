-- Takes the lock away from the claim that holds it with this token; the next waiter gets it.
-- ARGV: token, reason, history (0 or 1), channel ('': no public message), message up to its time, the command that
-- publishes it
-- Answers {5} done, {4} it is free, or held with another token.
--@include keys
local wanted, reason, history, channel, message, announce = unpack(ARGV, 1, 6)
--@include time
--@include layout_peek
local object = 'lock'
--@include grant
--@include queue
if holding == 'crowd' then
    gather(DAY_MS)
    local result = 4
    for _, claim in ipairs(call('ZRANGE', holders, '0', '-1')) do
        local _, _, token = string.match(call('HGET', holders_info, claim) or '', HOLDER)
        if token == wanted then
            local _, _, whose = finish(claim, 'broken', false, reason)
            result = 5
            if channel ~= '' then
                call(announce, channel, message .. now_ms_text .. ',"holder":"' .. whose .. '"}')
            end
        end
    end
    settle(nil, nil)
    return { result }
end
if not holding or first ~= wanted then
    --@include insist_on_master
    return { 4 }
end
call('DEL', lock)
local kind, why = 'broken', reason
--@include note
if channel ~= '' then
    call(announce, channel, message .. now_ms_text .. ',"holder":"' .. owner .. '"}')
end
serve(nil, nil, tonumber(last))
return { 5 }
