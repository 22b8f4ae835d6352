-- The schema at its newest, to be read: written by `make contracts`, compared by the tests. What makes it are the
-- migrations of kernel/db and of the domains.

CREATE TABLE audit.checkpoint (
    size bigint NOT NULL,
    root bytea NOT NULL,
    note text NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT checkpoint_pkey PRIMARY KEY (size),
    CONSTRAINT checkpoint_root_check CHECK ((octet_length(root) = 32))
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.checkpoint FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
GRANT INSERT, SELECT ON audit.checkpoint TO ${sealer};
GRANT SELECT ON audit.checkpoint TO ${app};
GRANT SELECT ON audit.checkpoint TO ${reader};

CREATE TABLE audit.delivery (
    name text NOT NULL,
    size bigint NOT NULL DEFAULT 0,
    target bigint NOT NULL DEFAULT 0,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT delivery_pkey PRIMARY KEY (name),
    CONSTRAINT delivery_check CHECK ((target >= size))
);
GRANT INSERT, SELECT, UPDATE ON audit.delivery TO ${sealer};

CREATE TABLE audit.era (
    number integer NOT NULL,
    from_size bigint NOT NULL,
    cluster bigint NOT NULL,
    CONSTRAINT era_pkey PRIMARY KEY (number)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.era FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
GRANT INSERT, SELECT ON audit.era TO ${sealer};
GRANT SELECT ON audit.era TO ${app};
GRANT SELECT ON audit.era TO ${reader};

CREATE TABLE audit.leaf (
    index bigint NOT NULL,
    hash bytea NOT NULL,
    era integer NOT NULL,
    xid xid8 NOT NULL,
    entry_id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT leaf_pkey PRIMARY KEY (index),
    CONSTRAINT leaf_hash_check CHECK ((octet_length(hash) = 32))
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.leaf FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
CREATE UNIQUE INDEX leaf_entry_once ON audit.leaf USING btree (entry_id);
GRANT INSERT, SELECT ON audit.leaf TO ${sealer};
GRANT SELECT ON audit.leaf TO ${app};
GRANT SELECT ON audit.leaf TO ${reader};

CREATE TABLE audit.node (
    level smallint NOT NULL,
    index bigint NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT node_pkey PRIMARY KEY (level, index),
    CONSTRAINT node_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT node_level_check CHECK ((level > 0))
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.node FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
GRANT INSERT, SELECT ON audit.node TO ${sealer};
GRANT SELECT ON audit.node TO ${app};
GRANT SELECT ON audit.node TO ${reader};

CREATE TABLE audit.pruned (
    lower_at timestamp with time zone NOT NULL,
    upper_at timestamp with time zone NOT NULL,
    entries bigint NOT NULL,
    last_index bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT pruned_pkey PRIMARY KEY (lower_at)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.pruned FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
GRANT SELECT ON audit.pruned TO ${app};
GRANT SELECT ON audit.pruned TO ${reader};
GRANT SELECT ON audit.pruned TO ${sealer};

CREATE TABLE audit.signing_key (
    from_size bigint NOT NULL,
    verifier_key text NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT signing_key_verifier_key_key UNIQUE (verifier_key),
    CONSTRAINT signing_key_pkey PRIMARY KEY (from_size)
);
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON audit.signing_key FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
GRANT INSERT, SELECT ON audit.signing_key TO ${sealer};
GRANT SELECT ON audit.signing_key TO ${app};
GRANT SELECT ON audit.signing_key TO ${reader};

CREATE TABLE audit.tree (
    singleton boolean NOT NULL DEFAULT true,
    size bigint NOT NULL DEFAULT 0,
    frontier bytea NOT NULL DEFAULT '\x0000000000000000'::bytea,
    done_xid xid8 NOT NULL DEFAULT '0'::xid8,
    done_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'::uuid,
    sealed_at timestamp with time zone,
    CONSTRAINT tree_pkey PRIMARY KEY (singleton),
    CONSTRAINT tree_singleton_check CHECK (singleton)
);
CREATE TRIGGER only_grows BEFORE DELETE OR UPDATE ON audit.tree FOR EACH ROW EXECUTE FUNCTION audit.refuse_shrink();
CREATE TRIGGER only_grows_truncate BEFORE TRUNCATE ON audit.tree FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
GRANT SELECT ON audit.tree TO ${app};
GRANT SELECT ON audit.tree TO ${reader};
GRANT SELECT, UPDATE ON audit.tree TO ${sealer};

CREATE TABLE iam.api_key (
    id uuid NOT NULL,
    person_id uuid NOT NULL,
    org_id uuid,
    project_id uuid,
    actions text[],
    name text NOT NULL,
    key_hash bytea NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT api_key_key_hash_key UNIQUE (key_hash),
    CONSTRAINT api_key_pkey PRIMARY KEY (id),
    CONSTRAINT api_key_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id),
    CONSTRAINT api_key_org_id_project_id_fkey FOREIGN KEY (org_id, project_id) REFERENCES iam.project(org_id, id),
    CONSTRAINT api_key_person_id_fkey FOREIGN KEY (person_id) REFERENCES iam.person(id),
    CONSTRAINT api_key_check CHECK (((project_id IS NULL) OR (org_id IS NOT NULL)))
);
ALTER TABLE iam.api_key ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX api_key_by_person ON iam.api_key USING btree (person_id, id);
CREATE POLICY tenant ON iam.api_key FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
GRANT INSERT, SELECT, UPDATE ON iam.api_key TO ${app};

CREATE TABLE iam.invitation (
    id uuid NOT NULL,
    org_id uuid NOT NULL,
    project_id uuid,
    role text NOT NULL,
    code_hash bytea NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    accepted_at timestamp with time zone,
    accepted_by uuid,
    withdrawn_at timestamp with time zone,
    CONSTRAINT invitation_code_hash_key UNIQUE (code_hash),
    CONSTRAINT invitation_pkey PRIMARY KEY (id),
    CONSTRAINT invitation_accepted_by_fkey FOREIGN KEY (accepted_by) REFERENCES iam.person(id),
    CONSTRAINT invitation_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id),
    CONSTRAINT invitation_org_id_project_id_fkey FOREIGN KEY (org_id, project_id) REFERENCES iam.project(org_id, id),
    CONSTRAINT invitation_check CHECK ((split_part(role, '.'::text, 1) =
CASE
    WHEN (project_id IS NULL) THEN 'organization'::text
    ELSE 'project'::text
END)),
    CONSTRAINT invitation_check1 CHECK (((accepted_at IS NULL) OR (withdrawn_at IS NULL)))
);
ALTER TABLE iam.invitation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX invitation_by_org ON iam.invitation USING btree (org_id, id);
CREATE POLICY tenant ON iam.invitation FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
GRANT INSERT, SELECT, UPDATE ON iam.invitation TO ${app};

CREATE TABLE iam.organization (
    id uuid NOT NULL,
    org_id uuid NOT NULL GENERATED ALWAYS AS (id) STORED,
    name text NOT NULL,
    name_key text NOT NULL,
    labels jsonb NOT NULL DEFAULT '{}'::jsonb,
    state text NOT NULL,
    state_since timestamp with time zone NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT organization_pkey PRIMARY KEY (id),
    CONSTRAINT organization_state_check CHECK ((state = ANY (ARRAY['active'::text, 'archiving'::text, 'archived'::text])))
);
ALTER TABLE iam.organization ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON iam.organization FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
CREATE UNIQUE INDEX organization_name_once ON iam.organization USING btree (name_key) WHERE (state <> 'archived'::text);
GRANT INSERT, SELECT, UPDATE ON iam.organization TO ${app};
GRANT SELECT ON iam.organization TO ${reader};

CREATE TABLE iam.organization_summary (
    org_id uuid NOT NULL,
    projects_active bigint NOT NULL,
    projects_archived bigint NOT NULL,
    CONSTRAINT organization_summary_pkey PRIMARY KEY (org_id)
);
ALTER TABLE iam.organization_summary ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON iam.organization_summary FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
GRANT DELETE, INSERT, SELECT, UPDATE ON iam.organization_summary TO ${app};
GRANT SELECT ON iam.organization_summary TO ${reader};

CREATE TABLE iam.person (
    id uuid NOT NULL,
    name text NOT NULL,
    email text,
    state text NOT NULL,
    state_since timestamp with time zone NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT person_pkey PRIMARY KEY (id),
    CONSTRAINT person_state_check CHECK ((state = ANY (ARRAY['active'::text, 'archived'::text])))
);
ALTER TABLE iam.person ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY members ON iam.person FOR SELECT TO ${app} USING ((EXISTS ( SELECT
   FROM iam.role_grant g
  WHERE ((g.person_id = person.id) AND (g.org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif"))))));
CREATE POLICY platform ON iam.person FOR ALL TO ${app} USING (( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text)));
GRANT INSERT, SELECT, UPDATE ON iam.person TO ${app};

CREATE TABLE iam.project (
    id uuid NOT NULL,
    org_id uuid NOT NULL,
    name text NOT NULL,
    name_key text NOT NULL,
    labels jsonb NOT NULL DEFAULT '{}'::jsonb,
    state text NOT NULL,
    state_since timestamp with time zone NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT project_pkey PRIMARY KEY (id),
    CONSTRAINT project_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id),
    CONSTRAINT project_state_check CHECK ((state = ANY (ARRAY['active'::text, 'archived'::text])))
);
ALTER TABLE iam.project ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON iam.project FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
CREATE UNIQUE INDEX project_name_once ON iam.project USING btree (org_id, name_key) WHERE (state <> 'archived'::text);
GRANT INSERT, SELECT, UPDATE ON iam.project TO ${app};
GRANT SELECT ON iam.project TO ${reader};

CREATE TABLE iam.revocation (
    id bigint NOT NULL,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    cluster bigint NOT NULL DEFAULT (pg_control_system()).system_identifier,
    kind text NOT NULL,
    subject uuid NOT NULL,
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT revocation_pkey PRIMARY KEY (id),
    CONSTRAINT revocation_kind_check CHECK ((kind = ANY (ARRAY['credential'::text, 'principal'::text, 'authority'::text, 'organization'::text, 'role'::text, 'provider_session'::text])))
);
CREATE INDEX revocation_by_xid ON iam.revocation USING btree (xid);
GRANT DELETE, INSERT, SELECT ON iam.revocation TO ${app};

CREATE TABLE iam.role_grant (
    id uuid NOT NULL,
    org_id uuid,
    project_id uuid,
    person_id uuid NOT NULL,
    role text NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone,
    ended_at timestamp with time zone,
    CONSTRAINT role_grant_pkey PRIMARY KEY (id),
    CONSTRAINT role_grant_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id),
    CONSTRAINT role_grant_org_id_project_id_fkey FOREIGN KEY (org_id, project_id) REFERENCES iam.project(org_id, id),
    CONSTRAINT role_grant_person_id_fkey FOREIGN KEY (person_id) REFERENCES iam.person(id),
    CONSTRAINT role_grant_check CHECK (((project_id IS NULL) OR (org_id IS NOT NULL))),
    CONSTRAINT role_grant_check1 CHECK ((split_part(role, '.'::text, 1) =
CASE
    WHEN (org_id IS NULL) THEN 'platform'::text
    WHEN (project_id IS NULL) THEN 'organization'::text
    ELSE 'project'::text
END))
);
ALTER TABLE iam.role_grant ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX role_grant_by_org ON iam.role_grant USING btree (org_id, id);
CREATE POLICY tenant ON iam.role_grant FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
CREATE UNIQUE INDEX role_grant_once ON iam.role_grant USING btree (person_id, org_id, project_id, role) NULLS NOT DISTINCT WHERE (ended_at IS NULL);
GRANT INSERT, SELECT, UPDATE ON iam.role_grant TO ${app};

CREATE TABLE iam.session (
    id uuid NOT NULL,
    person_id uuid NOT NULL,
    token_hash bytea NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT session_token_hash_key UNIQUE (token_hash),
    CONSTRAINT session_pkey PRIMARY KEY (id),
    CONSTRAINT session_person_id_fkey FOREIGN KEY (person_id) REFERENCES iam.person(id)
);
GRANT INSERT, SELECT, UPDATE ON iam.session TO ${app};

CREATE TABLE iam.sign_in_link (
    code_hash bytea NOT NULL,
    person_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    CONSTRAINT sign_in_link_pkey PRIMARY KEY (code_hash),
    CONSTRAINT sign_in_link_person_id_fkey FOREIGN KEY (person_id) REFERENCES iam.person(id)
);
GRANT INSERT, SELECT, UPDATE ON iam.sign_in_link TO ${app};

CREATE TABLE secrets.delivery (
    id uuid NOT NULL,
    secret_id uuid NOT NULL,
    org_id uuid,
    version integer NOT NULL,
    purpose text NOT NULL,
    recipient_kind text NOT NULL,
    recipient_id text NOT NULL,
    correlation_id uuid NOT NULL,
    delivered_at timestamp with time zone NOT NULL,
    CONSTRAINT delivery_pkey PRIMARY KEY (id),
    CONSTRAINT delivery_secret_id_fkey FOREIGN KEY (secret_id) REFERENCES secrets.secret(id)
);
ALTER TABLE secrets.delivery ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX delivery_by_secret ON secrets.delivery USING btree (secret_id, id);
CREATE POLICY tenant ON secrets.delivery FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON secrets.delivery FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
GRANT INSERT, SELECT ON secrets.delivery TO ${app};
GRANT SELECT ON secrets.delivery TO ${reader};

CREATE TABLE secrets.secret (
    id uuid NOT NULL,
    org_id uuid,
    project_id uuid,
    name text NOT NULL,
    name_key text NOT NULL,
    material text NOT NULL,
    purpose text NOT NULL,
    owner_kind text NOT NULL,
    owner_id text NOT NULL,
    current_version integer NOT NULL,
    state text NOT NULL,
    state_since timestamp with time zone NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT secret_pkey PRIMARY KEY (id),
    CONSTRAINT secret_org_id_fkey FOREIGN KEY (org_id) REFERENCES iam.organization(id),
    CONSTRAINT secret_project_id_fkey FOREIGN KEY (project_id) REFERENCES iam.project(id),
    CONSTRAINT secret_current_version_check CHECK ((current_version >= 1)),
    CONSTRAINT secret_material_check CHECK ((material = ANY (ARRAY['value'::text, 'signing_key'::text]))),
    CONSTRAINT secret_of_project_or_platform CHECK (((org_id IS NULL) = (project_id IS NULL))),
    CONSTRAINT secret_state_check CHECK ((state = ANY (ARRAY['active'::text, 'retired'::text])))
);
ALTER TABLE secrets.secret ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX secret_by_project ON secrets.secret USING btree (COALESCE(project_id, '00000000-0000-0000-0000-000000000000'::uuid), id);
CREATE POLICY tenant ON secrets.secret FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
CREATE UNIQUE INDEX secret_name_once ON secrets.secret USING btree (COALESCE(project_id, '00000000-0000-0000-0000-000000000000'::uuid), name_key) WHERE (state <> 'retired'::text);
GRANT INSERT, SELECT, UPDATE (current_version, state, state_since, generation, updated_at) ON secrets.secret TO ${app};
GRANT SELECT ON secrets.secret TO ${reader};

CREATE TABLE secrets.secret_version (
    secret_id uuid NOT NULL,
    version integer NOT NULL,
    org_id uuid,
    sealed bytea,
    wrapped_key bytea,
    key_encryption_id text NOT NULL,
    public_key bytea,
    created_at timestamp with time zone NOT NULL,
    readable_until timestamp with time zone,
    destroyed_at timestamp with time zone,
    CONSTRAINT secret_version_pkey PRIMARY KEY (secret_id, version),
    CONSTRAINT secret_version_secret_id_fkey FOREIGN KEY (secret_id) REFERENCES secrets.secret(id),
    CONSTRAINT secret_version_destroyed_whole CHECK ((((sealed IS NULL) = (destroyed_at IS NOT NULL)) AND ((wrapped_key IS NULL) = (destroyed_at IS NOT NULL)))),
    CONSTRAINT secret_version_version_check CHECK ((version >= 1))
);
ALTER TABLE secrets.secret_version ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX secret_version_by_key ON secrets.secret_version USING btree (key_encryption_id) WHERE (wrapped_key IS NOT NULL);
CREATE INDEX secret_version_ending ON secrets.secret_version USING btree (readable_until) WHERE (wrapped_key IS NOT NULL);
CREATE POLICY tenant ON secrets.secret_version FOR ALL TO ${app} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
GRANT INSERT, SELECT, UPDATE (sealed, wrapped_key, key_encryption_id, readable_until, destroyed_at) ON secrets.secret_version TO ${app};

CREATE TABLE spine.audit_entry (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    org_id uuid,
    project_id uuid,
    actor_kind text NOT NULL,
    actor_id text NOT NULL,
    behalf_kind text,
    behalf_id text,
    credential text,
    action text NOT NULL,
    resource_kind text NOT NULL,
    resource_id text NOT NULL,
    generation bigint NOT NULL,
    before json,
    after json,
    correlation_id uuid NOT NULL,
    causation_id text,
    policy_version bigint NOT NULL,
    CONSTRAINT audit_entry_pkey PRIMARY KEY (xid, id, at)
) PARTITION BY RANGE (at);
ALTER TABLE spine.audit_entry ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX audit_entry_by_org ON ONLY spine.audit_entry USING btree (org_id, xid, id, at);
CREATE INDEX audit_entry_by_time ON ONLY spine.audit_entry USING btree (at, id);
CREATE POLICY sealer ON spine.audit_entry FOR SELECT TO ${sealer} USING (true);
CREATE POLICY tenant ON spine.audit_entry FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON spine.audit_entry FOR EACH ROW EXECUTE FUNCTION spine.refuse_rewrite();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON spine.audit_entry FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();
GRANT INSERT (id, at, org_id, project_id, actor_kind, actor_id, behalf_kind, behalf_id, credential, action, resource_kind, resource_id, generation, before, after, correlation_id, causation_id, policy_version), SELECT ON spine.audit_entry TO ${app};
GRANT SELECT ON spine.audit_entry TO ${reader};
GRANT SELECT ON spine.audit_entry TO ${sealer};

CREATE TABLE spine.consumer (
    name text NOT NULL,
    position bigint NOT NULL DEFAULT 0,
    position_at timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
    lease_token bigint NOT NULL DEFAULT 0,
    lease_until timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
    attempts integer NOT NULL DEFAULT 0,
    updated_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT consumer_pkey PRIMARY KEY (name)
);
GRANT INSERT, SELECT, UPDATE ON spine.consumer TO ${app};
GRANT INSERT, SELECT, UPDATE ON spine.consumer TO ${relay};

CREATE TABLE spine.flow (
    id uuid NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    org_id uuid,
    state text NOT NULL,
    data json NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    wake_at timestamp with time zone NOT NULL,
    woken boolean NOT NULL DEFAULT false,
    entered_at timestamp with time zone NOT NULL,
    deadline_at timestamp with time zone,
    waiting_for text,
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    lease_token bigint NOT NULL DEFAULT 0,
    lease_until timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
    correlation_id uuid NOT NULL,
    causation_id text,
    traceparent text,
    done_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT flow_pkey PRIMARY KEY (id)
);
ALTER TABLE spine.flow ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX flow_done ON spine.flow USING btree (done_at) WHERE (done_at IS NOT NULL);
CREATE INDEX flow_due ON spine.flow USING btree (kind, wake_at) WHERE (done_at IS NULL);
CREATE POLICY tenant ON spine.flow FOR ALL TO ${app} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
CREATE UNIQUE INDEX flow_one_live_per_key ON spine.flow USING btree (kind, key) WHERE (done_at IS NULL);
GRANT DELETE, INSERT, SELECT, UPDATE ON spine.flow TO ${app};

CREATE TABLE spine.idempotency (
    actor text NOT NULL,
    operation text NOT NULL,
    key_hash bytea NOT NULL,
    at timestamp with time zone NOT NULL,
    body_hash bytea NOT NULL,
    result json NOT NULL,
    CONSTRAINT idempotency_pkey PRIMARY KEY (key_hash, operation, actor, at)
) PARTITION BY RANGE (at);
GRANT INSERT, SELECT ON spine.idempotency TO ${app};

CREATE TABLE spine.log (
    position bigint NOT NULL,
    sequenced_at timestamp with time zone NOT NULL,
    epoch integer NOT NULL,
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    org_id uuid,
    project_id uuid,
    type text NOT NULL,
    subject text NOT NULL,
    generation bigint NOT NULL,
    data json NOT NULL,
    correlation_id uuid NOT NULL,
    causation_id text,
    traceparent text,
    CONSTRAINT log_pkey PRIMARY KEY ("position", sequenced_at)
) PARTITION BY RANGE (sequenced_at);
ALTER TABLE spine.log ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE INDEX log_by_org ON ONLY spine.log USING btree (org_id, "position");
CREATE POLICY relay ON spine.log FOR ALL TO ${relay} USING (true);
CREATE POLICY tenant ON spine.log FOR SELECT TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
GRANT INSERT, SELECT ON spine.log TO ${relay};
GRANT SELECT ON spine.log TO ${app};
GRANT SELECT ON spine.log TO ${reader};

CREATE TABLE spine.outbox (
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    org_id uuid,
    project_id uuid,
    type text NOT NULL,
    subject text NOT NULL,
    generation bigint NOT NULL,
    data json NOT NULL,
    correlation_id uuid NOT NULL,
    causation_id text,
    traceparent text,
    CONSTRAINT outbox_pkey PRIMARY KEY (xid, id, at)
) PARTITION BY RANGE (at);
ALTER TABLE spine.outbox ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY relay ON spine.outbox FOR ALL TO ${relay} USING (true);
CREATE POLICY tenant ON spine.outbox FOR ALL TO ${app} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
GRANT DELETE, SELECT ON spine.outbox TO ${relay};
GRANT INSERT (id, at, org_id, project_id, type, subject, generation, data, correlation_id, causation_id, traceparent), SELECT (xid, id, at) ON spine.outbox TO ${app};

CREATE TABLE spine.parked_event (
    consumer text NOT NULL,
    position bigint NOT NULL,
    event_id uuid NOT NULL,
    type text NOT NULL,
    error text NOT NULL,
    attempts integer NOT NULL,
    parked_at timestamp with time zone NOT NULL,
    CONSTRAINT parked_event_pkey PRIMARY KEY (consumer, "position")
);
GRANT DELETE, INSERT, SELECT ON spine.parked_event TO ${app};
GRANT DELETE, INSERT, SELECT ON spine.parked_event TO ${relay};

CREATE TABLE spine.sequencer (
    singleton boolean NOT NULL DEFAULT true,
    epoch integer NOT NULL DEFAULT 1,
    last_position bigint NOT NULL DEFAULT 0,
    last_at timestamp with time zone NOT NULL DEFAULT '-infinity'::timestamp with time zone,
    done_xid xid8 NOT NULL DEFAULT '0'::xid8,
    done_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'::uuid,
    cluster bigint NOT NULL,
    CONSTRAINT sequencer_pkey PRIMARY KEY (singleton),
    CONSTRAINT sequencer_singleton_check CHECK (singleton)
);
GRANT SELECT ON spine.sequencer TO ${app};
GRANT SELECT ON spine.sequencer TO ${reader};
GRANT SELECT ON spine.sequencer TO ${sealer};
GRANT SELECT, UPDATE ON spine.sequencer TO ${relay};

CREATE TABLE spine.setting (
    org_id uuid,
    scope_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'::uuid,
    key text NOT NULL,
    value json,
    generation bigint NOT NULL DEFAULT 1,
    set_by json NOT NULL,
    set_at timestamp with time zone NOT NULL,
    CONSTRAINT setting_pkey PRIMARY KEY (scope_id, key),
    CONSTRAINT setting_check CHECK (((org_id IS NULL) = (scope_id = '00000000-0000-0000-0000-000000000000'::uuid)))
);
ALTER TABLE spine.setting ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY relay ON spine.setting FOR SELECT TO ${relay} USING (true);
CREATE POLICY sealer ON spine.setting FOR SELECT TO ${sealer} USING (true);
CREATE POLICY tenant ON spine.setting FOR ALL TO ${app}, ${reader} USING (((org_id = ( SELECT (NULLIF(current_setting('gpuaas.org'::text, true), ''::text))::uuid AS "nullif")) OR ( SELECT (current_setting('gpuaas.platform'::text, true) = 'on'::text))));
GRANT INSERT, SELECT, UPDATE ON spine.setting TO ${app};
GRANT SELECT ON spine.setting TO ${reader};
GRANT SELECT ON spine.setting TO ${relay};
GRANT SELECT ON spine.setting TO ${sealer};

CREATE OR REPLACE FUNCTION audit.partition_drop(partition text, from_at timestamp with time zone, to_at timestamp with time zone, compared bigint, last_index bigint, now_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '200ms'
AS $function$
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
END $function$
;
GRANT EXECUTE ON ROUTINE audit.partition_drop TO ${sealer};

CREATE OR REPLACE FUNCTION audit.refuse_shrink()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.size < OLD.size THEN
        RAISE EXCEPTION 'audit.tree only grows: % refused', TG_OP USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $function$
;

CREATE OR REPLACE FUNCTION spine.partition_make(parent text, column_name text, lower_at timestamp with time zone, upper_at timestamp with time zone, suffix text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '200ms'
AS $function$
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
END $function$
;
GRANT EXECUTE ON ROUTINE spine.partition_make TO ${app};

CREATE OR REPLACE FUNCTION spine.partition_prune(parent text, column_name text, before_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '200ms'
AS $function$
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
END $function$
;
GRANT EXECUTE ON ROUTINE spine.partition_prune TO ${app};

CREATE OR REPLACE FUNCTION spine.refuse_rewrite()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    RAISE EXCEPTION '%.% is append-only: % refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $function$
;

CREATE OR REPLACE PROCEDURE spine.wall(IN walled regclass, IN command text, VARIADIC logins name[])
 LANGUAGE plpgsql
AS $procedure$
DECLARE
    who text := (SELECT string_agg(quote_ident(login), ', ') FROM unnest(logins) login);
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', walled);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', walled);
    EXECUTE format($policy$
        CREATE POLICY tenant ON %s FOR %s TO %s USING (
            org_id = (SELECT nullif(current_setting('gpuaas.org', true), '')::uuid)
            OR (SELECT current_setting('gpuaas.platform', true) = 'on'))$policy$, walled, command, who);
END $procedure$
;

