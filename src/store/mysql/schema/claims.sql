-- Acquire, renew, release: one SELECT of one function each, which under autocommit is one transaction, on the server's
-- clock. The answer is a text of numbers, as store/sql/answer.h reads it:
--
--   1, first, last, units  held       3  busy       5  done
--   2, us, before, row, us queued: the hold lasts so long, so many places before, 1 if a hold may end with its transaction,
--                          has waited so long (-1: a session of its client waits to be told)
--   4                      gone, or refused because it was given up
--
-- Every function locks the row of sneck_state before it looks at anything else of that lock, and locks no second one. What
-- it then reads without locking it reads as it was after that moment, because no read without a lock comes before: within
-- one statement all of those see the same state of the tables. They look at the clock when they have that lock: an offer
-- must not be over before anybody can see it, however long its maker was held up.

-- The server's usual clock stands still within a statement; what has passed since is added, unless somebody set the clock.
CREATE OR REPLACE FUNCTION sneck_now() RETURNS BIGINT NO SQL
BEGIN
    DECLARE v_since BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6));
    RETURN TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))
        + IF(v_since BETWEEN 0 AND 60000000, v_since, 0);
END
//
-- What a name is of: 0 a lock, 1 a latch, 2 a condition, which have a byte before their names that begins no lock's.
CREATE OR REPLACE FUNCTION sneck_object(a_name VARBINARY(700)) RETURNS INT DETERMINISTIC NO SQL
RETURN IF(ORD(a_name) < 3, ORD(a_name), 0)
//
-- mode=row: the session that has the row for this claim; NULL: none, so a hold in the row is over.
CREATE OR REPLACE FUNCTION sneck_row_session(a_claim CHAR(32) CHARACTER SET ascii) RETURNS BIGINT NO SQL
RETURN IS_USED_LOCK(CONCAT('sneck.r.', a_claim))
//
-- mode=row: a hold is over, so the session that has the row for it ends too, and is waited for. Its own time limit counts in
-- whole seconds. Without CONNECTION ADMIN it ends by that, or when its client hears of it.
CREATE OR REPLACE PROCEDURE sneck_row_end(a_claim CHAR(32) CHARACTER SET ascii) NO SQL
BEGIN
    DECLARE v_session BIGINT DEFAULT sneck_row_session(a_claim);
    DECLARE EXIT HANDLER FOR 1094, 1095 BEGIN END;
    IF v_session <> CONNECTION_ID() THEN
        KILL CONNECTION v_session;
        DO GET_LOCK(CONCAT('sneck.r.', a_claim), 1), RELEASE_LOCK(CONCAT('sneck.r.', a_claim));
    END IF;
END
//
-- The session that waits to be told for this client; NULL: none.
CREATE OR REPLACE FUNCTION sneck_ear(a_client CHAR(36) CHARACTER SET ascii) RETURNS BIGINT NO SQL
RETURN IS_USED_LOCK(CONCAT('sneck.', a_client))
//
-- Tells a client that a claim of its was granted: the statement in which its session sleeps is ended. It finds the row in
-- sneck_bell when this transaction is over, because it looks with a lock; so it does if it was just about to sleep.
-- Whoever set this up may not end statements of other users without CONNECTION ADMIN: then nobody is told.
CREATE OR REPLACE PROCEDURE sneck_ring(a_client CHAR(36) CHARACTER SET ascii, a_claim CHAR(32) CHARACTER SET ascii,
    a_now BIGINT) MODIFIES SQL DATA
BEGIN
    DECLARE v_session BIGINT DEFAULT sneck_ear(a_client);
    DECLARE CONTINUE HANDLER FOR 1094, 1095 BEGIN END; -- no such session any more; denied
    IF v_session IS NOT NULL THEN
        INSERT IGNORE INTO sneck_bell VALUES (a_client, a_claim, a_now);
        KILL QUERY v_session;
    END IF;
