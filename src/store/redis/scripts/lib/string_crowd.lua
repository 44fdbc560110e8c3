-- There is no place for more than one holder.
admit = function()
    return false
end
