-- The version of a name: reads it, or raises it if it is what somebody expects. It starts at the clock, so that no version
-- comes twice though the server forgets.
-- ARGV: expected ('': only read)
-- Answers {5, version}, or {4, version} when it is another one.
--@include keys
local expected = ARGV[1]
local KEPT_MS = '2592000000'
local key = string.sub(queue, 1, -6) .. 'version'
local version = call('GET', key) or '0'
if expected == '' or expected ~= version then
    --@include insist_on_master
end
if expected == '' then
    return { 5, tonumber(version) }
end
if expected ~= version then
    return { 4, tonumber(version) }
end
--@include time
local raised = math.max(version + 1, now_us)
call('SET', key, string.format('%d', raised), 'PX', KEPT_MS)
return { 5, raised }
