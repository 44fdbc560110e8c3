-- Acquire, renew, release: one call each, one transaction each, on the server's clock. The answer is an array of numbers,
-- as store/sql/answer.h reads it:
--
--   {1, first, last, units} held      {3} busy       {5} done
--   {2, us, before, row} queued: the hold lasts so long, so many places before, 1 if a hold may end with its transaction
--   {4} gone, or refused because it was given up
--
-- Every function locks the row of sneck_state before it looks at anything else of that lock, and locks no second one.
-- They are written for READ COMMITTED, where each statement sees what was committed before it began. Whatever looks at tables
-- is in plpgsql, which keeps its plans: a function in SQL that cannot be inlined is parsed and planned in each call.

-- ---- Tokens ----

CREATE OR REPLACE FUNCTION sneck_clock_us(a_time timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT (extract(epoch FROM a_time) * 1000000)::bigint $$;

-- Above all before, and not below the clock: so they rise even if the database is lost and an older copy takes its place.
CREATE OR REPLACE FUNCTION sneck_token_first(a_highest bigint, a_clock_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT greatest(a_highest + 1, a_clock_us) $$;

-- A block that would end more than a millisecond ahead of the clock is one token, so that tokens never outrun it.
CREATE OR REPLACE FUNCTION sneck_token_last(a_first bigint, a_clock_us bigint, a_asked integer) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN a_first + a_asked - 1 <= a_clock_us + 1000 THEN a_first + a_asked - 1 ELSE a_first END
$$;

-- ---- Parts ----

-- A hold with a row is over when its transaction is, which the server ends for its silence after the lease: before that
-- nobody else could have the row.
CREATE OR REPLACE FUNCTION sneck_is_over(a_ends_at timestamptz, a_row_xid xid8, a_now timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN a_row_xid IS NULL THEN a_ends_at <= a_now
                ELSE pg_xact_status(a_row_xid) IS DISTINCT FROM 'in progress' END
$$;

CREATE OR REPLACE FUNCTION sneck_note(a_name text, a_kind text, a_owner text, a_text text, a_token bigint,
    a_now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
BEGIN
    SELECT coalesce(max(number), 0) + 1 INTO last FROM sneck_incident WHERE resource_name = a_name;
    INSERT INTO sneck_incident VALUES (a_name, last, a_now, a_kind, a_owner, a_text, a_token);
    DELETE FROM sneck_incident
        WHERE resource_name = a_name AND (number <= last - 32 OR at < a_now - interval '1 day');
END
$$;

-- Remembers for so long that this claim is over. The row of sneck_state is locked.
CREATE OR REPLACE FUNCTION sneck_bury(a_name text, a_claim uuid, a_now timestamptz, a_time interval) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    buried_until timestamptz := a_now + a_time;
BEGIN
    DELETE FROM sneck_tombstone WHERE resource_name = a_name AND ends_at <= a_now;
    INSERT INTO sneck_tombstone AS t VALUES (a_name, a_claim, buried_until)
        ON CONFLICT (resource_name, claim) DO UPDATE SET ends_at = greatest(t.ends_at, buried_until);
    UPDATE sneck_state SET tombstones_until = greatest(tombstones_until, buried_until) WHERE resource_name = a_name;
END
$$;

-- What a name is of: 0 a lock, 1 a latch, 2 a condition, which have a byte before their names that begins no lock's.
CREATE OR REPLACE FUNCTION sneck_object(a_name text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN ascii(a_name) < 3 THEN ascii(a_name) ELSE 0 END $$;

-- The count of a thing before anybody set it.
CREATE OR REPLACE FUNCTION sneck_count_unset(a_name text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN sneck_object(a_name) = 0 THEN -1 ELSE 0 END::bigint $$;

-- Makes the row of a lock that nobody has used before, or not for long.
CREATE OR REPLACE FUNCTION sneck_make(a_name text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO sneck_state (resource_name, token, count)
        SELECT a_name, value, sneck_count_unset(a_name) FROM sneck_meta WHERE key = 'floor'
        ON CONFLICT DO NOTHING
$$;

-- Whether a claim could be granted, those who wait left aside (store/grip.h has the rule). Nothing that is over is left in
-- sneck_hold. Modes: 0 exclusive, 1 shared, 2 permit, 3 take, 4 pass.
CREATE OR REPLACE FUNCTION sneck_allows(a_name text, a_mode smallint, a_units integer, a_beside uuid) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT CASE a_mode
            WHEN 0 THEN in_the_way = 0
            WHEN 1 THEN in_the_way = sharing
            WHEN 2 THEN in_the_way = permits AND used + greatest(a_units, 1) <= count
            WHEN 3 THEN greatest(a_units, 1) <= count
            ELSE count = 0 END
        FROM (SELECT count(*) FILTER (WHERE claim IS DISTINCT FROM a_beside) AS in_the_way,
                count(*) FILTER (WHERE mode = 1) AS sharing, count(*) FILTER (WHERE mode = 2) AS permits,
                coalesce(sum(units) FILTER (WHERE mode = 2), 0) AS used
            FROM sneck_hold WHERE resource_name = a_name) AS crowd,
            (SELECT count FROM sneck_state WHERE resource_name = a_name) AS state);
END
$$;

-- What a claim that is granted gets: tokens, and units of the count. Whoever shares gets the epoch, which is the last token
-- that was given out.
CREATE OR REPLACE FUNCTION sneck_hand_out(a_name text, a_mode smallint, a_units integer, a_tokens integer,
    a_now timestamptz, OUT token_first bigint, OUT token_last bigint, OUT units integer)
LANGUAGE plpgsql AS $$
DECLARE
    clock_us bigint := sneck_clock_us(a_now);
BEGIN
    units := a_units;
    IF a_mode = 1 THEN
        SELECT s.token, s.token INTO token_first, token_last FROM sneck_state AS s
            WHERE s.resource_name = a_name AND s.token > 0;
        IF FOUND THEN
            RETURN;
        END IF;
    ELSIF a_mode = 2 AND a_units = 0 THEN
        SELECT s.count - coalesce((SELECT sum(h.units) FROM sneck_hold AS h WHERE h.resource_name = a_name
            AND h.mode = 2), 0) INTO units FROM sneck_state AS s WHERE s.resource_name = a_name;
    END IF;
    UPDATE sneck_state AS s SET token_first = sneck_token_first(s.token, clock_us),
            token = sneck_token_last(sneck_token_first(s.token, clock_us), clock_us,
                CASE WHEN a_mode = 0 THEN a_tokens ELSE 1 END),
            count = CASE WHEN a_mode = 3 THEN s.count - a_units ELSE s.count END
        WHERE s.resource_name = a_name RETURNING s.token_first, s.token INTO token_first, token_last;
END
$$;

-- Ends the holds that are over; what they took comes back. The number of claims that this removed.
CREATE OR REPLACE FUNCTION sneck_end_holds(a_name text, a_now timestamptz) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    ended sneck_hold;
    removed bigint := 0;
BEGIN
    FOR ended IN DELETE FROM sneck_hold
            WHERE resource_name = a_name AND sneck_is_over(ends_at, row_xid, a_now) RETURNING * LOOP
        removed := removed + 1;
        IF ended.mode = 3 THEN
            UPDATE sneck_state SET count = count + ended.units WHERE resource_name = a_name;
        END IF;
        IF sneck_object(a_name) = 0 THEN
            PERFORM sneck_note(a_name, CASE WHEN ended.ends_at <= a_now THEN 'expired' ELSE 'died' END, ended.owner,
                '', ended.token_first, a_now);
        END IF;
    END LOOP;
    RETURN removed;
END
$$;

-- Ends the holds that are over, and grants to those who wait, in order, as long as nothing stands in their way. Whoever is
-- granted is told, unless it is the one that asks. The row of sneck_state is locked.
CREATE OR REPLACE FUNCTION sneck_settle(a_name text, a_now timestamptz, a_asker uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    next sneck_queue;
    granted record;
    removed bigint := sneck_end_holds(a_name, a_now);
BEGIN
    LOOP
        SELECT * INTO next FROM sneck_queue WHERE resource_name = a_name ORDER BY place LIMIT 1;
        EXIT WHEN NOT FOUND OR (next.ends_at > a_now AND NOT sneck_allows(a_name, next.mode, next.units, NULL));
        DELETE FROM sneck_queue WHERE resource_name = a_name AND place = next.place;
        IF next.ends_at <= a_now THEN
            removed := removed + 1;
            CONTINUE;
        END IF;
        SELECT * INTO granted FROM sneck_hand_out(a_name, next.mode, next.units, next.tokens, a_now);
        INSERT INTO sneck_hold VALUES (a_name, next.claim, next.mode, granted.units, true, granted.token_first,
            granted.token_last, a_now + least(next.lease, interval '2 seconds'), a_now, next.fair, NULL, next.client,
            next.owner, next.pid, next.host, next.why);
        IF next.claim IS DISTINCT FROM a_asker THEN
            PERFORM pg_notify('sneck_' || next.client, next.claim::text);
        END IF;
    END LOOP;
    IF next.place IS NULL AND NOT EXISTS (SELECT FROM sneck_hold WHERE resource_name = a_name) THEN
        -- whatever the count of claims says, if somebody changed the tables by hand
        UPDATE sneck_state SET claims = 0 WHERE resource_name = a_name AND claims <> 0;
    ELSIF removed > 0 THEN
        UPDATE sneck_state SET claims = claims - removed WHERE resource_name = a_name;
    END IF;
    IF sneck_object(a_name) = 2 THEN -- a signal is for those who wait; what none of them took is over
        UPDATE sneck_state SET count = 0 WHERE resource_name = a_name AND count <> 0;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION sneck_answer_queued(a_name text, a_place bigint, a_now timestamptz) RETURNS bigint[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT ARRAY[2, coalesce(sneck_clock_us(min(ends_at)) - sneck_clock_us(a_now), 1000000000000), -- days, if nobody holds
        a_place - (SELECT min(place) FROM sneck_queue WHERE resource_name = a_name),
        coalesce(bool_or(row_xid IS NOT NULL), false)::int]
        FROM sneck_hold WHERE resource_name = a_name);
END
$$;

-- ---- What clients call ----

CREATE OR REPLACE FUNCTION sneck_acquire(a_name text, a_claim uuid, a_lease_us bigint, a_tokens integer,
    a_queue boolean, a_fair boolean, a_client uuid, a_owner text, a_pid bigint, a_host text, a_why text, a_row xid8,
    a_mode smallint, a_units integer, a_beside uuid)
    RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    lease_time interval := a_lease_us * interval '1 microsecond';
    now_at timestamptz := clock_timestamp();
    clock_us bigint := sneck_clock_us(now_at);
    state record;
    granted record;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN -- what is answered must outlive a crash
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF a_mode = 0 THEN
        -- The usual case in one look: nobody holds, waits, or was given up.
        UPDATE sneck_state SET token_first = sneck_token_first(token, clock_us),
                token = sneck_token_last(sneck_token_first(token, clock_us), clock_us, a_tokens),
                claims = 1, used_at = now_at
            WHERE resource_name = a_name AND claims = 0 AND tombstones_until <= now_at
            RETURNING token_first, token INTO state;
        IF FOUND THEN
            now_at := clock_timestamp();
            INSERT INTO sneck_hold VALUES (a_name, a_claim, 0, 1, false, state.token_first, state.token,
                now_at + lease_time, now_at, a_fair, a_row, a_client, a_owner, a_pid, a_host, a_why);
            RETURN ARRAY[1, state.token_first, state.token, 1];
        END IF;
    END IF;
    LOOP
        SELECT tombstones_until, place INTO state FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
        EXIT WHEN FOUND;
        PERFORM sneck_make(a_name);
    END LOOP;
    now_at := clock_timestamp();
    IF state.tombstones_until > now_at AND EXISTS (SELECT FROM sneck_tombstone
            WHERE resource_name = a_name AND claim = a_claim AND ends_at > now_at) THEN
        RETURN ARRAY[4];
    END IF;
    PERFORM sneck_settle(a_name, now_at, NULL);
    -- A hold that it stands beside lets it pass those who wait for that very hold to end.
    IF (NOT EXISTS (SELECT FROM sneck_queue WHERE resource_name = a_name)
            OR EXISTS (SELECT FROM sneck_hold WHERE resource_name = a_name AND claim = a_beside))
            AND sneck_allows(a_name, a_mode, a_units, a_beside) THEN
        SELECT * INTO granted FROM sneck_hand_out(a_name, a_mode, a_units, a_tokens, now_at);
        UPDATE sneck_state SET claims = claims + 1, used_at = now_at WHERE resource_name = a_name;
        INSERT INTO sneck_hold VALUES (a_name, a_claim, a_mode, granted.units, false, granted.token_first,
            granted.token_last, now_at + lease_time, now_at, a_fair, a_row, a_client, a_owner, a_pid, a_host, a_why);
        RETURN ARRAY[1, granted.token_first, granted.token_last, granted.units];
    END IF;
    IF NOT a_queue THEN
        RETURN ARRAY[3];
    END IF;
    UPDATE sneck_state SET claims = claims + 1, place = place + 1, used_at = now_at WHERE resource_name = a_name
        RETURNING place INTO state;
    INSERT INTO sneck_queue VALUES (a_name, state.place, a_claim, a_mode, a_units, a_tokens, lease_time,
        now_at + lease_time, now_at, a_fair, a_client, a_owner, a_pid, a_host, a_why);
    RETURN sneck_answer_queued(a_name, state.place, now_at);
END
$$;

-- Refreshes a claim that holds or waits; never registers one that is unknown. A renewal never shortens.
CREATE OR REPLACE FUNCTION sneck_renew(a_name text, a_claim uuid, a_lease_us bigint, a_row xid8) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    lease_time interval := a_lease_us * interval '1 microsecond';
    now_at timestamptz;
    found_row record;
    settled boolean := false;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN -- what is answered must outlive a crash
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
    IF NOT FOUND THEN
        RETURN ARRAY[4];
    END IF;
    now_at := clock_timestamp();
    LOOP
        UPDATE sneck_hold SET ends_at = greatest(ends_at, now_at + lease_time), offered = false,
                row_xid = coalesce(a_row, row_xid)
            WHERE resource_name = a_name AND claim = a_claim AND NOT sneck_is_over(ends_at, row_xid, now_at)
            RETURNING token_first, token_last, units INTO found_row;
        IF FOUND THEN
            RETURN ARRAY[1, found_row.token_first, found_row.token_last, found_row.units];
        END IF;
        EXIT WHEN settled;
        PERFORM sneck_settle(a_name, now_at, a_claim);
        settled := true;
    END LOOP;
    UPDATE sneck_queue SET ends_at = greatest(ends_at, now_at + lease_time)
        WHERE resource_name = a_name AND claim = a_claim AND ends_at > now_at RETURNING place INTO found_row;
    IF NOT FOUND THEN
        RETURN ARRAY[4];
    END IF;
    RETURN sneck_answer_queued(a_name, found_row.place, now_at);
END
$$;

-- Ends a claim, wherever it is, and touches no other. With a tombstone (microseconds; 0: none) it is refused from now on.
-- What it took from a count comes back if it was not used.
CREATE OR REPLACE FUNCTION sneck_release(a_name text, a_claim uuid, a_tombstone_us bigint, a_unused boolean)
    RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    now_at timestamptz;
    claims_left bigint;
    ended record;
    was_there boolean;
    comes_back boolean;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN -- what is answered must outlive a crash
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    LOOP
        UPDATE sneck_state SET claims = claims - 1, used_at = clock_timestamp() WHERE resource_name = a_name
            RETURNING claims INTO claims_left;
        EXIT WHEN FOUND;
        IF a_tombstone_us = 0 THEN
            RETURN ARRAY[4];
        END IF;
        PERFORM sneck_make(a_name);
    END LOOP;
    now_at := clock_timestamp();
    DELETE FROM sneck_hold WHERE resource_name = a_name AND claim = a_claim
        AND NOT sneck_is_over(ends_at, row_xid, now_at) RETURNING mode, units INTO ended;
    was_there := FOUND;
    comes_back := was_there AND a_unused AND ended.mode = 3;
    IF comes_back THEN
        UPDATE sneck_state SET count = count + ended.units WHERE resource_name = a_name;
    END IF;
    IF NOT was_there THEN
        DELETE FROM sneck_queue WHERE resource_name = a_name AND claim = a_claim;
        was_there := FOUND;
    END IF;
    IF NOT was_there THEN
        UPDATE sneck_state SET claims = claims + 1 WHERE resource_name = a_name;
    END IF;
    IF a_tombstone_us > 0 THEN
        PERFORM sneck_bury(a_name, a_claim, now_at, a_tombstone_us * interval '1 microsecond');
    END IF;
    IF claims_left > 0 OR NOT was_there OR comes_back THEN
        PERFORM sneck_settle(a_name, now_at, NULL);
    END IF;
    RETURN ARRAY[CASE WHEN was_there THEN 5 ELSE 4 END];
END
$$;

-- Ends the holds with that first token by force, which are several if they share it: {5}, or {5, transaction} if the row is
-- locked by that one; else {4}.
CREATE OR REPLACE FUNCTION sneck_break(a_name text, a_token bigint, a_text text) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    now_at timestamptz;
    ended sneck_hold;
    broken bigint := 0;
    transaction xid8;
BEGIN
    PERFORM FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
    now_at := clock_timestamp();
    FOR ended IN DELETE FROM sneck_hold WHERE resource_name = a_name AND token_first = a_token
            AND NOT sneck_is_over(ends_at, row_xid, now_at) RETURNING * LOOP
        broken := broken + 1;
        transaction := coalesce(transaction, ended.row_xid);
        PERFORM sneck_note(a_name, 'broken', ended.owner, a_text, a_token, now_at);
        IF ended.mode = 3 THEN
            UPDATE sneck_state SET count = count + ended.units WHERE resource_name = a_name;
        END IF;
    END LOOP;
    IF broken = 0 THEN
        RETURN ARRAY[4];
    END IF;
    UPDATE sneck_state SET claims = claims - broken, used_at = now_at WHERE resource_name = a_name;
    PERFORM sneck_settle(a_name, now_at, NULL);
    IF transaction IS NULL THEN
        RETURN ARRAY[5];
    END IF;
    RETURN ARRAY[5, transaction::text::bigint];
END
$$;

-- ---- Counts ----

-- Reads or changes a count (store/grip.h has the verbs): {count, units of permits that are out, 1 if it was changed}.
CREATE OR REPLACE FUNCTION sneck_tally(a_name text, a_verb integer, a_value bigint, a_id uuid) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    now_at timestamptz;
    result bigint[];
    changed boolean := false;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN -- what is answered must outlive a crash
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    LOOP
        PERFORM FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
        EXIT WHEN FOUND;
        IF a_verb = 0 THEN
            RETURN ARRAY[sneck_count_unset(a_name), 0, 0];
        END IF;
        PERFORM sneck_make(a_name);
    END LOOP;
    now_at := clock_timestamp();
    PERFORM sneck_settle(a_name, now_at, NULL);
    IF a_verb = 4 AND EXISTS (SELECT FROM sneck_tombstone WHERE resource_name = a_name AND claim = a_id
            AND ends_at > now_at) THEN
        NULL; -- this one has counted down before
    ELSIF a_verb > 0 THEN
        UPDATE sneck_state SET used_at = now_at, count = CASE a_verb
                WHEN 3 THEN greatest(count, 0) + a_value
                WHEN 4 THEN count - 1
                WHEN 5 THEN least(a_value, (SELECT count(*) FROM sneck_queue WHERE resource_name = a_name
                    AND ends_at > now_at))
                ELSE a_value END
            WHERE resource_name = a_name AND (a_verb NOT IN (2, 4) OR (a_verb = 2 AND count <= 0)
                OR (a_verb = 4 AND count > 0));
        changed := FOUND;
    END IF;
    IF a_verb = 5 THEN
        changed := (SELECT count > 0 FROM sneck_state WHERE resource_name = a_name);
    ELSIF a_verb = 4 AND changed THEN
        PERFORM sneck_bury(a_name, a_id, now_at, interval '10 minutes');
    END IF;
    PERFORM sneck_settle(a_name, now_at, NULL);
    SELECT ARRAY[count, coalesce((SELECT sum(units) FROM sneck_hold WHERE resource_name = a_name AND mode = 2), 0),
        changed::int] INTO result FROM sneck_state WHERE resource_name = a_name;
    RETURN result;
END
$$;
