-- The acquire of a claim that was never answered may arrive after its release.
if tombstone ~= '0' then
    redis.call('ZREMRANGEBYSCORE', gone, '-inf', now_ms_text)
    redis.call('ZADD', gone, string.format('%d', now_ms + tombstone), claim)
    if redis.call('PTTL', gone) < tonumber(tombstone) then
        redis.call('PEXPIRE', gone, tombstone)
    end
end
