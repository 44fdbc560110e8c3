-- Writes down the highest token so far, `last_text`, and for whom it is. What it was before is asked, if `before` does not
-- say it.
if not before then
    highest = tonumber(string.match(call('GET', token) or '', '^%d+') or 0)
end
call('SET', token, last_text .. ' ' .. first_text .. ' ' .. now_ms_text .. ' ' .. fair .. ' ' .. pid .. ' ' .. host ..
    ' ' .. why, 'PX', DAY_MS)
