-- The spine: what every change of state is written to, whatever domain it belongs to.
-- Names in ${…} are the installation's logins; see kernel/db/src/login.rs.
CREATE SCHEMA spine;
GRANT USAGE ON SCHEMA spine TO ${app}, ${reader}, ${sealer}, ${relay};

-- ---------------------------------------------------------------------------------------------------- audit_entry
-- One row per change, written in the transaction that made it. xid orders entries by transaction: everything below
-- the oldest running transaction is final, so the sealer can never overtake a late committer.
CREATE TABLE spine.audit_entry (
    xid             xid8        NOT NULL DEFAULT pg_current_xact_id(),
    id              uuid        NOT NULL,
    at              timestamptz NOT NULL,
    org_id          uuid,
    project_id      uuid,
    actor_kind      text        NOT NULL COLLATE "C",
    actor_id        text        NOT NULL COLLATE "C",
    behalf_kind     text        COLLATE "C",
    behalf_id       text        COLLATE "C",
    credential      text        COLLATE "C",
    action          text        NOT NULL COLLATE "C",
    resource_kind   text        NOT NULL COLLATE "C",
    resource_id     text        NOT NULL COLLATE "C",
    generation      bigint      NOT NULL,
    before          json,
    after           json,
    correlation_id  uuid        NOT NULL,
    causation_id    text        COLLATE "C",
    policy_version  bigint      NOT NULL,
    PRIMARY KEY (xid, id, at)
) PARTITION BY RANGE (at);
-- Listings go by the sealed order; the time is in the index to be filtered by.
CREATE INDEX audit_entry_by_org ON spine.audit_entry (org_id, xid, id, at);
-- For taking a month out. It only grows at its end, so it costs a change next to nothing.
CREATE INDEX audit_entry_by_time ON spine.audit_entry (at, id);

-- --------------------------------------------------------------------------------------------------------- outbox
-- Events waiting for a position. The sequencer copies them to spine.log in (xid, id) order; rows stay until their
-- partition is pruned, nothing marks them one by one.
CREATE TABLE spine.outbox (
    xid             xid8        NOT NULL DEFAULT pg_current_xact_id(),
    id              uuid        NOT NULL,
    at              timestamptz NOT NULL,
    org_id          uuid,
    project_id      uuid,
    type            text        NOT NULL COLLATE "C",
    subject         text        NOT NULL COLLATE "C",
    generation      bigint      NOT NULL,
    data            json        NOT NULL,
    correlation_id  uuid        NOT NULL,
    causation_id    text        COLLATE "C",
    traceparent     text        COLLATE "C",
    PRIMARY KEY (xid, id, at)
) PARTITION BY RANGE (at);

-- ------------------------------------------------------------------------------------------------------------ log
-- The durable, gapless order of events. epoch counts logical restores: positions of different epochs do not compare.
CREATE TABLE spine.log (
    position        bigint      NOT NULL,
    sequenced_at    timestamptz NOT NULL,
    epoch           integer     NOT NULL,
    id              uuid        NOT NULL,
    at              timestamptz NOT NULL,
    org_id          uuid,
    project_id      uuid,
    type            text        NOT NULL COLLATE "C",
    subject         text        NOT NULL COLLATE "C",
    generation      bigint      NOT NULL,
    data            json        NOT NULL,
    correlation_id  uuid        NOT NULL,
    causation_id    text        COLLATE "C",
    traceparent     text        COLLATE "C",
    PRIMARY KEY (position, sequenced_at)
) PARTITION BY RANGE (sequenced_at);
-- Tenants replay their own events; what all the others do must not cost them anything.
CREATE INDEX log_by_org ON spine.log (org_id, position);

-- Where the sequencer stands. An advisory lock, not a lease, keeps two sequencers apart. cluster is the PostgreSQL that
-- done_xid was counted by: in another one it means nothing.
CREATE TABLE spine.sequencer (
    singleton       boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    epoch           integer     NOT NULL DEFAULT 1,
    last_position   bigint      NOT NULL DEFAULT 0,
    last_at         timestamptz NOT NULL DEFAULT '-infinity',
    done_xid        xid8        NOT NULL DEFAULT '0',
    done_id         uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    cluster         bigint      NOT NULL
);
INSERT INTO spine.sequencer (cluster) SELECT system_identifier FROM pg_control_system();

