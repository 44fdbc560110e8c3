local function peek()
    --@include layout_peek
    return holding, first, last, owner, since, pid, host, why
end
