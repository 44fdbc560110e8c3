-- The tables. Everything in this folder runs as one transaction, by `sneck setup` or by the first client that opens the
-- store, and may run again: what is there stays. Times are of the server's clock.
--
-- sneck_lock is for other programs, and for mode=row: whoever locks its row, or bumps `version` in it, is in nobody's
-- way but theirs. What mode=lease changes all day is in sneck_state, so that a long transaction on the row of a lock
-- never holds up a renewal.

SELECT pg_advisory_xact_lock(7236837539216420107); -- two that set it up at the same time take turns

CREATE TABLE IF NOT EXISTS sneck_meta (
    key text PRIMARY KEY,
    value bigint NOT NULL
);
-- floor: the highest token that went with rows of sneck_state which were removed
INSERT INTO sneck_meta VALUES ('floor', 0) ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS sneck_lock (
    resource_name text COLLATE "C" PRIMARY KEY, -- prefix and name
    version bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- A row a lock, made by its first acquire. It is locked first by everything that is done to the claims of that lock.
CREATE TABLE IF NOT EXISTS sneck_state (
    resource_name text COLLATE "C" PRIMARY KEY,
    token_first bigint NOT NULL DEFAULT 0, -- of the last block that was given out
    token bigint NOT NULL,                 -- the highest that was given out; only rises
    place bigint NOT NULL DEFAULT 0,       -- the last that was given to a waiter
    count bigint NOT NULL DEFAULT -1,      -- permits of a semaphore (-1: never set), what a latch waits for, signals
    claims bigint NOT NULL DEFAULT 0,      -- rows of sneck_hold and sneck_queue; 0: free, and nobody waits
    tombstones_until timestamptz NOT NULL DEFAULT '-infinity',
    used_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- Claims that hold a lock, or that it has been offered to.
CREATE TABLE IF NOT EXISTS sneck_hold (
    resource_name text COLLATE "C" NOT NULL,
    claim uuid NOT NULL,
    mode smallint NOT NULL,            -- 0 exclusive, 1 shared, 2 permit, 3 take, 4 pass
    units integer NOT NULL,
    offered boolean NOT NULL,          -- by somebody's release, and not renewed since
    token_first bigint NOT NULL,
    token_last bigint NOT NULL,
    ends_at timestamptz NOT NULL,
    since timestamptz NOT NULL,
    fair boolean NOT NULL,
    row_xid xid8,                      -- mode=row: the transaction that has the row of sneck_lock; the hold ends with it
    client uuid NOT NULL,
    owner text NOT NULL,
    pid bigint NOT NULL,
    host text NOT NULL,
    why text NOT NULL,
    PRIMARY KEY (resource_name, claim)
) WITH (fillfactor = 80);

-- Claims that wait, in the order of their places.
CREATE TABLE IF NOT EXISTS sneck_queue (
    resource_name text COLLATE "C" NOT NULL,
    place bigint NOT NULL,
    claim uuid NOT NULL UNIQUE,
    mode smallint NOT NULL,
    units integer NOT NULL,
    tokens integer NOT NULL,
    lease interval NOT NULL,
    ends_at timestamptz NOT NULL,
    since timestamptz NOT NULL,
    fair boolean NOT NULL,
    client uuid NOT NULL,
    owner text NOT NULL,
    pid bigint NOT NULL,
    host text NOT NULL,
    why text NOT NULL,
    PRIMARY KEY (resource_name, place)
);

-- Claims that were given up before their acquire was answered: one that arrives late is refused.
CREATE TABLE IF NOT EXISTS sneck_tombstone (
    resource_name text COLLATE "C" NOT NULL,
    claim uuid NOT NULL,
    ends_at timestamptz NOT NULL,
    PRIMARY KEY (resource_name, claim)
);

-- Holds that did not end by a release.
CREATE TABLE IF NOT EXISTS sneck_incident (
    resource_name text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL,
    kind text NOT NULL, -- expired, died (mode=row: its connection was gone) or broken
    owner text NOT NULL,
    text text NOT NULL,
    token bigint NOT NULL,
    PRIMARY KEY (resource_name, number)
);