-- A durable reader of the log: its place, and who is working for it right now.
CREATE TABLE spine.consumer (
    name            text        PRIMARY KEY COLLATE "C",
    position        bigint      NOT NULL DEFAULT 0,
    position_at     timestamptz NOT NULL DEFAULT '-infinity',
    lease_token     bigint      NOT NULL DEFAULT 0,
    lease_until     timestamptz NOT NULL DEFAULT '-infinity',
    attempts        integer     NOT NULL DEFAULT 0,
    updated_at      timestamptz NOT NULL DEFAULT now()
);

-- Events a consumer could not digest. They block nobody and are seen by operators.
CREATE TABLE spine.parked_event (
    consumer        text        NOT NULL COLLATE "C",
    position        bigint      NOT NULL,
    event_id        uuid        NOT NULL,
    type            text        NOT NULL COLLATE "C",
    error           text        NOT NULL,
    attempts        integer     NOT NULL,
    parked_at       timestamptz NOT NULL,
    PRIMARY KEY (consumer, position)
);

-- ---------------------------------------------------------------------------------------------------- idempotency
-- The result of a request, kept for its retries. Uniqueness across partitions rests on an advisory lock taken
-- before the look-up (kernel/db/src/idempotency.rs).
CREATE TABLE spine.idempotency (
    actor           text        NOT NULL COLLATE "C",
    operation       text        NOT NULL COLLATE "C",
    key_hash        bytea       NOT NULL,
    at              timestamptz NOT NULL,
    body_hash       bytea       NOT NULL,
    result          json        NOT NULL,
    PRIMARY KEY (key_hash, operation, actor, at)
) PARTITION BY RANGE (at);

-- -------------------------------------------------------------------------------------------------------- setting
-- Values that differ from the defaults. scope_id is whose: a project's, an organization's, or nil for the platform's. A
-- value that was taken back stays as a row without one, so that generation never repeats; what was before is in the audit log.
CREATE TABLE spine.setting (
    org_id          uuid,
    scope_id        uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    key             text        NOT NULL COLLATE "C",
    value           json,
    generation      bigint      NOT NULL DEFAULT 1,
    set_by          json        NOT NULL,
    set_at          timestamptz NOT NULL,
    PRIMARY KEY (scope_id, key),
    CHECK ((org_id IS NULL) = (scope_id = '00000000-0000-0000-0000-000000000000'))
);

-- ----------------------------------------------------------------------------------------------------------- flow
-- Long work in steps. A lease and a transition touch no indexed column, so they stay in their heap page.
CREATE TABLE spine.flow (
    id              uuid        PRIMARY KEY,
    kind            text        NOT NULL COLLATE "C",
    key             text        NOT NULL COLLATE "C",
    org_id          uuid,
    state           text        NOT NULL COLLATE "C",
    data            json        NOT NULL,
    generation      bigint      NOT NULL DEFAULT 1,
    wake_at         timestamptz NOT NULL,
    -- Woken while a worker had it: what the worker saw may be old, so it has to look again before it rests.
    woken           boolean     NOT NULL DEFAULT false,
    entered_at      timestamptz NOT NULL,
    deadline_at     timestamptz,
    waiting_for     text,
    attempts        integer     NOT NULL DEFAULT 0,
    last_error      text,
    lease_token     bigint      NOT NULL DEFAULT 0,
    lease_until     timestamptz NOT NULL DEFAULT '-infinity',
    correlation_id  uuid        NOT NULL,
    causation_id    text        COLLATE "C",
    traceparent     text        COLLATE "C",
    done_at         timestamptz,
    created_at      timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX flow_one_live_per_key ON spine.flow (kind, key) WHERE done_at IS NULL;
CREATE INDEX flow_due ON spine.flow (kind, wake_at) WHERE done_at IS NULL;
CREATE INDEX flow_done ON spine.flow (done_at) WHERE done_at IS NOT NULL;

-- ---------------------------------------------------------------------------------------------------------- walls
-- Tenants see their own rows; the platform scope sees all. An unset scope sees nothing. FORCE binds the owner as well.
CREATE PROCEDURE spine.wall(walled regclass, command text, VARIADIC logins name[]) LANGUAGE plpgsql AS $$
DECLARE
    who text := (SELECT string_agg(quote_ident(login), ', ') FROM unnest(logins) login);
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', walled);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', walled);
    EXECUTE format($policy$
        CREATE POLICY tenant ON %s FOR %s TO %s USING (
            org_id = (SELECT nullif(current_setting('gpuaas.org', true), '')::uuid)
            OR (SELECT current_setting('gpuaas.platform', true) = 'on'))$policy$, walled, command, who);
