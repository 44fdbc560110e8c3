-- Writes down what became of a hold. The list is cut, and its day begins anew, at each grant.
local function note(kind, first, owner, text)
    if history ~= '1' then
        return
    end
    owner = string.gsub(owner, '%s', '_')
    local length = redis.call('RPUSH', log, now_ms .. ' ' .. kind .. ' ' .. first .. ' ' .. owner .. ' ' .. text)
    if length == 1 then
        redis.call('PEXPIRE', log, DAY_MS)
    elseif length > 33 then
        redis.call('LTRIM', log, -32, -1)
    end
end
