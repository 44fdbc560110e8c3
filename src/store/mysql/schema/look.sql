-- What there is to know about a lock: a row for its counter, each holder, each waiter in order, each incident.
CREATE OR REPLACE PROCEDURE sneck_inspect(a_name VARBINARY(700)) READS SQL DATA
BEGIN
    DECLARE v_now BIGINT DEFAULT sneck_now();
    SELECT what, owner, host, words, pid, age_us, remaining_us, token, fair, mode, units FROM (
        SELECT 1 AS section, 0 AS number, 'counter' AS what, '' AS owner, '' AS host, '' AS words, 0 AS pid,
                0 AS age_us, 0 AS remaining_us, token, 0 AS fair, 0 AS mode, total AS units
            FROM sneck_state WHERE resource_name = a_name
        UNION ALL
        SELECT 2, token_first, 'holder', owner, host, why, pid, v_now - since, ends_at - v_now, token_first, fair, mode,
                units
            FROM sneck_hold WHERE resource_name = a_name AND ends_at > v_now
                AND (NOT in_row OR sneck_row_session(claim) IS NOT NULL)
        UNION ALL
        SELECT 3, place, 'waiter', owner, host, why, pid, v_now - since, ends_at - v_now, 0, fair, mode, units
            FROM sneck_queue WHERE resource_name = a_name AND ends_at > v_now
        UNION ALL
        SELECT 4, number, kind, owner, '', text, 0, at, 0, token, 0, 0, 0
            FROM sneck_incident WHERE resource_name = a_name AND at >= v_now - 86400000000
    ) AS everything ORDER BY section, number;
END
//
-- The names of locks after a_after that are held or waited for and begin with a_prefix, in order, at most a_most.
CREATE OR REPLACE PROCEDURE sneck_list(a_prefix VARBINARY(700), a_after VARBINARY(700), a_most INT) READS SQL DATA
BEGIN
    DECLARE v_now BIGINT DEFAULT sneck_now();
    SELECT resource_name FROM (
        SELECT resource_name FROM sneck_hold WHERE resource_name > a_after AND ends_at > v_now
        UNION
        SELECT resource_name FROM sneck_queue WHERE resource_name > a_after AND ends_at > v_now
    ) AS names WHERE LEFT(resource_name, LENGTH(a_prefix)) = a_prefix AND sneck_object(resource_name) = 0
    ORDER BY resource_name LIMIT a_most;
END
//