END
//
-- Remembers for so long that this claim is over.
CREATE OR REPLACE PROCEDURE sneck_bury(a_name VARBINARY(700), a_claim CHAR(32) CHARACTER SET ascii, a_now BIGINT,
    a_us BIGINT) MODIFIES SQL DATA
BEGIN
    DELETE FROM sneck_tombstone WHERE resource_name = a_name AND ends_at <= a_now;
    INSERT INTO sneck_tombstone VALUES (a_name, a_claim, a_now + a_us)
        ON DUPLICATE KEY UPDATE ends_at = GREATEST(ends_at, a_now + a_us);
    UPDATE sneck_state SET tombstones_until = GREATEST(tombstones_until, a_now + a_us) WHERE resource_name = a_name;
END
//
CREATE OR REPLACE PROCEDURE sneck_note(a_name VARBINARY(700), a_kind VARCHAR(16) CHARACTER SET ascii,
    a_owner VARBINARY(64), a_text VARBINARY(400), a_token BIGINT, a_now BIGINT) MODIFIES SQL DATA
BEGIN
    DECLARE v_last BIGINT DEFAULT (SELECT COALESCE(MAX(number), 0) + 1 FROM sneck_incident
        WHERE resource_name = a_name);
    INSERT INTO sneck_incident VALUES (a_name, v_last, a_now, a_kind, a_owner, a_text, a_token);
    DELETE FROM sneck_incident
        WHERE resource_name = a_name AND (number <= v_last - 32 OR at < a_now - 86400000000);
END
//
-- Makes the row of a lock that nobody has used before, or not for long.
CREATE OR REPLACE PROCEDURE sneck_make(a_name VARBINARY(700)) MODIFIES SQL DATA
BEGIN
    DECLARE v_floor BIGINT;
    SELECT value INTO v_floor FROM sneck_meta WHERE name = 'floor' LOCK IN SHARE MODE;
    INSERT IGNORE INTO sneck_state (resource_name, token, total)
        VALUES (a_name, v_floor, IF(sneck_object(a_name) = 0, -1, 0));
END
//
-- Whether a claim could be granted, those who wait left aside (store/grip.h has the rule). Nothing that is over is left in
-- sneck_hold.
CREATE OR REPLACE FUNCTION sneck_allows(a_name VARBINARY(700), a_mode INT, a_units INT,
    a_beside CHAR(32) CHARACTER SET ascii) RETURNS BOOLEAN READS SQL DATA
BEGIN
    DECLARE v_in_the_way, v_sharing, v_permits, v_used, v_total BIGINT;
    SELECT COALESCE(SUM(claim <> a_beside), 0), COALESCE(SUM(mode = 1), 0), COALESCE(SUM(mode = 2), 0),
            COALESCE(SUM(IF(mode = 2, units, 0)), 0)
        INTO v_in_the_way, v_sharing, v_permits, v_used FROM sneck_hold WHERE resource_name = a_name;
    SELECT total INTO v_total FROM sneck_state WHERE resource_name = a_name;
    RETURN CASE a_mode
        WHEN 0 THEN v_in_the_way = 0
        WHEN 1 THEN v_in_the_way = v_sharing
        WHEN 2 THEN v_in_the_way = v_permits AND v_used + GREATEST(a_units, 1) <= v_total
        WHEN 3 THEN GREATEST(a_units, 1) <= v_total
        ELSE v_total = 0 END;
END
//
-- What a claim that is granted gets: tokens, above all before and not below the clock, and units of the count. Whoever
-- shares gets the epoch, which is the last token that was given out. A block that would end more than a millisecond ahead
-- of the clock is one token, so that tokens never outrun it.
CREATE OR REPLACE PROCEDURE sneck_hand_out(a_name VARBINARY(700), a_mode INT, a_tokens INT, a_now BIGINT,
    INOUT a_units INT, OUT a_first BIGINT, OUT a_last BIGINT) MODIFIES SQL DATA
