-- A block of tokens above `before` and not below the clock, so that tokens rise even when the counter was lost. One that
-- would end more than a millisecond ahead of the clock is one token, so that tokens never outrun it.
local function block(before, tokens)
    local first, first_text = now_us, now_us_text
    if before >= first then
        first = before + 1
        first_text = string.format('%d', first)
    end
    if tokens == '1' or first + tokens - 1 > now_us + 1000 then
        return first, first, first_text, first_text
    end
    local last = first + tokens - 1
    return first, last, first_text, string.format('%d', last)
end
