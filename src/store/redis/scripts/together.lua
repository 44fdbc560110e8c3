-- Takes several locks at once if all of them are free; else none.
-- KEYS: those of each lock. ARGV: history (0 or 1), owner, pid, host; then of each claim: claim, lease, tokens, fair (0 or
-- 1), why
-- Answers {1, first, last, first, last, …} held, {3} one of them is held by somebody; {6} they must be asked one by one.
--@include keys
local history, owner, pid, host = unpack(ARGV, 1, 4)
--@include time
--@include grant

local keys, looked = {}, {}
for i = 1, #KEYS, 7 do
    keys[#keys + 1] = i
    looked[#looked + 1], looked[#looked + 2], looked[#looked + 3] = KEYS[i], KEYS[i + 4], KEYS[i + 2]
end
-- The usual case in one look: no lock, no queue, nobody given up.
if call('EXISTS', unpack(looked)) > 0 then
    for place, i in ipairs(keys) do
        if call('PTTL', KEYS[i]) > 0 then
            return { 3 }
        end
        if call('EXISTS', KEYS[i], KEYS[i + 4]) > 0 or call('ZSCORE', KEYS[i + 2], ARGV[5 * place]) then
            return { 6 }
        end
    end
end
local answer = { 1 }
for place, i in ipairs(keys) do
    local claim, lease, tokens, fair, why = unpack(ARGV, 5 * place, 5 * place + 4)
    lock, token, gone, log = unpack(KEYS, i, i + 3)
    -- What is refused halfway (somebody's data in the place of a helper, a full server) leaves nothing held; the one that
    -- is refused says why when it is asked for by itself.
    local done, first, last = pcall(grant, claim, owner, tokens, lease, pid, host, why, fair)
    if not done then
        for earlier = 1, place - 1 do
            call('DEL', KEYS[keys[earlier]])
        end
        return { 6 }
    end
    answer[#answer + 1], answer[#answer + 2] = first, last
end
return answer
