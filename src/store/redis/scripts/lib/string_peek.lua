-- Layout `string`: the lock is `<owner>:<claim>`; what else there is to know about the holder stands behind its last
-- token in the counter, which is written at each grant anyway: `<last> <first> <since> <fair> <pid> <host> <why>`.
-- The claim that holds the lock, its tokens and owner, since when, and from where; all nil when nobody does, or a client
-- of another kind.
local first, last, since, pid, host, why
--@include string_parse
if holding then
    last, first, since, pid, host, why = string.match(call('GET', token) or '',
        '^(%d+) (%d+) (%d+) [01] (%S+) (%S+) (.*)$')
    -- The counter is gone but the lock is not: somebody deleted it. Its holder goes on with what it was told.
    first, last = first or '0', last or '0'
end
