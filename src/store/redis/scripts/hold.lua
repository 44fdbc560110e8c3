-- Counts a level of a hold in the store as well (holds=store), up or down, and sets the full lease.
-- ARGV: claim, lease, levels
-- Answers {1, first, last} held, {4} it is not.
--@include keys
local claim, lease, levels = ARGV[1], tonumber(ARGV[2]), ARGV[3]
--@include layout
local holding, first, last, owner = peek()
if holding ~= claim then
    return { 4 }
end
--@include layout_count
if redis.call('PTTL', lock) < lease then
    redis.call('PEXPIRE', lock, lease)
end
return { 1, tonumber(first), tonumber(last) }