BEGIN
    DECLARE v_token, v_total BIGINT;
    SELECT token, total INTO v_token, v_total FROM sneck_state WHERE resource_name = a_name;
    IF a_mode = 2 AND a_units = 0 THEN
        SELECT v_total - COALESCE(SUM(units), 0) INTO a_units FROM sneck_hold
            WHERE resource_name = a_name AND mode = 2;
    END IF;
    IF a_mode = 1 AND v_token > 0 THEN
        SET a_first = v_token, a_last = v_token;
    ELSE
        SET a_first = GREATEST(v_token + 1, a_now);
        SET a_last = IF(a_mode = 0 AND a_first + a_tokens - 1 <= a_now + 1000, a_first + a_tokens - 1, a_first);
        UPDATE sneck_state SET token = a_last, total = total - IF(a_mode = 3, a_units, 0)
            WHERE resource_name = a_name;
    END IF;
END
//
-- Ends the holds that are over, and grants to those who wait, in order, as long as nothing stands in their way. Whoever is
-- granted is told, unless it is the one that asks.
CREATE OR REPLACE PROCEDURE sneck_settle(a_name VARBINARY(700), a_now BIGINT, a_asker CHAR(32) CHARACTER SET ascii)
MODIFIES SQL DATA
BEGIN
    DECLARE v_claim CHAR(32) CHARACTER SET ascii;
    DECLARE v_owner VARBINARY(64);
    DECLARE v_mode, v_units, v_tokens INT;
    DECLARE v_in_row BOOLEAN;
    DECLARE v_token, v_place, v_ends_at, v_first, v_last BIGINT;
    DECLARE v_removed BIGINT DEFAULT 0;
    ended: LOOP
        SET v_claim = NULL;
        SELECT claim, owner, mode, units, token_first, ends_at, in_row
            INTO v_claim, v_owner, v_mode, v_units, v_token, v_ends_at, v_in_row
            FROM sneck_hold WHERE resource_name = a_name
                AND (ends_at <= a_now OR (in_row AND sneck_row_session(claim) IS NULL)) LIMIT 1;
        IF v_claim IS NULL THEN
            LEAVE ended;
        END IF;
        DELETE FROM sneck_hold WHERE resource_name = a_name AND claim = v_claim;
        SET v_removed = v_removed + 1;
        IF v_in_row THEN
            CALL sneck_row_end(v_claim);
        END IF;
        IF v_mode = 3 THEN
            UPDATE sneck_state SET total = total + v_units WHERE resource_name = a_name;
        END IF;
        IF sneck_object(a_name) = 0 THEN
            CALL sneck_note(a_name, IF(v_ends_at <= a_now, 'expired', 'died'), v_owner, '', v_token, a_now);
        END IF;
    END LOOP;
    granted: LOOP
        SET v_place = NULL;
        SELECT place, claim, mode, units, tokens, ends_at, owner
            INTO v_place, v_claim, v_mode, v_units, v_tokens, v_ends_at, v_owner
            FROM sneck_queue WHERE resource_name = a_name ORDER BY place LIMIT 1;
        IF v_place IS NULL OR (v_ends_at > a_now AND NOT sneck_allows(a_name, v_mode, v_units, '')) THEN
            LEAVE granted;
        END IF;
        IF v_ends_at <= a_now THEN
            SET v_removed = v_removed + 1;
        ELSE
            CALL sneck_hand_out(a_name, v_mode, v_tokens, a_now, v_units, v_first, v_last);
            INSERT INTO sneck_hold SELECT a_name, claim, mode, v_units, v_first, v_last,
                    a_now + LEAST(lease_us, 2000000), a_now, fair, owner, pid, host, why, FALSE
                FROM sneck_queue WHERE resource_name = a_name AND place = v_place;
            IF v_claim <> a_asker THEN
                CALL sneck_ring(LEFT(v_owner, 36), v_claim, a_now);
            END IF;
        END IF;
        DELETE FROM sneck_queue WHERE resource_name = a_name AND place = v_place;
    END LOOP;
    IF v_place IS NULL AND NOT EXISTS (SELECT 1 FROM sneck_hold WHERE resource_name = a_name) THEN
        -- whatever the count of claims says, if somebody changed the tables by hand
        UPDATE sneck_state SET claims = 0 WHERE resource_name = a_name AND claims <> 0;
    ELSEIF v_removed > 0 THEN
        UPDATE sneck_state SET claims = claims - v_removed WHERE resource_name = a_name;
    END IF;
    IF sneck_object(a_name) = 2 THEN -- a signal is for those who wait; what none of them took is over
        UPDATE sneck_state SET total = 0 WHERE resource_name = a_name AND total <> 0;
    END IF;
