-- Who may do what: the functions that clients call work with the rights of whoever set this up, and on the tables beside
-- them, whatever the caller's search_path says. Nobody else may call them unless told so (GRANT EXECUTE).

CREATE OR REPLACE FUNCTION sneck_schema() RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT value FROM sneck_meta WHERE key = 'schema' $$;

DO $$
DECLARE
    called constant text[] := ARRAY['sneck_acquire', 'sneck_renew', 'sneck_release', 'sneck_break', 'sneck_tally',
        'sneck_inspect', 'sneck_list', 'sneck_version', 'sneck_version_bump', 'sneck_row_make', 'sneck_row_lock', 'sneck_reap',
        'sneck_schema'];
    one regprocedure;
BEGIN
    FOR one IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
            AND starts_with(proname, 'sneck_') LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', one);
    END LOOP;
    FOR one IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
            AND proname = ANY (called) LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp', one, current_schema());
    END LOOP;
END
$$;

INSERT INTO sneck_meta VALUES ('schema', 1) ON CONFLICT (key) DO UPDATE SET value = 1;
