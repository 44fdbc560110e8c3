-- Gives a free lock to a claim; last of all, so that somebody's data in the place of a helper leaves no half a grant.
local before, attempt = nil, call
--@include draw
--@include note_grant
--@include layout_put