END
//
CREATE OR REPLACE FUNCTION sneck_answer_queued(a_name VARBINARY(700), a_place BIGINT, a_now BIGINT) RETURNS VARCHAR(128)
READS SQL DATA
BEGIN
    DECLARE v_left BIGINT DEFAULT (SELECT MIN(ends_at) FROM sneck_hold WHERE resource_name = a_name) - a_now;
    DECLARE v_before BIGINT DEFAULT a_place - (SELECT MIN(place) FROM sneck_queue WHERE resource_name = a_name);
    DECLARE v_in_row BOOLEAN DEFAULT EXISTS (SELECT 1 FROM sneck_hold WHERE resource_name = a_name AND in_row);
    DECLARE v_waited BIGINT DEFAULT (SELECT IF(sneck_ear(LEFT(owner, 36)) IS NULL, a_now - since, -1) FROM sneck_queue
        WHERE resource_name = a_name AND place = a_place);
    RETURN CONCAT_WS(',', 2, COALESCE(v_left, 1000000000000), v_before, v_in_row, v_waited); -- days, if nobody holds it
END
//
CREATE OR REPLACE FUNCTION sneck_acquire(a_name VARBINARY(700), a_claim CHAR(32) CHARACTER SET ascii, a_lease_us BIGINT,
    a_tokens INT, a_queue BOOLEAN, a_fair BOOLEAN, a_owner VARBINARY(64), a_pid BIGINT, a_host VARBINARY(64),
    a_why VARBINARY(255), a_mode INT, a_units INT, a_beside CHAR(32) CHARACTER SET ascii, a_in_row BOOLEAN)
    RETURNS VARCHAR(128) MODIFIES SQL DATA
BEGIN
    DECLARE v_now BIGINT;
    DECLARE v_tombstones_until, v_claims, v_place, v_first, v_last BIGINT;
    looked: LOOP
        SELECT tombstones_until, claims, place INTO v_tombstones_until, v_claims, v_place FROM sneck_state
            WHERE resource_name = a_name FOR UPDATE;
        IF v_claims IS NOT NULL THEN
            LEAVE looked;
        END IF;
        CALL sneck_make(a_name);
    END LOOP;
    SET v_now = sneck_now();
    IF v_tombstones_until > v_now AND EXISTS (SELECT 1 FROM sneck_tombstone
            WHERE resource_name = a_name AND claim = a_claim AND ends_at > v_now) THEN
        RETURN '4';
    END IF;
    IF v_claims > 0 THEN
        CALL sneck_settle(a_name, v_now, '');
    END IF;
    -- A hold that it stands beside lets it pass those who wait for that very hold to end.
    IF (NOT EXISTS (SELECT 1 FROM sneck_queue WHERE resource_name = a_name)
            OR EXISTS (SELECT 1 FROM sneck_hold WHERE resource_name = a_name AND claim = a_beside))
            AND sneck_allows(a_name, a_mode, a_units, a_beside) THEN
        CALL sneck_hand_out(a_name, a_mode, a_tokens, v_now, a_units, v_first, v_last);
        UPDATE sneck_state SET claims = claims + 1, used_at = v_now WHERE resource_name = a_name;
        INSERT INTO sneck_hold VALUES (a_name, a_claim, a_mode, a_units, v_first, v_last, v_now + a_lease_us, v_now,
            a_fair, a_owner, a_pid, a_host, a_why, a_in_row);
        RETURN CONCAT_WS(',', 1, v_first, v_last, a_units);
    END IF;
    IF NOT a_queue THEN
        RETURN '3';
    END IF;
    UPDATE sneck_state SET claims = claims + 1, place = place + 1, used_at = v_now WHERE resource_name = a_name;
    INSERT INTO sneck_queue VALUES (a_name, v_place + 1, a_claim, a_mode, a_units, a_tokens, a_lease_us,
        v_now + a_lease_us, v_now, a_fair, a_owner, a_pid, a_host, a_why);
    RETURN sneck_answer_queued(a_name, v_place + 1, v_now);
