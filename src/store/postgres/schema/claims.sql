-- Acquire, renew, release: one call each, one transaction each, on the server's clock. The answer is an array of numbers,
-- as store/sql/answer.h reads it:
--
--   {1, first, last} held      {3} busy       {5} done
--   {2, us, before, row} queued: the hold lasts so long, so many places before, 1 if a hold may end with its transaction
--   {4} gone, or refused because it was given up
--
-- Every function locks the row of sneck_state before it looks at anything else of that lock, and locks no second one.
-- They are written for READ COMMITTED, where each statement sees what was committed before it began.

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

CREATE OR REPLACE FUNCTION sneck_is_over(a_ends_at timestamptz, a_row_xid xid8, a_now timestamptz) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN a_ends_at <= a_now THEN true
                WHEN a_row_xid IS NULL THEN false
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

-- Makes the row of a lock that nobody has used before, or not for long.
CREATE OR REPLACE FUNCTION sneck_make(a_name text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO sneck_state (resource_name, token) SELECT a_name, value FROM sneck_meta WHERE key = 'floor'
        ON CONFLICT DO NOTHING
$$;

-- Ends the holds that are over, and offers a free lock to the first live claim of the queue, which is told unless it is
-- the one that asks. The row of sneck_state is locked.
CREATE OR REPLACE FUNCTION sneck_settle(a_name text, a_now timestamptz, a_asker uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    clock_us bigint := sneck_clock_us(a_now);
    ended sneck_hold;
    next sneck_queue;
    granted record;
    removed bigint := 0;
BEGIN
    FOR ended IN DELETE FROM sneck_hold
            WHERE resource_name = a_name AND sneck_is_over(ends_at, row_xid, a_now) RETURNING * LOOP
        removed := removed + 1;
        PERFORM sneck_note(a_name, CASE WHEN ended.ends_at <= a_now THEN 'expired' ELSE 'died' END, ended.owner, '',
            ended.token_first, a_now);
    END LOOP;
    WHILE NOT EXISTS (SELECT FROM sneck_hold WHERE resource_name = a_name) LOOP
        DELETE FROM sneck_queue WHERE resource_name = a_name
            AND place = (SELECT min(place) FROM sneck_queue WHERE resource_name = a_name) RETURNING * INTO next;
        IF NOT FOUND THEN -- whatever the count says, if somebody changed the tables by hand
            UPDATE sneck_state SET claims = 0 WHERE resource_name = a_name;
            RETURN;
        END IF;
        IF next.ends_at <= a_now THEN
            removed := removed + 1;
            CONTINUE;
        END IF;
        UPDATE sneck_state SET token_first = sneck_token_first(token, clock_us),
                token = sneck_token_last(sneck_token_first(token, clock_us), clock_us, next.tokens)
            WHERE resource_name = a_name RETURNING token_first, token INTO granted;
        INSERT INTO sneck_hold VALUES (a_name, next.claim, next.mode, next.units, true, granted.token_first,
            granted.token, a_now + least(next.lease, interval '2 seconds'), a_now, next.fair, NULL, next.client,
            next.owner, next.pid, next.host, next.why);
        IF next.claim IS DISTINCT FROM a_asker THEN
            PERFORM pg_notify('sneck_' || next.client, next.claim::text);
        END IF;
    END LOOP;
    IF removed > 0 THEN
        UPDATE sneck_state SET claims = claims - removed WHERE resource_name = a_name;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION sneck_answer_queued(a_name text, a_place bigint, a_now timestamptz) RETURNS bigint[]
LANGUAGE sql AS $$
    SELECT ARRAY[2, coalesce(sneck_clock_us(min(ends_at)) - sneck_clock_us(a_now), 0),
        a_place - (SELECT min(place) FROM sneck_queue WHERE resource_name = a_name),
        coalesce(bool_or(row_xid IS NOT NULL), false)::int]
        FROM sneck_hold WHERE resource_name = a_name
$$;

-- ---- What clients call ----

CREATE OR REPLACE FUNCTION sneck_acquire(a_name text, a_claim uuid, a_lease_us bigint, a_tokens integer,
    a_queue boolean, a_fair boolean, a_client uuid, a_owner text, a_pid bigint, a_host text, a_why text, a_row xid8)
    RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    lease_time interval := a_lease_us * interval '1 microsecond';
    now_at timestamptz := clock_timestamp();
    clock_us bigint := sneck_clock_us(now_at);
    state record;
    looked boolean := false;
BEGIN
    LOOP
        -- The usual case in one look: nobody holds, waits, or was given up.
        UPDATE sneck_state SET token_first = sneck_token_first(token, clock_us),
                token = sneck_token_last(sneck_token_first(token, clock_us), clock_us, a_tokens),
                claims = 1, used_at = now_at
            WHERE resource_name = a_name AND claims = 0 AND (looked OR tombstones_until <= now_at)
            RETURNING token_first, token INTO state;
        IF FOUND THEN
            now_at := clock_timestamp();
            INSERT INTO sneck_hold VALUES (a_name, a_claim, 0, 1, false, state.token_first, state.token,
                now_at + lease_time, now_at, a_fair, a_row, a_client, a_owner, a_pid, a_host, a_why);
            RETURN ARRAY[1, state.token_first, state.token];
        END IF;
        EXIT WHEN looked;
        SELECT tombstones_until INTO state FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
        IF NOT FOUND THEN
            PERFORM sneck_make(a_name);
            CONTINUE;
        END IF;
        looked := true;
        now_at := clock_timestamp();
        clock_us := sneck_clock_us(now_at);
        IF state.tombstones_until > now_at AND EXISTS (SELECT FROM sneck_tombstone
                WHERE resource_name = a_name AND claim = a_claim AND ends_at > now_at) THEN
            RETURN ARRAY[4];
        END IF;
        PERFORM sneck_settle(a_name, now_at, NULL);
    END LOOP;
    IF NOT a_queue THEN
        RETURN ARRAY[3];
    END IF;
    UPDATE sneck_state SET claims = claims + 1, place = place + 1, used_at = now_at WHERE resource_name = a_name
        RETURNING place INTO state;
    INSERT INTO sneck_queue VALUES (a_name, state.place, a_claim, 0, 1, a_tokens, lease_time, now_at + lease_time, now_at, a_fair,
        a_client, a_owner, a_pid, a_host, a_why);
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
    PERFORM FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
    IF NOT FOUND THEN
        RETURN ARRAY[4];
    END IF;
    now_at := clock_timestamp();
    LOOP
        UPDATE sneck_hold SET ends_at = greatest(ends_at, now_at + lease_time), offered = false,
                row_xid = coalesce(a_row, row_xid)
            WHERE resource_name = a_name AND claim = a_claim AND NOT sneck_is_over(ends_at, row_xid, now_at)
            RETURNING token_first, token_last INTO found_row;
        IF FOUND THEN
            RETURN ARRAY[1, found_row.token_first, found_row.token_last];
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
CREATE OR REPLACE FUNCTION sneck_release(a_name text, a_claim uuid, a_tombstone_us bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    now_at timestamptz;
    buried_until timestamptz;
    claims_left bigint;
    was_there boolean;
BEGIN
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
        AND NOT sneck_is_over(ends_at, row_xid, now_at);
    was_there := FOUND;
    IF NOT was_there THEN
        DELETE FROM sneck_queue WHERE resource_name = a_name AND claim = a_claim;
        was_there := FOUND;
    END IF;
    IF NOT was_there THEN
        UPDATE sneck_state SET claims = claims + 1 WHERE resource_name = a_name;
    END IF;
    IF a_tombstone_us > 0 THEN
        buried_until := now_at + a_tombstone_us * interval '1 microsecond';
        DELETE FROM sneck_tombstone WHERE resource_name = a_name AND ends_at <= now_at;
        INSERT INTO sneck_tombstone AS t VALUES (a_name, a_claim, buried_until)
            ON CONFLICT (resource_name, claim) DO UPDATE SET ends_at = greatest(t.ends_at, buried_until);
        UPDATE sneck_state SET tombstones_until = greatest(tombstones_until, buried_until)
            WHERE resource_name = a_name;
    END IF;
    IF claims_left > 0 OR NOT was_there THEN
        PERFORM sneck_settle(a_name, now_at, NULL);
    END IF;
    RETURN ARRAY[CASE WHEN was_there THEN 5 ELSE 4 END];
END
$$;

-- Ends the hold with that first token by force: {5}, or {5, transaction} if its row is locked by that one; else {4}.
CREATE OR REPLACE FUNCTION sneck_break(a_name text, a_token bigint, a_text text) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    now_at timestamptz;
    ended sneck_hold;
BEGIN
    PERFORM FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
    now_at := clock_timestamp();
    DELETE FROM sneck_hold WHERE resource_name = a_name AND token_first = a_token
        AND NOT sneck_is_over(ends_at, row_xid, now_at) RETURNING * INTO ended;
    IF NOT FOUND THEN
        RETURN ARRAY[4];
    END IF;
    PERFORM sneck_note(a_name, 'broken', ended.owner, a_text, a_token, now_at);
    UPDATE sneck_state SET claims = claims - 1, used_at = now_at WHERE resource_name = a_name;
    PERFORM sneck_settle(a_name, now_at, NULL);
    IF ended.row_xid IS NULL THEN
        RETURN ARRAY[5];
    END IF;
    RETURN ARRAY[5, ended.row_xid::text::bigint];
END
$$;
