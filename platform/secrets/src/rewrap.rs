//! Changing the key encryption key: every data key is unwrapped with the old key and wrapped with the new one. No
//! ciphertext is touched, so the work is small and can stop and go on at any point; old and new keys work side by side
//! until it is done.

use authz::{Action as _, Context, Resource, authorize};
use db::{Change, Internal, Row};
use types::Result;
use uuid::Uuid;

use crate::events::SecretRewrapped;
use crate::key_encryption::{KeyError, Wrapped};
use crate::model::SecretId;
use crate::policy::KeysRewrap;
use crate::settings::REWRAP_BATCH_MAX;
use crate::{Secrets, store};

/// What a pass over the data keys did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rewrapped {
    pub rewrapped: usize,
    /// Versions whose data key could not be unwrapped; they stay as they are.
    pub unreadable: Vec<(SecretId, i32)>,
}

/// A data key on its way from one wrapping to another.
struct Move {
    id: SecretId,
    version: i32,
    from: Wrapped,
    organization: Option<Uuid>,
    project: Option<Uuid>,
    generation: i64,
}

/// The ids of the key encryption keys that hold data keys in this database.
pub async fn keys_in_use(internal: &Internal) -> Result<Vec<String>> {
    Ok(internal.query(store::KEYS_IN_USE, &[]).await?.iter().map(|row| row.get(0)).collect())
}

impl Secrets {
    /// Fails, naming the key, if the database holds data keys that no key at hand unwraps. Asked at every start: a
    /// wrong or lost key file should stop the operator there, not a tenant's delivery later.
    pub async fn check_keys(&self) -> Result<()> {
        for id in keys_in_use(&self.db.internal("secrets.check_keys")).await? {
            self.keys.require(&id)?;
        }
        Ok(())
    }

    /// Is an older key encryption key still at hand?
    pub fn has_older_key(&self) -> bool {
        self.keys.has_older()
    }

    /// Wraps every data key that an older key holds with the current one.
    pub async fn rewrap(&self, context: &Context) -> Result<Rewrapped> {
        let context = &Self::apart(context);
        let current = self.keys.current_id()?.to_owned();
        let batch_max = self.settings.get(&REWRAP_BATCH_MAX);
        let mut report = Rewrapped::default();
        let mut last = (Uuid::nil(), 0i32);
        loop {
            let params: db::Params<'_> = &[&current, &last.0, &last.1, &i64::from(batch_max)];
            let rows = self.db.internal("secrets.rewrap").query(store::VERSIONS_TO_REWRAP, params).await?;
            let Some(end) = rows.last() else { return Ok(report) };
            last = (end.get(0), end.get(1));
            let mut batch = Vec::with_capacity(rows.len());
            for moving in rows.iter().map(read_move) {
                match self.keys.unwrap(&moving.from).await {
                    Ok(data_key) => batch.push((self.keys.wrap(&data_key).await?, moving)),
                    Err(error @ KeyError::Refused { .. }) => {
                        tracing::error!(id = %moving.id, version = moving.version, %error, "a data key was altered");
                        report.unreadable.push((moving.id, moving.version));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            report.rewrapped += self.rewrap_batch(context, batch).await?;
        }
    }

    async fn rewrap_batch(&self, context: &Context, batch: Vec<(Wrapped, Move)>) -> Result<usize> {
        let permit =
            authorize::<KeysRewrap>(&*self.decider, context, Resource::platform("key_encryption_key"))?;
        self.db
            .change(context, permit, async |tx| {
                let mut changes = Vec::with_capacity(batch.len());
                for (to, moving) in &batch {
                    let Move { id, version, from, .. } = moving;
                    let params: db::Params<'_> = &[id.as_uuid(), version, &from.bytes, &to.bytes, &to.key_id];
                    if tx.query_opt(store::VERSION_REWRAP, params).await?.is_some() {
                        changes.push(moved(moving, to));
                    }
                }
                let count = changes.len();
                Ok(tx.record_many(changes).with(count))
            })
            .await
    }
}

fn moved(moving: &Move, to: &Wrapped) -> Change {
    let event = SecretRewrapped {
        secret_id: moving.id,
        version: moving.version,
        from_key: &moving.from.key_id,
        to_key: &to.key_id,
    };
    let mut change = Change::new(KeysRewrap::NAME, moving.id, moving.generation).after(&event).event(&event);
    if let (Some(organization), Some(project)) = (&moving.organization, &moving.project) {
        change = change.in_organization(organization).in_project(project);
    }
    change
}

fn read_move(row: &Row) -> Move {
    Move {
        id: SecretId::from_uuid(row.get(0)),
        version: row.get(1),
        from: Wrapped { bytes: row.get(2), key_id: row.get(3) },
        organization: row.get(4),
        project: row.get(5),
        generation: row.get(6),
    }
}
