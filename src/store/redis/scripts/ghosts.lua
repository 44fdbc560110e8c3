-- The claims that a client has here, whether or not it still knows of them. Changes nothing.
-- ARGV: client uuid
--@include keys
local client = ARGV[1] .. ':'
--@include insist_on_master
local found = {}
--@include layout_peek
if holding == 'crowd' then
    local entries = call('HGETALL', string.sub(queue, 1, -6) .. 'holders:info')
    for i = 1, #entries, 2 do
        local one = string.match(entries[i + 1], '^%a+ %d+ %d+ %d+ [01] (%S+) ')
        if one and string.sub(one, 1, #client) == client then
            found[#found + 1] = entries[i]
        end
    end
elseif holding and string.sub(owner, 1, #client) == client then
    found[1] = holding
end
for _, claim in ipairs(call('ZRANGE', queue, 0, 999)) do
    local waiter = string.match(call('HGET', queue_info, claim) or '', '^%d+ %d+ [01] %a+ (%S+) ')
    if waiter and string.sub(waiter, 1, #client) == client then
        found[#found + 1] = claim
    end
end
return found
