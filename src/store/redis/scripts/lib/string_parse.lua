-- Owner and claim, if the lock is one of ours.
local owner, holding = string.match(call('GET', lock) or '', '^(.+:%d+):(%x+)$')
if holding and #holding ~= 32 then
    owner, holding = nil, nil
end
