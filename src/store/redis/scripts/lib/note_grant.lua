-- Writes a grant into the log; `attempt` is redis.call or redis.pcall. An entry that is still `acquired` when another one
-- follows has ended with its lease. The limit of the log is not set at each grant but only at the first one in a minute:
-- the highest token before says when the last one was.
if history == '1' then
    local length = attempt('RPUSH', log, now_ms_text .. ' acquired ' .. first_text .. ' ' .. owner .. ' ' ..
        now_ms_text .. ' ' .. pid .. '@' .. host .. ' ' .. why)
    if type(length) == 'number' then
        if length > 32 then
            attempt('LTRIM', log, '-32', '-1')
        end
        if length == 1 or now_us % 60000000 < now_us - highest or highest > now_us then
            attempt('PEXPIRE', log, DAY_MS)
        end
    end
end
