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
-- Also what others refer to: a project and its organization, together.
CREATE UNIQUE INDEX project_by_org ON iam.project (org_id, id);

-- Somebody who can sign in. Belongs to no organization; what they hold where is in iam.role_grant. Name and address are
-- here and nowhere else, so that they can be erased: audit entries and events carry the id only.
CREATE TABLE iam.person (
    id          uuid        PRIMARY KEY,
    name        text        NOT NULL,
    email       text,
    state       text        NOT NULL COLLATE "C" CHECK (state IN ('active', 'archived')),
    state_since timestamptz NOT NULL,
    generation  bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);

-- A role that somebody holds: on the platform (no org_id), in an organization, or in one of its projects. Ended, never
-- deleted. That the role fits the place is the database's to see as well.
CREATE TABLE iam.role_grant (
    id          uuid        PRIMARY KEY,
    org_id      uuid        REFERENCES iam.organization (id),
    project_id  uuid,
    person_id   uuid        NOT NULL REFERENCES iam.person (id),
    role        text        NOT NULL COLLATE "C",
    generation  bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL,
    created_by  text        NOT NULL,
    expires_at  timestamptz,
    ended_at    timestamptz,
    FOREIGN KEY (org_id, project_id) REFERENCES iam.project (org_id, id),
    CHECK (project_id IS NULL OR org_id IS NOT NULL),
    CHECK (split_part(role, '.', 1) = CASE WHEN org_id IS NULL THEN 'platform'
        WHEN project_id IS NULL THEN 'organization' ELSE 'project' END)
);
CREATE UNIQUE INDEX role_grant_once ON iam.role_grant (person_id, org_id, project_id, role) NULLS NOT DISTINCT WHERE ended_at IS NULL;
CREATE INDEX role_grant_by_org ON iam.role_grant (org_id, id);

-- Only hashes are kept; the key itself is shown once. A key gives what its owner holds, at most in one organization
-- (org_id) or project, and at most the actions listed.
CREATE TABLE iam.api_key (
    id          uuid        PRIMARY KEY,
    person_id   uuid        NOT NULL REFERENCES iam.person (id),
    org_id      uuid        REFERENCES iam.organization (id),
    project_id  uuid,
    actions     text[],
    name        text        NOT NULL,
    key_hash    bytea       NOT NULL UNIQUE,
    generation  bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    revoked_at  timestamptz,
    FOREIGN KEY (org_id, project_id) REFERENCES iam.project (org_id, id),
    CHECK (project_id IS NULL OR org_id IS NOT NULL)
);
CREATE INDEX api_key_by_person ON iam.api_key (person_id, id);

-- An offer of a role. Only the code's hash is kept; whoever has the code can accept it, once.
CREATE TABLE iam.invitation (
    id           uuid        PRIMARY KEY,
    org_id       uuid        NOT NULL REFERENCES iam.organization (id),
    project_id   uuid,
    role         text        NOT NULL COLLATE "C",
    code_hash    bytea       NOT NULL UNIQUE,
    generation   bigint      NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL,
    created_by   text        NOT NULL,
    expires_at   timestamptz NOT NULL,
    accepted_at  timestamptz,
    accepted_by  uuid        REFERENCES iam.person (id),
    withdrawn_at timestamptz,
    FOREIGN KEY (org_id, project_id) REFERENCES iam.project (org_id, id),
    CHECK (split_part(role, '.', 1) = CASE WHEN project_id IS NULL THEN 'organization' ELSE 'project' END),
    CHECK (accepted_at IS NULL OR withdrawn_at IS NULL)
);
CREATE INDEX invitation_by_org ON iam.invitation (org_id, id);

CREATE TABLE iam.sign_in_link (
    code_hash   bytea       PRIMARY KEY,
    person_id   uuid        NOT NULL REFERENCES iam.person (id),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    used_at     timestamptz
);

CREATE TABLE iam.session (
    id          uuid        PRIMARY KEY,
    person_id   uuid        NOT NULL REFERENCES iam.person (id),
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
CALL spine.wall('iam.role_grant', 'ALL', '${app}', '${reader}');
CALL spine.wall('iam.invitation', 'ALL', '${app}', '${reader}');
CALL spine.wall('iam.api_key', 'ALL', '${app}', '${reader}');
CALL spine.wall('iam.organization_summary', 'ALL', '${app}', '${reader}');

-- An organization sees the people who hold something in it; the platform sees all.
ALTER TABLE iam.person ENABLE ROW LEVEL SECURITY;
ALTER TABLE iam.person FORCE ROW LEVEL SECURITY;
CREATE POLICY platform ON iam.person TO ${app} USING ((SELECT current_setting('gpuaas.platform', true) = 'on'));
CREATE POLICY members ON iam.person FOR SELECT TO ${app} USING (EXISTS (
    SELECT FROM iam.role_grant g WHERE g.person_id = person.id
        AND g.org_id = (SELECT nullif(current_setting('gpuaas.org', true), '')::uuid)));

GRANT SELECT, INSERT, UPDATE ON iam.organization, iam.project, iam.role_grant, iam.invitation, iam.api_key, iam.person, iam.sign_in_link, iam.session TO ${app};
GRANT SELECT, INSERT, UPDATE, DELETE ON iam.organization_summary TO ${app};
GRANT SELECT ON iam.organization, iam.project, iam.organization_summary TO ${reader};
