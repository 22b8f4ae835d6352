//! All SQL of the identity domain, beside the mapping of its rows.

use db::Row;
use serde_json::Value;
use types::{Error, Name, Result, Timestamp};
use uuid::Uuid;

use crate::model::*;

pub const ORGANIZATION_INSERT: &str = "
INSERT INTO iam.organization (id, name, name_key, labels, state, state_since, created_at, updated_at)
VALUES ($1, $2, $3, $4, 'active', $5, $5, $5)";

pub const ORGANIZATION_GET: &str = "
SELECT id, name, labels, state, state_since, generation, created_at, updated_at FROM iam.organization WHERE id = $1";

pub const ORGANIZATION_LOCK: &str = "
SELECT id, name, labels, state, state_since, generation, created_at, updated_at FROM iam.organization WHERE id = $1 FOR UPDATE";

/// Newest first would move pages under a reader; creation order does not. Bounds that are always there, so that one plan
/// fits every page and finds a tenant's one organization (`$5`) without reading the others.
pub const ORGANIZATION_LIST: &str = "
SELECT id, name, labels, state, state_since, generation, created_at, updated_at FROM iam.organization
WHERE id > coalesce($1::uuid, '00000000-0000-0000-0000-000000000000') AND ($2::text IS NULL OR state = $2) AND ($3::text IS NULL OR name_key = $3)
    AND id BETWEEN coalesce($5::uuid, '00000000-0000-0000-0000-000000000000') AND coalesce($5::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
ORDER BY id LIMIT $4";

/// Several organizations of one person, read for the platform: only these.
pub const ORGANIZATION_LIST_OWN: &str = "
SELECT id, name, labels, state, state_since, generation, created_at, updated_at FROM iam.organization
WHERE id > coalesce($1::uuid, '00000000-0000-0000-0000-000000000000') AND ($2::text IS NULL OR state = $2) AND ($3::text IS NULL OR name_key = $3)
    AND id = ANY($5)
ORDER BY id LIMIT $4";

/// Also an archived one: what somebody ended on purpose is not made again.
pub const ORGANIZATION_BY_NAME: &str = "
SELECT id FROM iam.organization WHERE name_key = $1 ORDER BY state = 'archived', id LIMIT 1";

pub const ORGANIZATION_RENAME: &str = "
UPDATE iam.organization SET name = $2, name_key = $3, generation = generation + 1, updated_at = $4 WHERE id = $1";

pub const ORGANIZATION_SET_STATE: &str = "
UPDATE iam.organization SET state = $2, state_since = $3, generation = $4, updated_at = $3 WHERE id = $1";

pub const PROJECT_INSERT: &str = "
INSERT INTO iam.project (id, org_id, name, name_key, labels, state, state_since, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, 'active', $6, $6, $6)";

pub const PROJECT_GET: &str = "
SELECT id, org_id, name, labels, state, state_since, generation, created_at, updated_at FROM iam.project WHERE id = $1";

pub const PROJECT_LOCK: &str = "
SELECT id, org_id, name, labels, state, state_since, generation, created_at, updated_at FROM iam.project WHERE id = $1 FOR UPDATE";

pub const PROJECT_LIST: &str = "
SELECT id, org_id, name, labels, state, state_since, generation, created_at, updated_at FROM iam.project
WHERE org_id = $1 AND id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000') AND ($3::text IS NULL OR state = $3) AND ($4::text IS NULL OR name_key = $4)
ORDER BY id LIMIT $5";

pub const PROJECT_BY_NAME: &str = "
SELECT id FROM iam.project WHERE org_id = $1 AND name_key = $2 ORDER BY state = 'archived', id LIMIT 1";

pub const PROJECT_ORGANIZATION: &str = "SELECT org_id FROM iam.project WHERE id = $1";

pub const PROJECT_NEXT_ACTIVE: &str = "
SELECT id, org_id, name, labels, state, state_since, generation, created_at, updated_at FROM iam.project
WHERE org_id = $1 AND state = 'active' ORDER BY id LIMIT 100";

pub const PROJECT_RENAME: &str = "
UPDATE iam.project SET name = $2, name_key = $3, generation = generation + 1, updated_at = $4 WHERE id = $1";

pub const PROJECT_ARCHIVE: &str = "
UPDATE iam.project SET state = 'archived', state_since = $2, generation = generation + 1, updated_at = $2 WHERE id = $1";

/// Shared lock: an organization cannot begin to archive while a project is being added to it.
pub const ORGANIZATION_STATE_FOR_SHARE: &str = "SELECT state FROM iam.organization WHERE id = $1 FOR SHARE";

/// Shared lock: a project cannot be archived while something is being added to it.
pub const PROJECT_STATE_FOR_SHARE: &str = "SELECT state FROM iam.project WHERE id = $1 FOR SHARE";

pub const PERSON_INSERT: &str = "
INSERT INTO iam.person (id, name, email, state, state_since, created_at, updated_at) VALUES ($1, $2, $3, 'active', $4, $4, $4)";

pub const PERSON_GET: &str = "
SELECT id, name, email, state, state_since, generation, created_at, updated_at FROM iam.person WHERE id = $1";

pub const PERSON_LIST: &str = "
SELECT id, name, email, state, state_since, generation, created_at, updated_at FROM iam.person
WHERE id > coalesce($1::uuid, '00000000-0000-0000-0000-000000000000') ORDER BY id LIMIT $2";

/// Everybody who holds something in the organization now.
pub const MEMBER_LIST: &str = "
SELECT id, name, email, state, state_since, generation, created_at, updated_at FROM iam.person
WHERE id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000') AND state = 'active' AND EXISTS (
    SELECT FROM iam.role_grant g WHERE g.person_id = person.id AND g.org_id = $1 AND g.ended_at IS NULL
        AND (g.expires_at IS NULL OR g.expires_at > $3))