END
//
-- Refreshes a claim that holds or waits; never registers one that is unknown. A renewal never shortens.
-- a_in_row: from now on it has the row.
CREATE OR REPLACE FUNCTION sneck_renew(a_name VARBINARY(700), a_claim CHAR(32) CHARACTER SET ascii, a_lease_us BIGINT,
    a_in_row BOOLEAN) RETURNS VARCHAR(128) MODIFIES SQL DATA
BEGIN
    DECLARE v_now BIGINT;
    DECLARE v_claims, v_first, v_last, v_place BIGINT;
    DECLARE v_units INT;
    SELECT claims INTO v_claims FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
    SET v_now = sneck_now();
    IF v_claims IS NULL THEN
        RETURN '4';
    END IF;
    SELECT token_first, token_last, units INTO v_first, v_last, v_units FROM sneck_hold
        WHERE resource_name = a_name AND claim = a_claim AND ends_at > v_now
            AND (NOT in_row OR sneck_row_session(claim) IS NOT NULL);
    IF v_first IS NULL THEN
        CALL sneck_settle(a_name, v_now, a_claim);
        SELECT token_first, token_last, units INTO v_first, v_last, v_units FROM sneck_hold
            WHERE resource_name = a_name AND claim = a_claim;
    END IF;
    IF v_first IS NOT NULL THEN
        UPDATE sneck_hold SET ends_at = GREATEST(ends_at, v_now + a_lease_us), in_row = in_row OR a_in_row
            WHERE resource_name = a_name AND claim = a_claim;
        RETURN CONCAT_WS(',', 1, v_first, v_last, v_units);
    END IF;
    SELECT place INTO v_place FROM sneck_queue WHERE resource_name = a_name AND claim = a_claim AND ends_at > v_now;
    IF v_place IS NULL THEN
        RETURN '4';
    END IF;
    UPDATE sneck_queue SET ends_at = GREATEST(ends_at, v_now + a_lease_us)
        WHERE resource_name = a_name AND place = v_place;
    RETURN sneck_answer_queued(a_name, v_place, v_now);
END
//
-- Ends a claim, wherever it is, and touches no other. With a tombstone (microseconds; 0: none) it is refused from now on.
-- What it took from a count comes back if it was not used. mode=row: called in the transaction that has the row.
CREATE OR REPLACE FUNCTION sneck_release(a_name VARBINARY(700), a_claim CHAR(32) CHARACTER SET ascii,
    a_tombstone_us BIGINT, a_unused BOOLEAN) RETURNS VARCHAR(128) MODIFIES SQL DATA