END $$;
REVOKE ALL ON PROCEDURE spine.wall FROM PUBLIC;

CALL spine.wall('spine.audit_entry', 'ALL', '${app}', '${reader}');
CALL spine.wall('spine.outbox', 'ALL', '${app}');
CALL spine.wall('spine.log', 'SELECT', '${app}', '${reader}');
CALL spine.wall('spine.flow', 'ALL', '${app}');
CALL spine.wall('spine.setting', 'ALL', '${app}', '${reader}');
CREATE POLICY sealer ON spine.audit_entry FOR SELECT TO ${sealer} USING (true);
CREATE POLICY relay ON spine.outbox TO ${relay} USING (true);
CREATE POLICY relay ON spine.log TO ${relay} USING (true);
-- Every process reads all settings, whichever login it has.
CREATE POLICY sealer ON spine.setting FOR SELECT TO ${sealer} USING (true);
CREATE POLICY relay ON spine.setting FOR SELECT TO ${relay} USING (true);

-- --------------------------------------------------------------------------------------------------------- grants
-- xid is PostgreSQL's to fill in: a row that claims an old transaction would never be sealed, and never be given a
-- position.
GRANT SELECT ON spine.audit_entry TO ${app};
GRANT INSERT (id, at, org_id, project_id, actor_kind, actor_id, behalf_kind, behalf_id, credential, action, resource_kind, resource_id,
              generation, before, after, correlation_id, causation_id, policy_version) ON spine.audit_entry TO ${app};
GRANT SELECT ON spine.audit_entry TO ${reader}, ${sealer};
GRANT INSERT (id, at, org_id, project_id, type, subject, generation, data, correlation_id, causation_id, traceparent)
    ON spine.outbox TO ${app};
-- How late events are, not what they say.
GRANT SELECT (xid, id, at) ON spine.outbox TO ${app};
GRANT SELECT, DELETE ON spine.outbox TO ${relay};
GRANT SELECT ON spine.log TO ${app}, ${reader};
GRANT SELECT, INSERT ON spine.log TO ${relay};
GRANT SELECT ON spine.sequencer TO ${app}, ${reader}, ${sealer};
GRANT SELECT, UPDATE ON spine.sequencer TO ${relay};
GRANT SELECT, INSERT, UPDATE ON spine.consumer TO ${app}, ${relay};
GRANT SELECT, INSERT, DELETE ON spine.parked_event TO ${app}, ${relay};
GRANT SELECT, INSERT ON spine.idempotency TO ${app};
GRANT SELECT, INSERT, UPDATE ON spine.setting TO ${app};
GRANT SELECT ON spine.setting TO ${reader}, ${sealer}, ${relay};
GRANT SELECT, INSERT, UPDATE, DELETE ON spine.flow TO ${app};

-- ---------------------------------------------------------------------------------------------------- append-only
-- Grants stop the application; this stops the owner and a careless psql session. It fires in every partition.
CREATE FUNCTION spine.refuse_rewrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%.% is append-only: % refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON spine.audit_entry
    FOR EACH ROW EXECUTE FUNCTION spine.refuse_rewrite();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON spine.audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();

-- ----------------------------------------------------------------------------------------------------- partitions
-- The default partitions are a net: a write never fails because nobody made today's partition.
CREATE TABLE spine.audit_entry_default PARTITION OF spine.audit_entry DEFAULT;
CREATE TABLE spine.outbox_default PARTITION OF spine.outbox DEFAULT;
CREATE TABLE spine.log_default PARTITION OF spine.log DEFAULT;
CREATE TABLE spine.idempotency_default PARTITION OF spine.idempotency DEFAULT;
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON spine.audit_entry_default
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();

