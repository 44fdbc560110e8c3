-- Takes waiters out that have not been heard of for their lease.
local overdue = call('ZRANGEBYSCORE', queue_until, '-inf', now_ms_text, 'LIMIT', '0', '16')
for i = 1, #overdue do
    local claim, alone = overdue[i], false
    --@include leave
end