BEGIN
    DECLARE v_now BIGINT;
    DECLARE v_claims, v_place BIGINT;
    DECLARE v_mode, v_units INT;
    looked: LOOP
        SELECT claims INTO v_claims FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
        IF v_claims IS NOT NULL THEN
            LEAVE looked;
        END IF;
        IF a_tombstone_us = 0 THEN
            RETURN '4';
        END IF;
        CALL sneck_make(a_name);
    END LOOP;
    SET v_now = sneck_now();
    IF a_tombstone_us > 0 THEN
        CALL sneck_bury(a_name, a_claim, v_now, a_tombstone_us);
    END IF;
    SELECT mode, units INTO v_mode, v_units FROM sneck_hold
        WHERE resource_name = a_name AND claim = a_claim AND ends_at > v_now
            AND (NOT in_row OR sneck_row_session(claim) IS NOT NULL);
    IF v_mode IS NOT NULL THEN
        DELETE FROM sneck_hold WHERE resource_name = a_name AND claim = a_claim;
    ELSE
        SELECT place INTO v_place FROM sneck_queue WHERE resource_name = a_name AND claim = a_claim;
        DELETE FROM sneck_queue WHERE resource_name = a_name AND place = v_place;
    END IF;
    IF v_mode IS NOT NULL OR v_place IS NOT NULL THEN
        UPDATE sneck_state SET claims = claims - 1, used_at = v_now,
            total = total + IF(v_mode = 3 AND a_unused, v_units, 0) WHERE resource_name = a_name;
    END IF;
    IF v_claims > 1 OR v_mode IS NULL OR v_mode = 3 THEN
        CALL sneck_settle(a_name, v_now, '');
    END IF;
    RETURN IF(v_mode IS NOT NULL OR v_place IS NOT NULL, '5', '4');
END
//
-- Ends the holds with that first token by force, which are several if they share it: 5, or 4: there is none.
CREATE OR REPLACE FUNCTION sneck_break(a_name VARBINARY(700), a_token BIGINT, a_text VARBINARY(400))
    RETURNS VARCHAR(128) MODIFIES SQL DATA
BEGIN
    DECLARE v_now BIGINT;
    DECLARE v_claims BIGINT;
    DECLARE v_broken BIGINT DEFAULT 0;
    DECLARE v_claim CHAR(32) CHARACTER SET ascii;
    DECLARE v_owner VARBINARY(64);
    DECLARE v_mode, v_units INT;
    DECLARE v_in_row BOOLEAN;
    SELECT claims INTO v_claims FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
    SET v_now = sneck_now();
    broken: LOOP
        SET v_claim = NULL;
        SELECT claim, owner, mode, units, in_row INTO v_claim, v_owner, v_mode, v_units, v_in_row FROM sneck_hold
            WHERE resource_name = a_name AND token_first = a_token AND ends_at > v_now
                AND (NOT in_row OR sneck_row_session(claim) IS NOT NULL) LIMIT 1;
        IF v_claim IS NULL THEN
            LEAVE broken;
        END IF;
        IF v_in_row THEN
            CALL sneck_row_end(v_claim);
        END IF;
        DELETE FROM sneck_hold WHERE resource_name = a_name AND claim = v_claim;
        SET v_broken = v_broken + 1;
        UPDATE sneck_state SET claims = claims - 1, used_at = v_now, total = total + IF(v_mode = 3, v_units, 0)
            WHERE resource_name = a_name;
        CALL sneck_note(a_name, 'broken', v_owner, a_text, a_token, v_now);
    END LOOP;
    IF v_broken = 0 THEN
        RETURN '4';
    END IF;
    CALL sneck_settle(a_name, v_now, '');
    RETURN '5';
END
//
-- Reads or changes a count (store/grip.h has the verbs): count, units of permits that are out, 1 if it was changed.
CREATE OR REPLACE FUNCTION sneck_tally(a_name VARBINARY(700), a_verb INT, a_value BIGINT,
    a_id CHAR(32) CHARACTER SET ascii) RETURNS VARCHAR(128) MODIFIES SQL DATA
