-- The tables. Statements of this folder are parted by lines with // alone, run one by one, by `sneck setup` or by the first
-- client that opens the store, and may run again: what is there stays. Times are microseconds since 1970, UTC, of the
-- server's clock. Names and texts are bytes, so that they are compared as such.
--
-- sneck_lock is for other programs, and for mode=row: whoever locks its row, or bumps `version` in it, is in nobody's way
-- but theirs.
--
-- Three kinds of GET_LOCK names go with them, each of one session, and all gone with it: sneck.r.<claim>, a transaction of
-- mode=row has the row of that claim's lock; sneck.<client>, that session waits to be told who of its client was granted
-- something; sneck.try.<client>, it would like to.
CREATE TABLE IF NOT EXISTS sneck_meta (
    name VARCHAR(16) CHARACTER SET ascii PRIMARY KEY,
    value BIGINT NOT NULL
) ENGINE = InnoDB
//
-- floor: the highest token that went with rows of sneck_state which were removed
INSERT IGNORE INTO sneck_meta VALUES ('floor', 0)
//
CREATE TABLE IF NOT EXISTS sneck_lock (
    resource_name VARBINARY(700) PRIMARY KEY, -- prefix and name
    version BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB
//
-- A row a lock, made by its first acquire. It is locked first by everything that is done to the claims of that lock.
CREATE TABLE IF NOT EXISTS sneck_state (
    resource_name VARBINARY(700) PRIMARY KEY,
    token BIGINT NOT NULL,                    -- the highest that was given out; only rises
    place BIGINT NOT NULL DEFAULT 0,          -- the last that was given to a waiter
    total BIGINT NOT NULL DEFAULT -1,         -- permits of a semaphore (-1: never set), what a latch waits for, signals
    claims BIGINT NOT NULL DEFAULT 0,         -- rows of sneck_hold and sneck_queue; 0: free, and nobody waits
    tombstones_until BIGINT NOT NULL DEFAULT 0,
    used_at BIGINT NOT NULL DEFAULT 0
) ENGINE = InnoDB
//
-- Claims that hold a lock, or that it has been offered to.
CREATE TABLE IF NOT EXISTS sneck_hold (
    resource_name VARBINARY(700) NOT NULL,
    claim CHAR(32) CHARACTER SET ascii NOT NULL,
    mode TINYINT NOT NULL,                    -- 0 exclusive, 1 shared, 2 permit, 3 take, 4 pass
    units INT NOT NULL,
    token_first BIGINT NOT NULL,
    token_last BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    since BIGINT NOT NULL,
    fair BOOLEAN NOT NULL,
    owner VARBINARY(64) NOT NULL,
    pid BIGINT NOT NULL,
    host VARBINARY(64) NOT NULL,
    why VARBINARY(255) NOT NULL,
    in_row BOOLEAN NOT NULL,                  -- mode=row: it ends with the transaction that has the row of sneck_lock
    PRIMARY KEY (resource_name, claim)
) ENGINE = InnoDB
//
-- Claims that wait, in the order of their places.
CREATE TABLE IF NOT EXISTS sneck_queue (
    resource_name VARBINARY(700) NOT NULL,
    place BIGINT NOT NULL,
    claim CHAR(32) CHARACTER SET ascii NOT NULL,
    mode TINYINT NOT NULL,
    units INT NOT NULL,
    tokens INT NOT NULL,
    lease_us BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    since BIGINT NOT NULL,
    fair BOOLEAN NOT NULL,
    owner VARBINARY(64) NOT NULL,
    pid BIGINT NOT NULL,
    host VARBINARY(64) NOT NULL,
    why VARBINARY(255) NOT NULL,
    PRIMARY KEY (resource_name, place)
) ENGINE = InnoDB
//
-- Claims that were given up before their acquire was answered: one that arrives late is refused.
CREATE TABLE IF NOT EXISTS sneck_tombstone (
    resource_name VARBINARY(700) NOT NULL,
    claim CHAR(32) CHARACTER SET ascii NOT NULL,
    ends_at BIGINT NOT NULL,
    PRIMARY KEY (resource_name, claim)
) ENGINE = InnoDB
//
-- Holds that did not end by a release.
CREATE TABLE IF NOT EXISTS sneck_incident (
    resource_name VARBINARY(700) NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind VARCHAR(16) CHARACTER SET ascii NOT NULL, -- expired, died (mode=row) or broken
    owner VARBINARY(64) NOT NULL,
    text VARBINARY(400) NOT NULL,
    token BIGINT NOT NULL,
    PRIMARY KEY (resource_name, number)
) ENGINE = InnoDB
//
-- Claims that were granted while a session of their client waits to be told: what that one has to say.
CREATE TABLE IF NOT EXISTS sneck_bell (
    client CHAR(36) CHARACTER SET ascii NOT NULL,
    claim CHAR(32) CHARACTER SET ascii NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (client, claim)
) ENGINE = InnoDB
//
