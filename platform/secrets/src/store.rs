//! All SQL of the secrets domain, beside the mapping of its rows.
//!
//! Every statement about a secret names its project too (empty for the platform's own): row-level security keeps
//! organizations apart, this keeps the projects of one organization apart.

use authz::{ActorKind, CorrelationId, Subject};
use db::Row;
use iam::{OrganizationId, ProjectId};
use serde_json::Value;
use types::{Error, Name, Result, Timestamp};
use uuid::Uuid;

use crate::key_encryption::Wrapped;
use crate::model::{Delivery, DeliveryId, Material, Purpose, SecretId, SecretInfo, SecretState};
use crate::seal::Sealed;

/// The secret and its first version together: one is no use without the other.
pub const SECRET_INSERT: &str = "
WITH made AS (
    INSERT INTO secrets.secret (id, org_id, project_id, name, name_key, material, purpose, owner_kind, owner_id,
        current_version, state, state_since, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, 'active', $10, $10, $10)
)
INSERT INTO secrets.secret_version (secret_id, version, org_id, sealed, wrapped_key, key_encryption_id, public_key, created_at)
VALUES ($1, 1, $2, $11, $12, $13, $14, $10)";

pub const SECRET_GET: &str = "
SELECT id, org_id, project_id, name, material, purpose, owner_kind, owner_id, current_version, state, state_since,
    generation, created_at, updated_at
FROM secrets.secret WHERE id = $1 AND project_id IS NOT DISTINCT FROM $2";

pub const SECRET_LOCK: &str = "
SELECT id, org_id, project_id, name, material, purpose, owner_kind, owner_id, current_version, state, state_since,
    generation, created_at, updated_at
FROM secrets.secret WHERE id = $1 AND project_id IS NOT DISTINCT FROM $2 FOR UPDATE";

/// Shared: deliveries do not wait for each other, but none passes a retirement or rotation in progress.
pub const SECRET_LOCK_SHARED: &str = "
SELECT id, org_id, project_id, name, material, purpose, owner_kind, owner_id, current_version, state, state_since,
    generation, created_at, updated_at
FROM secrets.secret WHERE id = $1 AND project_id IS NOT DISTINCT FROM $2 FOR SHARE";

pub const SECRET_BY_NAME: &str = "
SELECT id, org_id, project_id, name, material, purpose, owner_kind, owner_id, current_version, state, state_since,
    generation, created_at, updated_at
FROM secrets.secret
WHERE coalesce(project_id, '00000000-0000-0000-0000-000000000000') = coalesce($1::uuid, '00000000-0000-0000-0000-000000000000')
    AND name_key = $2 AND state <> 'retired'";

pub const SECRET_LIST: &str = "
SELECT id, org_id, project_id, name, material, purpose, owner_kind, owner_id, current_version, state, state_since,
    generation, created_at, updated_at
FROM secrets.secret
WHERE coalesce(project_id, '00000000-0000-0000-0000-000000000000') = coalesce($1::uuid, '00000000-0000-0000-0000-000000000000')
    AND id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000') AND ($3::text IS NULL OR state = $3)
    AND ($4::text IS NULL OR name_key = $4) AND ($5::text IS NULL OR purpose = $5)
ORDER BY id LIMIT $6";

/// The new version, the overlap of the one it replaces, and the end of those whose overlap is over.
pub const SECRET_ROTATE: &str = "
WITH moved AS (
    UPDATE secrets.secret SET current_version = $2, generation = generation + 1, updated_at = $3 WHERE id = $1
), older AS (
    UPDATE secrets.secret_version SET
        readable_until = coalesce(readable_until, $4),
        sealed = CASE WHEN coalesce(readable_until, $4) > $3 THEN sealed END,
        wrapped_key = CASE WHEN coalesce(readable_until, $4) > $3 THEN wrapped_key END,
        destroyed_at = CASE WHEN coalesce(readable_until, $4) <= $3 THEN $3 END
    WHERE secret_id = $1 AND version < $2 AND destroyed_at IS NULL
)
INSERT INTO secrets.secret_version (secret_id, version, org_id, sealed, wrapped_key, key_encryption_id, public_key, created_at)
VALUES ($1, $2, $5, $6, $7, $8, $9, $3)";

pub const SECRET_RETIRE: &str = "
WITH ended AS (
    UPDATE secrets.secret SET state = 'retired', state_since = $2, generation = generation + 1, updated_at = $2 WHERE id = $1
)
UPDATE secrets.secret_version
SET sealed = NULL, wrapped_key = NULL, destroyed_at = $2, readable_until = least(readable_until, $2)
WHERE secret_id = $1 AND destroyed_at IS NULL";

pub const VERSION_GET: &str = "
SELECT version, sealed, wrapped_key, key_encryption_id, readable_until, public_key
FROM secrets.secret_version WHERE secret_id = $1 AND version = $2";

pub const VERSION_READABLE_UNTIL: &str =
    "SELECT readable_until FROM secrets.secret_version WHERE secret_id = $1 AND version = $2";

