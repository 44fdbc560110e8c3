-- True when the claim, or this try of it, was given up before this came.
local function is_buried()
    return redis.call('ZSCORE', gone, claim) or redis.call('ZSCORE', gone, string.sub(claim, 1, 32))
end
