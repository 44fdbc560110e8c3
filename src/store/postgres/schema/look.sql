-- Looking, versions, the row of mode=row, and clearing up.

-- What there is to know about a lock: a row for its counter, each holder, each waiter in order, each incident.
CREATE OR REPLACE FUNCTION sneck_inspect(a_name text) RETURNS TABLE (what text, owner text, host text, words text,
    pid bigint, age_us bigint, remaining_us bigint, token bigint, fair boolean, mode integer, units bigint)
LANGUAGE sql STABLE AS $$
    WITH clock AS (SELECT clock_timestamp() AS now_at)
    SELECT what, owner, host, words, pid, age_us, remaining_us, token, fair, mode, units FROM (
        SELECT 1 AS section, 0 AS number, 'counter' AS what, '' AS owner, '' AS host, '' AS words, 0 AS pid,
                0 AS age_us, 0 AS remaining_us, token, false AS fair, 0 AS mode, count AS units
            FROM sneck_state WHERE resource_name = a_name
        UNION ALL
        SELECT 2, token_first, 'holder', owner, host, why, pid, sneck_clock_us(now_at) - sneck_clock_us(since),
                greatest(sneck_clock_us(ends_at) - sneck_clock_us(now_at), 0), token_first, fair, mode, units
            FROM sneck_hold, clock WHERE resource_name = a_name AND NOT sneck_is_over(ends_at, row_xid, now_at)
        UNION ALL
        SELECT 3, place, 'waiter', owner, host, why, pid, sneck_clock_us(now_at) - sneck_clock_us(since),
                sneck_clock_us(ends_at) - sneck_clock_us(now_at), 0, fair, mode, units
            FROM sneck_queue, clock WHERE resource_name = a_name AND ends_at > now_at
        UNION ALL
        SELECT 4, number, kind, owner, '', text, 0, sneck_clock_us(at), 0, token, false, 0, 0
            FROM sneck_incident, clock WHERE resource_name = a_name AND at >= now_at - interval '1 day'
    ) AS everything ORDER BY section, number
$$;

-- The names of locks after a_after that are held or waited for and begin with a_prefix, in order, at most a_most.
CREATE OR REPLACE FUNCTION sneck_list(a_prefix text, a_after text, a_most integer) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT resource_name FROM (
        SELECT resource_name FROM sneck_hold
            WHERE resource_name > a_after AND starts_with(resource_name, a_prefix) AND ends_at > clock_timestamp()
        UNION
        SELECT resource_name FROM sneck_queue
            WHERE resource_name > a_after AND starts_with(resource_name, a_prefix) AND ends_at > clock_timestamp()
    ) AS names WHERE sneck_object(resource_name) = 0 ORDER BY resource_name LIMIT a_most
$$;

-- The version of a name; an unknown one has 0.
CREATE OR REPLACE FUNCTION sneck_version(a_name text) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT version FROM sneck_lock WHERE resource_name = a_name), 0)
$$;

-- The new version, or NULL when it was not the expected one.
CREATE OR REPLACE FUNCTION sneck_version_bump(a_name text, a_expected bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    bumped bigint;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN -- what is answered must outlive a crash
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF a_expected = 0 THEN
        INSERT INTO sneck_lock AS l VALUES (a_name, 1)
            ON CONFLICT (resource_name) DO UPDATE SET version = 1 WHERE l.version = 0 RETURNING version INTO bumped;
    ELSE
        UPDATE sneck_lock SET version = version + 1 WHERE resource_name = a_name AND version = a_expected
            RETURNING version INTO bumped;
    END IF;
    RETURN bumped;
END
$$;

-- mode=row: makes the row of a lock, for everybody to see.
CREATE OR REPLACE FUNCTION sneck_row_make(a_name text) RETURNS void
LANGUAGE sql AS $$ INSERT INTO sneck_lock (resource_name) VALUES (a_name) ON CONFLICT DO NOTHING $$;

-- mode=row: locks the row of a lock until the transaction ends; it fails at once if another has it, or with a_waits when
-- lock_timeout is over. The transaction, or 0: there is no row.
CREATE OR REPLACE FUNCTION sneck_row_lock(a_name text, a_waits boolean) RETURNS xid8
LANGUAGE plpgsql AS $$
BEGIN
    IF a_waits THEN
        PERFORM FROM sneck_lock WHERE resource_name = a_name FOR UPDATE;
    ELSE
        PERFORM FROM sneck_lock WHERE resource_name = a_name FOR UPDATE NOWAIT;
    END IF;
    RETURN CASE WHEN FOUND THEN pg_current_xact_id() ELSE '0'::xid8 END;
END
$$;

-- Removes rows of locks that nobody has used for ten minutes, from a_after on, a few at a time; the highest token of what
-- is removed becomes the floor of all new rows. The last name that was looked at; NULL at the end.
CREATE OR REPLACE FUNCTION sneck_reap(a_after text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    now_at timestamptz := clock_timestamp();
    seen text[];
    unused text[];
    highest bigint;
BEGIN
    SELECT array_agg(resource_name ORDER BY resource_name) INTO seen FROM (SELECT resource_name FROM sneck_state
        WHERE resource_name > a_after ORDER BY resource_name LIMIT 100) AS page;
    SELECT array_agg(resource_name), max(token) INTO unused, highest FROM (SELECT resource_name, token
        FROM sneck_state AS s WHERE resource_name = ANY (seen) AND claims = 0
            AND count = sneck_count_unset(resource_name)
            AND used_at < now_at - interval '10 minutes' AND tombstones_until <= now_at
            AND NOT EXISTS (SELECT FROM sneck_incident AS i WHERE i.resource_name = s.resource_name
                AND i.at >= now_at - interval '1 day')
        FOR UPDATE SKIP LOCKED) AS rows;
    IF unused IS NOT NULL THEN
        UPDATE sneck_meta SET value = greatest(value, highest) WHERE key = 'floor';
        DELETE FROM sneck_state WHERE resource_name = ANY (unused);
        DELETE FROM sneck_incident WHERE resource_name = ANY (unused);
        DELETE FROM sneck_tombstone WHERE resource_name = ANY (unused);
    END IF;
    RETURN seen[array_upper(seen, 1)];
END
$$;
