-- Reads or changes the count of a thing; whoever waited for it to change is granted what it waits for.
-- ARGV: verb, value, id (of a count-down), object, history (0 or 1)
-- Answers {5, count or -1, units of permits that are out, whether something was changed}.
--@include keys
local verb, value, id, object, history = unpack(ARGV, 1, 5)
--@include time
--@include grant
--@include queue
local TOMBSTONE_MS = '600000'
local is_quiet = call('EXISTS', lock, queue) == 0
if is_quiet then
    crowd = nobody(false)
else
    gather(DAY_MS)
    settle(nil, nil)
end

local now_left = left()
local before, wanted = now_left, now_left
if verb == 'set' then
    wanted = tonumber(value)
elseif verb == 'set_if_zero' then
    wanted = before <= 0 and tonumber(value) or before
elseif verb == 'add' then
    wanted = math.max(before, 0) + value
elseif verb == 'signal' then
    wanted = math.min(tonumber(value), call('ZCARD', queue))
elseif verb == 'down' and before > 0 and not call('ZSCORE', gone, id) then
    wanted = before - 1
    --@include bury
    bury(id, TOMBSTONE_MS)
end
local done = wanted ~= before or verb == 'set'
if done then
    write_count(wanted + crowd.taken)
    if not is_quiet then
        -- One that wants to be alone may have been granted meanwhile.
        gather(DAY_MS)
    end
    settle(nil, nil)
    now_left = left()
else
    --@include insist_on_master
    call('PEXPIRE', count_key, KEPT_MS)
end
return { 5, now_left, crowd.used, done and 1 or 0, mended_ttl, mended_owner, mended_queue }