-- Runs with the owner's rights, so that no running role needs them: makes one partition, unless it exists or rows
-- for it already sit in the default partition (they stay there; nothing is moved under load). It attaches under a short
-- lock timeout: everyone who reads the table queues behind its wait for the default partition, and it can come again.
CREATE FUNCTION spine.partition_make(parent text, column_name text, lower_at timestamptz, upper_at timestamptz, suffix text)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog SET lock_timeout = '200ms' AS $$
DECLARE
    name text := format('%s_%s', parent, suffix);
    strays boolean;
BEGIN
    IF parent NOT IN ('audit_entry', 'outbox', 'log', 'idempotency') THEN
        RAISE EXCEPTION 'no partitions are made for %', parent;
    END IF;
    IF to_regclass(format('spine.%I', name)) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM spine.%I WHERE %I >= $1 AND %I < $2)',
        parent || '_default', column_name, column_name) INTO strays USING lower_at, upper_at;
    IF strays THEN
        RETURN false;
    END IF;
    -- LIKE + ATTACH takes a weaker lock on the parent than CREATE … PARTITION OF.
    EXECUTE format('CREATE TABLE spine.%I (LIKE spine.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name, parent);
    EXECUTE format('ALTER TABLE spine.%I ATTACH PARTITION spine.%I FOR VALUES FROM (%L) TO (%L)', parent, name, lower_at, upper_at);
    IF parent = 'audit_entry' THEN
        EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON spine.%I
            FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite()', name);
    END IF;
    RETURN true;
END $$;

-- Drops the oldest partition that ends before the given time, and says whether there was one; when there is none left,
-- old rows of the default partition go. One at a time, so that nobody waits longer than for one: dropping locks the
-- table for an instant, gives way soon and is tried again. What is still to be read stays, however old: events that have
-- no position yet, and positions that a consumer or projection has not got to. Nor does anything go that is younger than
-- the settings allow to ask for, whatever the caller says: results of requests are promised for a day.
CREATE FUNCTION spine.partition_prune(parent text, column_name text, before_at timestamptz)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog SET lock_timeout = '200ms' AS $$
DECLARE
    child text;
    waiting boolean;
    -- Subqueries that do not look at the row: they are asked once, and the primary keys find the rest.
    unread text := CASE parent
        WHEN 'outbox' THEN 'r.xid >= (SELECT done_xid FROM spine.sequencer)
                            AND (r.xid, r.id) > (SELECT done_xid, done_id FROM spine.sequencer)'
        WHEN 'log' THEN 'r.position > (SELECT min(c.position) FROM spine.consumer c)'
        ELSE 'false' END;
    keep_min interval := CASE parent WHEN 'idempotency' THEN '24 hours' ELSE '1 hour' END;
BEGIN
    before_at := least(before_at, now() - keep_min);
    -- Not the audit log: it may go only when it is sealed and copied elsewhere, which is not this caller's to judge.
    IF parent NOT IN ('outbox', 'log', 'idempotency') THEN
        RAISE EXCEPTION 'no partitions are pruned for %', parent;
    END IF;
    FOR child IN
        SELECT name FROM (
            SELECT c.relname AS name, substring(pg_get_expr(c.relpartbound, c.oid) from $re$TO \('([^']+)'\)$re$)::timestamptz AS upper_at
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = format('spine.%I', parent)::regclass AND c.relname <> parent || '_default'
        ) AS partition WHERE upper_at <= before_at ORDER BY upper_at
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM spine.%I r WHERE %s)', child, unread) INTO waiting;
        IF NOT waiting THEN
            EXECUTE format('ALTER TABLE spine.%I DETACH PARTITION spine.%I', parent, child);
            EXECUTE format('DROP TABLE spine.%I', child);
            RETURN true;
        END IF;
    END LOOP;
    EXECUTE format('DELETE FROM spine.%I r WHERE r.%I < $1 AND (%s) IS NOT TRUE', parent || '_default', column_name, unread)
        USING before_at;
    RETURN false;
END $$;
REVOKE ALL ON FUNCTION spine.partition_make, spine.partition_prune FROM PUBLIC;
GRANT EXECUTE ON FUNCTION spine.partition_make, spine.partition_prune TO ${app};