BEGIN
    DECLARE v_now BIGINT;
    DECLARE v_total, v_new BIGINT;
    looked: LOOP
        SELECT total INTO v_total FROM sneck_state WHERE resource_name = a_name FOR UPDATE;
        IF v_total IS NOT NULL THEN
            LEAVE looked;
        END IF;
        IF a_verb = 0 THEN
            RETURN CONCAT_WS(',', IF(sneck_object(a_name) = 0, -1, 0), 0, 0);
        END IF;
        CALL sneck_make(a_name);
    END LOOP;
    SET v_now = sneck_now();
    CALL sneck_settle(a_name, v_now, '');
    SELECT total INTO v_total FROM sneck_state WHERE resource_name = a_name;
    CASE a_verb
        WHEN 0 THEN SET v_new = NULL;
        WHEN 1 THEN SET v_new = a_value;
        WHEN 2 THEN SET v_new = IF(v_total <= 0, a_value, NULL);
        WHEN 3 THEN SET v_new = GREATEST(v_total, 0) + a_value;
        WHEN 4 THEN SET v_new = IF(v_total > 0 AND NOT EXISTS (SELECT 1 FROM sneck_tombstone
            WHERE resource_name = a_name AND claim = a_id AND ends_at > v_now), v_total - 1, NULL);
        ELSE SET v_new = NULLIF(LEAST(a_value, (SELECT COUNT(*) FROM sneck_queue WHERE resource_name = a_name
            AND ends_at > v_now)), 0);
    END CASE;
    IF v_new IS NOT NULL THEN
        UPDATE sneck_state SET total = v_new, used_at = v_now WHERE resource_name = a_name;
        IF a_verb = 4 THEN
            CALL sneck_bury(a_name, a_id, v_now, 600000000);
        END IF;
        CALL sneck_settle(a_name, v_now, '');
    END IF;
    RETURN CONCAT_WS(',', (SELECT total FROM sneck_state WHERE resource_name = a_name),
        (SELECT COALESCE(SUM(units), 0) FROM sneck_hold WHERE resource_name = a_name AND mode = 2), v_new IS NOT NULL);
END
//
-- The version of a name (an unknown one has 0), raised before if it is the expected one (NULL: only read): the version, and
-- 1 if it was raised.
CREATE OR REPLACE FUNCTION sneck_version(a_name VARBINARY(700), a_expected BIGINT) RETURNS VARCHAR(128)
MODIFIES SQL DATA
BEGIN
    DECLARE v_version BIGINT;
    IF a_expected IS NULL THEN
        RETURN CONCAT_WS(',', COALESCE((SELECT version FROM sneck_lock WHERE resource_name = a_name), 0), 0);
    END IF;
    INSERT IGNORE INTO sneck_lock VALUES (a_name, 0);
    SELECT version INTO v_version FROM sneck_lock WHERE resource_name = a_name FOR UPDATE;
    IF v_version <> a_expected THEN
        RETURN CONCAT_WS(',', v_version, 0);
    END IF;
    UPDATE sneck_lock SET version = version + 1 WHERE resource_name = a_name;
    RETURN CONCAT_WS(',', v_version + 1, 1);
END
//
-- Removes rows of locks that nobody has used for ten minutes, from a_after on, a few at a time; the highest token of what is
-- removed becomes the floor of all new rows. The last name that was looked at, in hex; '' at the end.
CREATE OR REPLACE FUNCTION sneck_reap(a_after VARBINARY(700)) RETURNS VARCHAR(1400) MODIFIES SQL DATA
BEGIN
    DECLARE v_now BIGINT DEFAULT sneck_now();
    DECLARE v_name, v_at VARBINARY(700) DEFAULT a_after;
    DECLARE v_token BIGINT;
    DECLARE v_seen INT DEFAULT 0;
    page: LOOP
        SET v_name = NULL;
        SELECT resource_name, token INTO v_name, v_token FROM sneck_state WHERE resource_name > v_at AND claims = 0
                AND total = IF(sneck_object(resource_name) = 0, -1, 0) AND used_at < v_now - 600000000
                AND tombstones_until <= v_now
            ORDER BY resource_name LIMIT 1 FOR UPDATE;
        IF v_name IS NULL OR v_seen = 20 THEN
            LEAVE page;
        END IF;
        SET v_at = v_name, v_seen = v_seen + 1;
        IF NOT EXISTS (SELECT 1 FROM sneck_incident WHERE resource_name = v_name AND at >= v_now - 86400000000) THEN
            UPDATE sneck_meta SET value = GREATEST(value, v_token) WHERE name = 'floor';
            DELETE FROM sneck_state WHERE resource_name = v_name;
            DELETE FROM sneck_incident WHERE resource_name = v_name;
            DELETE FROM sneck_tombstone WHERE resource_name = v_name;
        END IF;
    END LOOP;
    DELETE FROM sneck_bell WHERE at < v_now - 600000000;
    RETURN IF(v_name IS NULL, '', HEX(v_at));
