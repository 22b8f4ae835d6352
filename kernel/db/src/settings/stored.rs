//! Settings as they are stored: one row per place and key.

use authz::{Place, Subject};
use serde_json::{Value, json};
use tokio_postgres::Row;
use types::Timestamp;
use uuid::Uuid;

use crate::error::DbError;
use crate::internal::Internal;
use crate::read::Reader;
use crate::tx::Tx;

/// What is stored under a key at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSetting {
    pub place: Place,
    pub key: String,
    /// None: it was taken back, and what holds outside holds.
    pub value: Option<Value>,
    /// Counts changes at this place; 0 before the first.
    pub generation: i64,
    /// None if somebody wrote it into the database who is no caller of ours.
    pub set_by: Option<Subject>,
    pub set_at: Timestamp,
}

const SETTING_ALL: &str =
    "SELECT org_id, scope_id, key, value, generation, set_by, set_at FROM spine.setting";

const SETTING_IN: &str = "
SELECT org_id, scope_id, key, value, generation, set_by, set_at
FROM spine.setting WHERE scope_id = ANY($1) AND ($2::text IS NULL OR key = $2)";

/// Something to lock, also where nothing was ever set: two who set it for the first time come one after the other.
const SETTING_PLACE: &str = "
INSERT INTO spine.setting (org_id, scope_id, key, generation, set_by, set_at)
VALUES ($1, $2, $3, 0, $4, $5) ON CONFLICT (scope_id, key) DO NOTHING";

const SETTING_LOCK: &str = "
SELECT org_id, scope_id, key, value, generation, set_by, set_at
FROM spine.setting WHERE scope_id = $1 AND key = $2 FOR UPDATE";

const SETTING_STORE: &str = "
UPDATE spine.setting SET value = $3, generation = $4, set_by = $5, set_at = $6
WHERE scope_id = $1 AND key = $2";

pub(super) async fn all(internal: &Internal) -> Result<Vec<StoredSetting>, DbError> {
    Ok(internal.query(SETTING_ALL, &[]).await?.iter().map(stored_setting).collect())
}

/// What is stored at a place and around it, as far as the reader may see: of one setting, or of all.
pub async fn stored(reader: &Reader, place: Place, key: Option<&str>) -> Result<Vec<StoredSetting>, DbError> {
    let scopes: Vec<Uuid> = place.from_outside().map(scope_id).collect();
    Ok(reader.query(SETTING_IN, &[&scopes, &key]).await?.iter().map(stored_setting).collect())
}

/// The same inside a change.
pub async fn stored_in(tx: &mut Tx<'_>, place: Place, key: &str) -> Result<Vec<StoredSetting>, DbError> {
    let scopes: Vec<Uuid> = place.from_outside().map(scope_id).collect();
    Ok(tx.query(SETTING_IN, &[&scopes, &key]).await?.iter().map(stored_setting).collect())
}

/// What is stored under a key at a place, kept from changing until the transaction ends.
pub async fn lock(tx: &mut Tx<'_>, place: Place, key: &str, who: &Subject) -> Result<StoredSetting, DbError> {
    let params: crate::Params<'_> = &[&place.organization(), &scope_id(place), &key, &json!(who), &tx.now()];
    tx.execute(SETTING_PLACE, params).await?;
    Ok(stored_setting(&tx.query_one(SETTING_LOCK, &[&scope_id(place), &key]).await?))
}

/// Writes what [`lock`] has locked. The caller has made sure that the value may stand there, and records the change.
pub async fn store(tx: &mut Tx<'_>, setting: &StoredSetting) -> Result<(), DbError> {
    let params: crate::Params<'_> = &[
        &scope_id(setting.place),
        &setting.key,
        &setting.value,
        &setting.generation,
        &json!(setting.set_by),
        &setting.set_at,
    ];
    tx.execute(SETTING_STORE, params).await
}

const fn scope_id(place: Place) -> Uuid {
    match place {
        Place::Platform => Uuid::nil(),
        Place::Organization(organization) => organization,
        Place::Project { project, .. } => project,
    }
}

fn stored_setting(row: &Row) -> StoredSetting {
    let scope: Uuid = row.get(1);
    let place = match row.get::<_, Option<Uuid>>(0) {
        None => Place::Platform,
        Some(organization) if organization == scope => Place::Organization(organization),
        Some(organization) => Place::Project { organization, project: scope },
    };
    StoredSetting {
        place,
        key: row.get(2),
        value: row.get(3),
        generation: row.get(4),
        set_by: serde_json::from_value(row.get(5)).ok(),
        set_at: row.get(6),
    }
}
