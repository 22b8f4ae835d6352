-- What was taken away from whom, for replicas that remember who a caller is. Followed by transaction id: see
-- docs/decisions/0012. No tenant's row: it names ids, and nobody but the replicas reads it.
CREATE TABLE iam.revocation (
    id      bigint      PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    xid     xid8        NOT NULL DEFAULT pg_current_xact_id(),
    -- Which PostgreSQL counted xid: rows that a dump brought here mean nothing to anyone who follows this one.
    cluster bigint      NOT NULL DEFAULT (pg_control_system()).system_identifier,
    kind    text        NOT NULL COLLATE "C"
            CHECK (kind IN ('credential', 'principal', 'authority', 'organization', 'role', 'provider_session')),
    subject uuid        NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- no rows yet: the table is new
CREATE INDEX revocation_by_xid ON iam.revocation (xid);

-- Deleted only by age.
GRANT SELECT, INSERT, DELETE ON iam.revocation TO ${app};
