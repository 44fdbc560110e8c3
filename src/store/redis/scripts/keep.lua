-- Renews a claim that holds the lock, and nothing else: with the lock's own key alone, so that it works while a cluster
-- moves the keys of a slot one after the other, when nothing can be asked of all of them together.
-- ARGV: claim, lease
-- Answers {1, first, last} held, with at least the full lease (tokens 0 where they stand elsewhere); {0} not here.
--@include keys
local claim, lease = ARGV[1], tonumber(ARGV[2])
--@include layout_keep
local holding, first, last = glance()
if holding ~= claim then
    return { 0 }
end
local ttl = call('PTTL', lock)
-- Less than any lease: a look, which must not end what has no time limit.
if ttl < 0 and lease < 100 then
    lease = 30000
end
-- A renewal never shortens; on a replica it must not seem to be one.
call('PEXPIRE', lock, math.max(lease, ttl))
return { 1, tonumber(first), tonumber(last) }
