-- A hold of ours that needs no mending: for how long it lasts yet, or nil.
local ttl
do
    --@include string_parse
    ttl = holding and call('PTTL', lock)
end
