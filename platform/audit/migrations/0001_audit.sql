-- The tamper-evident log over spine.audit_entry: which entry has which number, the hashes, what was signed, and how far
-- copies elsewhere have come. No table here holds a tenant's data: entries stay where they were written, behind their
-- own walls, and a hash tells nothing about them.
CREATE SCHEMA audit;
GRANT USAGE ON SCHEMA audit TO ${app}, ${reader}, ${sealer};

-- Transaction ids compare only within one PostgreSQL. A restore into another one begins a new era: entries sealed in
-- earlier ones keep their numbers, and their ids say nothing about the order of new entries.
CREATE TABLE audit.era (
    number          integer     PRIMARY KEY,
    from_size       bigint      NOT NULL,
    cluster         bigint      NOT NULL
);
INSERT INTO audit.era SELECT 1, 0, system_identifier FROM pg_control_system();

-- Where the sealer stands: the tree's right edge (merkle::Frontier) and the last entry in it, by (xid, id) within the
-- newest era. One row, moved only from the size it was read at.
CREATE TABLE audit.tree (
    singleton       boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    size            bigint      NOT NULL DEFAULT 0,
    frontier        bytea       NOT NULL DEFAULT '\x0000000000000000',
    done_xid        xid8        NOT NULL DEFAULT '0',
    done_id         uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    sealed_at       timestamptz
);
INSERT INTO audit.tree DEFAULT VALUES;

-- Entry number `index` of the log, and the hash of its exact exported bytes. Kept for ever, unlike the entries: every
-- later proof is computed from these. Not partitioned: nothing is ever dropped, and both keys only grow at their end.
CREATE TABLE audit.leaf (
    index           bigint      PRIMARY KEY,
    hash            bytea       NOT NULL CHECK (octet_length(hash) = 32),
    era             integer     NOT NULL,
    xid             xid8        NOT NULL,
    entry_id        uuid        NOT NULL,
    at              timestamptz NOT NULL
);
-- No entry is sealed twice, and a listing finds the numbers of its entries.
CREATE UNIQUE INDEX leaf_entry_once ON audit.leaf (entry_id);

-- One hash for every 256 of the level below (tlog-tiles); level 0 is audit.leaf.
CREATE TABLE audit.node (
    level           smallint    NOT NULL CHECK (level > 0),
    index           bigint      NOT NULL,
    hash            bytea       NOT NULL CHECK (octet_length(hash) = 32),
    PRIMARY KEY (level, index)
);

-- What was signed: size, root, and the signed note as text.
CREATE TABLE audit.checkpoint (
    size            bigint      PRIMARY KEY,
    root            bytea       NOT NULL CHECK (octet_length(root) = 32),
    note            text        NOT NULL COLLATE "C",
    at              timestamptz NOT NULL
);

-- The log's public keys, from the size they first signed.
CREATE TABLE audit.signing_key (
    from_size       bigint      PRIMARY KEY,
    verifier_key    text        NOT NULL UNIQUE COLLATE "C",
    at              timestamptz NOT NULL
);

-- How far a copy elsewhere has come. target is written before the copy is made, so that whoever resumes after a crash
-- makes the same objects again, byte for byte.
CREATE TABLE audit.delivery (
    name            text        PRIMARY KEY COLLATE "C",
    size            bigint      NOT NULL DEFAULT 0,
    target          bigint      NOT NULL DEFAULT 0,
    updated_at      timestamptz NOT NULL,
    CHECK (target >= size)
);

-- Months whose entries left the database. Their numbers and hashes stay in audit.leaf, their lines in the second place.
CREATE TABLE audit.pruned (
    lower_at        timestamptz PRIMARY KEY,
    upper_at        timestamptz NOT NULL,
    entries         bigint      NOT NULL,
    last_index      bigint      NOT NULL,
    at              timestamptz NOT NULL
);

-- The months of entries there are, without the net that catches the rest.
CREATE VIEW audit.entry_partition AS
SELECT c.relname::text AS name,
       substring(pg_get_expr(c.relpartbound, c.oid) FROM $re$FROM \('([^']+)'\)$re$)::timestamptz AS lower_at,
       substring(pg_get_expr(c.relpartbound, c.oid) FROM $re$TO \('([^']+)'\)$re$)::timestamptz AS upper_at
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'spine.audit_entry'::regclass AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT';

-- --------------------------------------------------------------------------------------------------------- grants
GRANT SELECT ON audit.tree, audit.era, audit.leaf, audit.node, audit.checkpoint, audit.signing_key TO ${app}, ${reader};
GRANT SELECT, UPDATE ON audit.tree TO ${sealer};
GRANT SELECT, INSERT ON audit.era, audit.leaf, audit.node, audit.checkpoint, audit.signing_key TO ${sealer};
GRANT SELECT, INSERT, UPDATE ON audit.delivery TO ${sealer};
GRANT SELECT ON audit.pruned TO ${app}, ${reader}, ${sealer};
GRANT SELECT ON audit.entry_partition TO ${sealer};

-- ---------------------------------------------------------------------------------------------------- append-only
-- Grants stop the sealer; this stops the owner and a careless psql session.
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit.era
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit.leaf
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit.node
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit.checkpoint
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit.signing_key
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit.pruned
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();

-- Drops one month of entries, with the owner's rights. The caller has compared each of them with its copy; here it is only
-- seen to that nothing came in since, that the copy reaches so far, and that nobody drops what is not old.
CREATE FUNCTION audit.partition_drop(partition text, from_at timestamptz, to_at timestamptz, compared bigint, last_index bigint,
    now_at timestamptz)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog SET lock_timeout = '200ms' AS $$
DECLARE
    present bigint;
BEGIN
    PERFORM FROM audit.entry_partition p WHERE p.name = partition AND p.lower_at = from_at AND p.upper_at = to_at;
    IF NOT FOUND OR to_at > now() - interval '30 days' THEN
        RAISE EXCEPTION 'audit entries of % are not dropped: not a partition, or not old', partition;
    END IF;
    PERFORM FROM audit.delivery d WHERE d.name = 'replica' AND d.size > last_index;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'audit entries of % are not dropped: not copied elsewhere', partition;
    END IF;
    EXECUTE format('LOCK TABLE spine.%I IN SHARE MODE', partition);
    EXECUTE format('SELECT count(*) FROM spine.%I', partition) INTO present;
    IF present <> compared THEN
        RAISE EXCEPTION 'audit entries of % are not dropped: there are %, and % were compared', partition, present, compared;
    END IF;
    INSERT INTO audit.pruned (lower_at, upper_at, entries, last_index, at)
    VALUES (from_at, to_at, compared, partition_drop.last_index, now_at);
    EXECUTE format('ALTER TABLE spine.audit_entry DETACH PARTITION spine.%I', partition);
    EXECUTE format('DROP TABLE spine.%I', partition);
END $$;
REVOKE ALL ON FUNCTION audit.partition_drop FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit.partition_drop TO ${sealer};

-- The tree only grows: a size that goes back would let the sealer sign a second history.
CREATE FUNCTION audit.refuse_shrink() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.size < OLD.size THEN
        RAISE EXCEPTION 'audit.tree only grows: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER only_grows BEFORE UPDATE OR DELETE ON audit.tree
    FOR EACH ROW EXECUTE FUNCTION audit.refuse_shrink();
CREATE TRIGGER only_grows_truncate BEFORE TRUNCATE ON audit.tree
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
