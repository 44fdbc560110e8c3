-- Draws a block of `tokens` and writes it down. `before` is the highest token so far, nil where that is not known: then the
-- counter tells it as it is written, and is written again if it was ahead of the clock.
-- Leaves the block as numbers and as text, and the highest token before.
local first, last, first_text, last_text, highest = now_us, now_us, now_us_text, now_us_text, before
if tokens ~= '1' or (before and before >= now_us) then
    --@include block
    first, last, first_text, last_text = block(before or 0, tokens)
end
--@include layout_count_up
if highest >= first and not before then
    --@include block
    first, last, first_text, last_text = block(highest, tokens)
    local before = highest
    --@include layout_count_up
end
