-- Organizations, projects, and the credentials of the embedded default.
CREATE SCHEMA iam;
GRANT USAGE ON SCHEMA iam TO ${app}, ${reader};

CREATE TABLE iam.organization (
    id          uuid        PRIMARY KEY,
    org_id      uuid        NOT NULL GENERATED ALWAYS AS (id) STORED,
    name        text        NOT NULL,
    -- What makes two names the same: lower case of the normalised name.
    name_key    text        NOT NULL COLLATE "C",
    labels      jsonb       NOT NULL DEFAULT '{}',
    state       text        NOT NULL COLLATE "C" CHECK (state IN ('active', 'archiving', 'archived')),
    state_since timestamptz NOT NULL,
    generation  bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);
CREATE UNIQUE INDEX organization_name_once ON iam.organization (name_key) WHERE state <> 'archived';

CREATE TABLE iam.project (
    id          uuid        PRIMARY KEY,
    org_id      uuid        NOT NULL REFERENCES iam.organization (id),
    name        text        NOT NULL,
    name_key    text        NOT NULL COLLATE "C",
    labels      jsonb       NOT NULL DEFAULT '{}',
    state       text        NOT NULL COLLATE "C" CHECK (state IN ('active', 'archived')),
    state_since timestamptz NOT NULL,
    generation  bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);
CREATE UNIQUE INDEX project_name_once ON iam.project (org_id, name_key) WHERE state <> 'archived';
CREATE INDEX project_by_org ON iam.project (org_id, id);

-- The platform's own operators on the embedded default. People of tenants come with the identity provider.
CREATE TABLE iam.operator (
    id          uuid        PRIMARY KEY,
    name        text        NOT NULL,
    generation  bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL
);

-- Only hashes are kept; the key itself is shown once. org_id is empty for keys of the platform's operator.
CREATE TABLE iam.api_key (
    id          uuid        PRIMARY KEY,
    org_id      uuid        REFERENCES iam.organization (id),
    name        text        NOT NULL,
    role        text        NOT NULL COLLATE "C",
    key_hash    bytea       NOT NULL UNIQUE,
    generation  bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    revoked_at  timestamptz
);

CREATE TABLE iam.sign_in_link (
    code_hash   bytea       PRIMARY KEY,
    operator_id uuid        NOT NULL REFERENCES iam.operator (id),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    used_at     timestamptz
);

CREATE TABLE iam.session (
    id          uuid        PRIMARY KEY,
    operator_id uuid        NOT NULL REFERENCES iam.operator (id),
    token_hash  bytea       NOT NULL UNIQUE,
    generation  bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    revoked_at  timestamptz
);

-- How many projects each organization has, for lists: derived from events. What it is as of is the projection's place
-- in the log, not a column: a rebuild must give the same rows.
CREATE TABLE iam.organization_summary (
    org_id            uuid        PRIMARY KEY,
    projects_active   bigint      NOT NULL,
    projects_archived bigint      NOT NULL
);

CALL spine.wall('iam.organization', 'ALL', '${app}', '${reader}');
CALL spine.wall('iam.project', 'ALL', '${app}', '${reader}');
CALL spine.wall('iam.api_key', 'ALL', '${app}', '${reader}');
CALL spine.wall('iam.organization_summary', 'ALL', '${app}', '${reader}');

GRANT SELECT, INSERT, UPDATE ON iam.organization, iam.project, iam.api_key, iam.operator, iam.sign_in_link, iam.session TO ${app};
GRANT SELECT, INSERT, UPDATE, DELETE ON iam.organization_summary TO ${app};
GRANT SELECT ON iam.organization, iam.project, iam.organization_summary TO ${reader};
