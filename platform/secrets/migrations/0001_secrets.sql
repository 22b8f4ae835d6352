-- Secrets and signing keys: what they are, their sealed versions, and who was given them.
CREATE SCHEMA secrets;
GRANT USAGE ON SCHEMA secrets TO ${app}, ${reader};

-- What anyone may know about a secret. org_id and project_id are empty for the platform's own.
CREATE TABLE secrets.secret (
    id              uuid        PRIMARY KEY,
    org_id          uuid        REFERENCES iam.organization (id),
    project_id      uuid        REFERENCES iam.project (id),
    name            text        NOT NULL,
    -- What makes two names the same: lower case of the normalised name.
    name_key        text        NOT NULL COLLATE "C",
    material        text        NOT NULL COLLATE "C" CHECK (material IN ('value', 'signing_key')),
    purpose         text        NOT NULL COLLATE "C",
    owner_kind      text        NOT NULL COLLATE "C",
    owner_id        text        NOT NULL COLLATE "C",
    current_version integer     NOT NULL CHECK (current_version >= 1),
    state           text        NOT NULL COLLATE "C" CHECK (state IN ('active', 'retired')),
    state_since     timestamptz NOT NULL,
    generation      bigint      NOT NULL DEFAULT 1,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT secret_of_project_or_platform CHECK ((org_id IS NULL) = (project_id IS NULL))
);
-- The platform's own secrets have no project: the nil id stands for it, because no index serves IS NOT DISTINCT FROM.
CREATE UNIQUE INDEX secret_name_once ON secrets.secret (coalesce(project_id, '00000000-0000-0000-0000-000000000000'), name_key) WHERE state <> 'retired';
CREATE INDEX secret_by_project ON secrets.secret (coalesce(project_id, '00000000-0000-0000-0000-000000000000'), id);

-- One value each: sealed with a data key of its own, which is wrapped with the key encryption key named beside it.
-- What ends is destroyed: the bytes go, the row and a signing key's public half stay.
CREATE TABLE secrets.secret_version (
    secret_id         uuid        NOT NULL REFERENCES secrets.secret (id),
    version           integer     NOT NULL CHECK (version >= 1),
    org_id            uuid,
    sealed            bytea,
    wrapped_key       bytea,
    key_encryption_id text        NOT NULL COLLATE "C",
    public_key        bytea,
    created_at        timestamptz NOT NULL,
    -- Set when a newer version takes over: until then this one can still be delivered.
    readable_until    timestamptz,
    destroyed_at      timestamptz,
    PRIMARY KEY (secret_id, version),
    CONSTRAINT secret_version_destroyed_whole
        CHECK ((sealed IS NULL) = (destroyed_at IS NOT NULL) AND (wrapped_key IS NULL) = (destroyed_at IS NOT NULL))
);
CREATE INDEX secret_version_by_key ON secrets.secret_version (key_encryption_id) WHERE wrapped_key IS NOT NULL;

CREATE INDEX secret_version_ending ON secrets.secret_version (readable_until) WHERE wrapped_key IS NOT NULL;

-- Who was given which version, for what. Written before the value leaves; never changed.
CREATE TABLE secrets.delivery (
    id              uuid        PRIMARY KEY,
    secret_id       uuid        NOT NULL REFERENCES secrets.secret (id),
    org_id          uuid,
    version         integer     NOT NULL,
    purpose         text        NOT NULL COLLATE "C",
    recipient_kind  text        NOT NULL COLLATE "C",
    recipient_id    text        NOT NULL COLLATE "C",
    correlation_id  uuid        NOT NULL,
    delivered_at    timestamptz NOT NULL
);
CREATE INDEX delivery_by_secret ON secrets.delivery (secret_id, id);

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON secrets.delivery
    FOR EACH STATEMENT EXECUTE FUNCTION spine.refuse_rewrite();

CALL spine.wall('secrets.secret', 'ALL', '${app}', '${reader}');
CALL spine.wall('secrets.secret_version', 'ALL', '${app}');
CALL spine.wall('secrets.delivery', 'ALL', '${app}', '${reader}');

-- Identity, purpose and place of a secret cannot be updated: they are bound into its ciphertexts.
GRANT SELECT, INSERT ON secrets.secret, secrets.secret_version, secrets.delivery TO ${app};
GRANT UPDATE (current_version, state, state_since, generation, updated_at) ON secrets.secret TO ${app};
GRANT UPDATE (sealed, wrapped_key, key_encryption_id, readable_until, destroyed_at) ON secrets.secret_version TO ${app};
GRANT SELECT ON secrets.secret, secrets.delivery TO ${reader};
