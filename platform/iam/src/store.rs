//! All SQL of the identity domain, beside the mapping of its rows.

use db::Row;
use serde_json::Value;
use types::{Error, Name, Result, Timestamp};

use crate::model::{Organization, OrganizationId, OrganizationState, Project, ProjectId, ProjectState};

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

pub const KEY_INSERT: &str = "
INSERT INTO iam.api_key (id, org_id, name, role, key_hash, created_at) VALUES ($1, $2, $3, $4, $5, $6)";

pub const KEY_FIND: &str = "
SELECT id, org_id, role FROM iam.api_key
WHERE key_hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)";

pub const OPERATOR_FIRST: &str = "SELECT id FROM iam.operator ORDER BY id LIMIT 1";
pub const OPERATOR_INSERT: &str = "INSERT INTO iam.operator (id, name, created_at) VALUES ($1, $2, $3)";

pub const SIGN_IN_LINK_INSERT: &str = "
INSERT INTO iam.sign_in_link (code_hash, operator_id, created_at, expires_at) VALUES ($1, $2, $3, $4)";

/// Who a code would sign in, used or not: a retry of the request that used it is told so. Using it is
/// [`SIGN_IN_LINK_USE`].
pub const SIGN_IN_LINK_FIND: &str = "SELECT operator_id FROM iam.sign_in_link WHERE code_hash = $1";

/// The row lock lets one of two racing sign-ins through; the other finds the code used.
pub const SIGN_IN_LINK_USE: &str = "
UPDATE iam.sign_in_link SET used_at = $2 WHERE code_hash = $1 AND used_at IS NULL AND expires_at > $2 RETURNING operator_id";

pub const SESSION_INSERT: &str = "
INSERT INTO iam.session (id, operator_id, token_hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";

/// Also one that is over, and whether it is.
pub const SESSION_FIND: &str = "
SELECT operator_id, expires_at, revoked_at IS NULL AND expires_at > $2 FROM iam.session WHERE token_hash = $1";

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
