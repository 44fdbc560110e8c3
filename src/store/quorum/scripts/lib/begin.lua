-- Without keys it is only made known to the server.
if #KEYS == 0 then
    return 0
end