END
//
-- mode=row: makes the row of a lock, for everybody to see.
CREATE OR REPLACE FUNCTION sneck_row_make(a_name VARBINARY(700)) RETURNS BOOLEAN MODIFIES SQL DATA
BEGIN
    INSERT IGNORE INTO sneck_lock VALUES (a_name, 0);
    RETURN TRUE;
END
//
-- mode=row: locks the row of a lock for a claim until the transaction ends; it fails if another has it for longer than the
-- caller's settings say. 1; 0: there is no row; 2: another session of this claim is not over yet.
CREATE OR REPLACE FUNCTION sneck_row_lock(a_name VARBINARY(700), a_claim CHAR(32) CHARACTER SET ascii) RETURNS INT
MODIFIES SQL DATA
BEGIN
    DECLARE v_version BIGINT;
    SELECT version INTO v_version FROM sneck_lock WHERE resource_name = a_name FOR UPDATE;
    IF v_version IS NULL THEN
        RETURN 0;
    END IF;
    RETURN IF(GET_LOCK(CONCAT('sneck.r.', a_claim), 0) = 1, 1, 2);
END
//
-- Whether the session that would like to be told for this client can be: it is on this server, and may be called.
CREATE OR REPLACE FUNCTION sneck_hears(a_client CHAR(36) CHARACTER SET ascii) RETURNS BOOLEAN NO SQL
BEGIN
    DECLARE v_session BIGINT DEFAULT IS_USED_LOCK(CONCAT('sneck.try.', a_client));
    DECLARE EXIT HANDLER FOR 1095 RETURN FALSE;
    DECLARE EXIT HANDLER FOR 1094 RETURN NULL; -- it is gone by now
    IF v_session IS NULL THEN
        RETURN NULL; -- not on this server, perhaps on the one that takes its place
    END IF;
    KILL QUERY v_session;
    RETURN TRUE;
END
//
-- The claims of a client that were granted since it was last told; if there are none, it waits until it is called. The look
-- waits for whoever is about to add one, because the call of that one may have come before this began. What is waited for
-- never comes: a position of a replication that does not exist. SLEEP would do, but all sleepers of a server share a mutex,
-- and a KILL QUERY that finds it taken waits for its victim, and that one for it, for two seconds: with the lock's row locked.
CREATE OR REPLACE PROCEDURE sneck_listen(a_client CHAR(36) CHARACTER SET ascii, a_seconds INT) MODIFIES SQL DATA
BEGIN
    DECLARE v_count BIGINT;
    SELECT COUNT(*) INTO v_count FROM sneck_bell WHERE client = a_client FOR UPDATE;
    IF v_count = 0 THEN
        IF MASTER_GTID_WAIT('4294967295-1-9223372036854775807', a_seconds) = 0 THEN
            DO SLEEP(a_seconds);
        END IF;
    ELSE
        DELETE FROM sneck_bell WHERE client = a_client RETURNING claim;
    END IF;
END
//
CREATE OR REPLACE FUNCTION sneck_schema() RETURNS BIGINT READS SQL DATA
RETURN (SELECT value FROM sneck_meta WHERE name = 'schema')
//
INSERT INTO sneck_meta VALUES ('schema', 1) ON DUPLICATE KEY UPDATE value = 1
//
