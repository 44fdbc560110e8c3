-- Takes the lock away from the claim that holds it with this token; the next waiter gets it.
-- ARGV: token, reason, history (0 or 1), channel ('': no public message), message up to its time, the command that
-- publishes it
-- Answers {5} done, {4} it is free, or held with another token.
--@include keys
local wanted, reason, history, channel, message, announce = unpack(ARGV, 1, 6)
--@include time
--@include layout
--@include note
read_clock()
local holding, first, last, owner, since, pid, host = peek()
if holding == 'crowd' then
    --@include grant
    --@include queue
    --@include layout_holder
    local object = 'lock'
    --@include layout_crowd
    gather(DAY_MS)
    local result = 4
    for _, claim in ipairs(redis.call('ZRANGE', holders, '0', '-1')) do
        local _, _, token = string.match(redis.call('HGET', holders_info, claim) or '', HOLDER)
        if token == wanted then
            local _, _, whose = finish(claim, 'broken', false, reason)
            result = 5
            if channel ~= '' then
                redis.call(announce, channel, message .. now_ms_text .. ',"holder":"' .. whose .. '"}')
            end
        end
    end
    settle(nil, nil)
    return { result }
end
if not holding or first ~= wanted then
    insist_on_master()
    return { 4 }
end
redis.call('DEL', lock)
note('broken', first, owner, since, pid, host, reason)
if channel ~= '' then
    redis.call(announce, channel, message .. now_ms_text .. ',"holder":"' .. owner .. '"}')
end
--@include grant
--@include queue
serve(nil, nil, tonumber(last))
return { 5 }