pub const PUBLIC_KEYS: &str = "
SELECT v.secret_id, v.version, v.public_key, v.created_at, v.readable_until
FROM secrets.secret s JOIN secrets.secret_version v ON v.secret_id = s.id
WHERE s.project_id IS NULL AND s.name_key = $1 AND v.public_key IS NOT NULL
ORDER BY v.created_at DESC, v.version DESC LIMIT 1000";

pub const DELIVERY_INSERT: &str = "
INSERT INTO secrets.delivery (id, secret_id, org_id, version, purpose, recipient_kind, recipient_id, correlation_id, delivered_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

pub const DELIVERY_LIST: &str = "
SELECT id, secret_id, version, purpose, recipient_kind, recipient_id, correlation_id, delivered_at
FROM secrets.delivery WHERE secret_id = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3";

/// Replicas that look at the same time take different ones.
pub const VERSIONS_DESTROY_ENDED: &str = "
WITH ended AS (
    SELECT secret_id, version FROM secrets.secret_version
    WHERE wrapped_key IS NOT NULL AND readable_until <= $1
    ORDER BY readable_until LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE secrets.secret_version v SET sealed = NULL, wrapped_key = NULL, destroyed_at = $1
FROM ended e JOIN secrets.secret s ON s.id = e.secret_id
WHERE v.secret_id = e.secret_id AND v.version = e.version
RETURNING v.secret_id, v.version, s.org_id, s.project_id, s.generation";

pub const KEYS_IN_USE: &str =
    "SELECT DISTINCT key_encryption_id FROM secrets.secret_version WHERE wrapped_key IS NOT NULL";

pub const VERSIONS_TO_REWRAP: &str = "
SELECT v.secret_id, v.version, v.wrapped_key, v.key_encryption_id, s.org_id, s.project_id, s.generation
FROM secrets.secret_version v JOIN secrets.secret s ON s.id = v.secret_id
WHERE v.wrapped_key IS NOT NULL AND v.key_encryption_id <> $1 AND (v.secret_id, v.version) > ($2, $3)
ORDER BY v.secret_id, v.version LIMIT $4";

/// Only if the wrapped key is still the one that was unwrapped: it may have been destroyed or rewrapped meanwhile.
pub const VERSION_REWRAP: &str = "
UPDATE secrets.secret_version SET wrapped_key = $4, key_encryption_id = $5
WHERE secret_id = $1 AND version = $2 AND wrapped_key = $3 RETURNING version";

pub fn secret(row: &Row) -> Result<SecretInfo> {
    Ok(SecretInfo {
        id: SecretId::from_uuid(row.get(0)),
        org_id: row.get::<_, Option<Uuid>>(1).map(OrganizationId::from_uuid),
        project_id: row.get::<_, Option<Uuid>>(2).map(ProjectId::from_uuid),
        name: Name::parse(row.get(3)).map_err(|error| unexpected("name", &error))?,
        material: if row.get::<_, &str>(4) == Material::Value.as_str() {
            Material::Value
        } else {
            Material::SigningKey
        },
        purpose: purpose(row.get(5))?,
        owner: subject(row.get(6), row.get(7))?,
        version: row.get(8),
        state: if row.get::<_, &str>(9) == SecretState::Active.as_str() {
            SecretState::Active
        } else {
            SecretState::Retired
        },
        state_since: row.get(10),
        generation: row.get(11),
        created_at: row.get(12),
        updated_at: row.get(13),
    })
}

/// A version with its bytes, unless it was destroyed, and how long it may still be delivered.
pub struct VersionRow {
    pub sealed: Option<Sealed>,
    pub readable_until: Option<Timestamp>,
    pub public_key: Option<Vec<u8>>,
}

pub fn version(row: &Row) -> VersionRow {
    let (sealed, wrapped): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(1), row.get(2));
    let sealed = sealed.zip(wrapped).map(|(sealed, bytes)| Sealed {
        version: row.get(0),
        sealed,
        wrapped: Wrapped { key_id: row.get(3), bytes },
    });
    VersionRow { sealed, readable_until: row.get(4), public_key: row.get(5) }
}

pub fn delivery(row: &Row) -> Result<Delivery> {
    Ok(Delivery {
        id: DeliveryId::from_uuid(row.get(0)),
        secret_id: SecretId::from_uuid(row.get(1)),
        version: row.get(2),
        purpose: purpose(row.get(3))?,
        recipient: subject(row.get(4), row.get(5))?,
        correlation_id: CorrelationId::from_uuid(row.get(6)),
        delivered_at: row.get(7),
    })
}

/// The kind as it is spelled on the wire, which is how the columns keep it.
pub fn kind_text(kind: ActorKind) -> String {
    match serde_json::to_value(kind) {
        Ok(Value::String(name)) => name,
        _ => format!("{kind:?}"),
    }
}

fn subject(kind: &str, id: String) -> Result<Subject> {
    let kind = serde_json::from_value(Value::String(kind.to_owned()))
        .map_err(|error| unexpected("actor kind", &error))?;
    Ok(Subject { kind, id })
}

fn purpose(text: &str) -> Result<Purpose> {
    Purpose::parse(text).map_err(|error| unexpected("purpose", &error))
}

fn unexpected(what: &str, error: &dyn std::fmt::Display) -> Error {
    db::DbError::Unexpected(format!("a stored {what} is not valid: {error}")).into()
}