ORDER BY id LIMIT $4";

/// In the scope of an organization: does the person belong to it?
pub const MEMBER_FIND: &str = "
SELECT FROM iam.role_grant g JOIN iam.person p ON p.id = g.person_id AND p.state = 'active'
WHERE g.org_id = $1 AND g.person_id = $2 AND g.ended_at IS NULL AND (g.expires_at IS NULL OR g.expires_at > $3) LIMIT 1";

/// The first to have the role on the platform, made by bootstrap.
pub const OPERATOR_FIRST: &str = "
SELECT person_id FROM iam.role_grant WHERE org_id IS NULL AND role = 'platform.operator' AND ended_at IS NULL ORDER BY id LIMIT 1";

pub const GRANT_INSERT: &str = "
INSERT INTO iam.role_grant (id, org_id, project_id, person_id, role, created_at, created_by, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// One that has expired makes room for a new one.
pub const GRANT_END_EXPIRED: &str = "
UPDATE iam.role_grant SET ended_at = expires_at, generation = generation + 1
WHERE person_id = $1 AND org_id IS NOT DISTINCT FROM $2 AND project_id IS NOT DISTINCT FROM $3 AND role = $4
    AND ended_at IS NULL AND expires_at <= $5";

pub const GRANT_GET: &str = "
SELECT id, person_id, role, org_id, project_id, generation, created_at, created_by, expires_at, ended_at
FROM iam.role_grant WHERE id = $1";

pub const GRANT_LOCK: &str = "
SELECT id, person_id, role, org_id, project_id, generation, created_at, created_by, expires_at, ended_at
FROM iam.role_grant WHERE id = $1 FOR UPDATE";

/// Those in force, of one place and what lies in it.
pub const GRANT_LIST: &str = "
SELECT id, person_id, role, org_id, project_id, generation, created_at, created_by, expires_at, ended_at
FROM iam.role_grant
WHERE org_id IS NOT DISTINCT FROM $1 AND ($2::uuid IS NULL OR project_id = $2) AND ($3::uuid IS NULL OR person_id = $3)
    AND ($4::text IS NULL OR role = $4) AND id > coalesce($5::uuid, '00000000-0000-0000-0000-000000000000')
    AND ended_at IS NULL AND (expires_at IS NULL OR expires_at > $6)
ORDER BY id LIMIT $7";

/// Locks all who hold a role that somebody must hold, in one order: two who end each other's wait for one another.
pub const GRANT_HOLDERS_LOCK: &str = "
SELECT id FROM iam.role_grant WHERE org_id IS NOT DISTINCT FROM $1 AND role = $2 AND ended_at IS NULL ORDER BY id FOR UPDATE";

pub const GRANT_END: &str = "
UPDATE iam.role_grant SET ended_at = $2, generation = generation + 1 WHERE id = $1";

pub const INVITATION_INSERT: &str = "
INSERT INTO iam.invitation (id, org_id, project_id, role, code_hash, created_at, created_by, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

pub const INVITATION_LIST: &str = "
SELECT id, org_id, project_id, role, generation, created_at, created_by, expires_at, accepted_at, accepted_by, withdrawn_at
FROM iam.invitation WHERE org_id = $1 AND id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000') ORDER BY id LIMIT $3";

pub const INVITATION_LOCK: &str = "
SELECT id, org_id, project_id, role, generation, created_at, created_by, expires_at, accepted_at, accepted_by, withdrawn_at
FROM iam.invitation WHERE id = $1 AND org_id = $2 FOR UPDATE";

pub const INVITATION_WITHDRAW: &str = "
UPDATE iam.invitation SET withdrawn_at = $2, generation = generation + 1 WHERE id = $1";

/// The row lock lets one of two who accept at once through; the other finds the invitation used.
pub const INVITATION_ACCEPT: &str = "
UPDATE iam.invitation SET accepted_at = $2, accepted_by = $3, generation = generation + 1
WHERE code_hash = $1 AND accepted_at IS NULL AND withdrawn_at IS NULL AND expires_at > $2
RETURNING id, org_id, project_id, role, generation, created_at, created_by, expires_at, accepted_at, accepted_by, withdrawn_at";

pub const KEY_INSERT: &str = "
INSERT INTO iam.api_key (id, person_id, org_id, project_id, actions, name, key_hash, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

pub const KEY_LIST: &str = "
SELECT id, name, person_id, org_id, project_id, actions, generation, created_at, expires_at, revoked_at
FROM iam.api_key
WHERE person_id = $1 AND id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
    AND ($4::uuid IS NULL OR org_id = $4) AND ($5::uuid IS NULL OR project_id = $5)
ORDER BY id LIMIT $3";

pub const KEY_LOCK: &str = "
SELECT id, name, person_id, org_id, project_id, actions, generation, created_at, expires_at, revoked_at
FROM iam.api_key
WHERE id = $1 AND person_id = $2 AND ($3::uuid IS NULL OR org_id = $3) AND ($4::uuid IS NULL OR project_id = $4) FOR UPDATE";

pub const KEY_REVOKE: &str = "
UPDATE iam.api_key SET revoked_at = $2, generation = generation + 1 WHERE id = $1";

/// A key that opens the door, with what its owner holds: a row per grant, or one without.
pub const KEY_FIND: &str = "
SELECT k.person_id, k.id, k.expires_at, k.org_id, k.project_id, k.actions, g.role, g.org_id, g.project_id, g.expires_at
FROM iam.api_key k JOIN iam.person p ON p.id = k.person_id AND p.state = 'active'
LEFT JOIN iam.role_grant g ON g.person_id = p.id AND g.ended_at IS NULL AND (g.expires_at IS NULL OR g.expires_at > $2)
WHERE k.key_hash = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $2)";

pub const SIGN_IN_LINK_INSERT: &str = "
INSERT INTO iam.sign_in_link (code_hash, person_id, created_at, expires_at) VALUES ($1, $2, $3, $4)";

/// Who a code would sign in, used or not: a retry of the request that used it is told so. Using it is
/// [`SIGN_IN_LINK_USE`].
pub const SIGN_IN_LINK_FIND: &str = "
SELECT l.person_id FROM iam.sign_in_link l JOIN iam.person p ON p.id = l.person_id AND p.state = 'active' WHERE code_hash = $1";

/// The row lock lets one of two racing sign-ins through; the other finds the code used.
pub const SIGN_IN_LINK_USE: &str = "
UPDATE iam.sign_in_link SET used_at = $2 WHERE code_hash = $1 AND used_at IS NULL AND expires_at > $2 RETURNING person_id";

pub const SESSION_INSERT: &str = "
INSERT INTO iam.session (id, person_id, token_hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";

/// A session in force, with what its owner holds: a row per grant, or one without.
pub const SESSION_FIND: &str = "
SELECT s.person_id, s.id, s.expires_at, NULL::uuid, NULL::uuid, NULL::text[], g.role, g.org_id, g.project_id, g.expires_at
FROM iam.session s JOIN iam.person p ON p.id = s.person_id AND p.state = 'active'
LEFT JOIN iam.role_grant g ON g.person_id = p.id AND g.ended_at IS NULL AND (g.expires_at IS NULL OR g.expires_at > $2)
WHERE s.token_hash = $1 AND s.revoked_at IS NULL AND s.expires_at > $2";

/// Was it ever one?
pub const SESSION_KNOWN: &str = "SELECT id FROM iam.session WHERE token_hash = $1";

pub const SUMMARY_UPSERT: &str = "
INSERT INTO iam.organization_summary (org_id, projects_active, projects_archived)
SELECT $1, count(*) FILTER (WHERE state = 'active'), count(*) FILTER (WHERE state = 'archived')
FROM iam.project WHERE org_id = $1
ON CONFLICT (org_id) DO UPDATE SET projects_active = excluded.projects_active,
    projects_archived = excluded.projects_archived";

pub const SUMMARY_CLEAR: &str = "DELETE FROM iam.organization_summary";

pub const SUMMARY_FILL: &str = "
INSERT INTO iam.organization_summary (org_id, projects_active, projects_archived)
SELECT o.id, count(p.id) FILTER (WHERE p.state = 'active'), count(p.id) FILTER (WHERE p.state = 'archived')
FROM iam.organization o LEFT JOIN iam.project p ON p.org_id = o.id GROUP BY o.id";

pub const SUMMARY_GET: &str = "
SELECT projects_active, projects_archived FROM iam.organization_summary WHERE org_id = $1";

pub fn organization(row: &Row) -> Result<Organization> {
    Ok(Organization {
        id: OrganizationId::from_uuid(row.get(0)),
        name: stored_name(row.get(1))?,
        labels: labels(row.get(2)),
        state: match row.get(3) {
            "active" => OrganizationState::Active,
            "archiving" => OrganizationState::Archiving,
            _ => OrganizationState::Archived,
        },
        state_since: row.get::<_, Timestamp>(4),
        generation: row.get(5),
        created_at: row.get(6),
        updated_at: row.get(7),
    })
}

pub fn person(row: &Row) -> Result<Person> {
    Ok(Person {
        id: PersonId::from_uuid(row.get(0)),
        name: stored_name(row.get(1))?,
        email: row.get(2),
        state: if row.get::<_, &str>(3) == "active" { PersonState::Active } else { PersonState::Archived },
        state_since: row.get(4),
        generation: row.get(5),
        created_at: row.get(6),
        updated_at: row.get(7),
    })
}

pub fn grant(row: &Row) -> Grant {
    Grant {
        id: GrantId::from_uuid(row.get(0)),
        person_id: PersonId::from_uuid(row.get(1)),
        role: row.get(2),
        org_id: row.get::<_, Option<Uuid>>(3).map(OrganizationId::from_uuid),
        project_id: row.get::<_, Option<Uuid>>(4).map(ProjectId::from_uuid),
        generation: row.get(5),
        created_at: row.get(6),
        created_by: row.get(7),
        expires_at: row.get(8),
        ended_at: row.get(9),
    }
}

pub fn invitation(row: &Row) -> Invitation {
    Invitation {
        id: InvitationId::from_uuid(row.get(0)),
        org_id: OrganizationId::from_uuid(row.get(1)),
        project_id: row.get::<_, Option<Uuid>>(2).map(ProjectId::from_uuid),
        role: row.get(3),
        generation: row.get(4),
        created_at: row.get(5),
        created_by: row.get(6),
        expires_at: row.get(7),
        accepted_at: row.get(8),
        accepted_by: row.get::<_, Option<Uuid>>(9).map(PersonId::from_uuid),
        withdrawn_at: row.get(10),
    }
}

pub fn api_key(row: &Row) -> Result<ApiKey> {
    Ok(ApiKey {
        id: KeyId::from_uuid(row.get(0)),
        name: stored_name(row.get(1))?,
        person_id: PersonId::from_uuid(row.get(2)),
        org_id: row.get::<_, Option<Uuid>>(3).map(OrganizationId::from_uuid),
        project_id: row.get::<_, Option<Uuid>>(4).map(ProjectId::from_uuid),
        actions: row.get(5),
        generation: row.get(6),
        created_at: row.get(7),
        expires_at: row.get(8),
        revoked_at: row.get(9),
    })
}

pub fn project(row: &Row) -> Result<Project> {
    Ok(Project {
        id: ProjectId::from_uuid(row.get(0)),
        org_id: OrganizationId::from_uuid(row.get(1)),
        name: stored_name(row.get(2))?,
        labels: labels(row.get(3)),
        state: if row.get::<_, &str>(4) == "active" { ProjectState::Active } else { ProjectState::Archived },
        state_since: row.get(5),
        generation: row.get(6),
        created_at: row.get(7),
        updated_at: row.get(8),
    })
}

fn labels(value: Value) -> crate::model::Labels {
    serde_json::from_value(value).unwrap_or_default()
}

fn stored_name(text: &str) -> Result<Name> {
    Name::parse(text)
        .map_err(|error| Error::from(db::DbError::Unexpected(format!("a stored name is not valid: {error}"))))
}

pub const REVOCATION_INSERT: &str = "INSERT INTO iam.revocation (kind, subject) VALUES ($1, $2)";

/// One statement, so one snapshot: what is not in this answer has an id that is not below the floor in it. Always at
/// least one row. The session is part of the history: a PostgreSQL that crashed gives ids out again that were below the
/// floor, if nothing of them had reached the disk, and every crash ends the session. `$1` is the floor of the last answer; the first question has none and gets a floor only.
pub const REVOCATION_FOLLOW: &str = "
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, clock_timestamp(),
       format('%s/%s/%s/%s', system.system_identifier, checkpoint.timeline_id,
              (SELECT oid FROM pg_database WHERE datname = current_database()),
              (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())),
       revoked.xid::text::bigint, revoked.subject
FROM pg_control_system() system CROSS JOIN pg_control_checkpoint() checkpoint
LEFT JOIN LATERAL (SELECT xid, subject FROM iam.revocation r
                   WHERE r.xid >= $1::bigint::text::xid8 AND r.cluster = system.system_identifier LIMIT $2) revoked ON true";

/// By the database's clock, which also wrote `at`.
pub const REVOCATION_PRUNE: &str = "
WITH gone AS (DELETE FROM iam.revocation WHERE at < clock_timestamp() - $1::bigint * interval '1 second' RETURNING 1)
SELECT count(*) FROM gone";
