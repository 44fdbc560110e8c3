local function grant(claim, owner, tokens, life, pid, host, why, fair)
    --@include grant_now
    return first, last
end
