//! Destroying what has ended, whether or not its secret ever changes again: a version that can no longer be delivered
//! has no business in the database.

use authz::{Action as _, Actor, Context, Resource, authorize};
use db::{Change, Row};
use types::Result;
use uuid::Uuid;

use crate::events::SecretVersionDestroyed;
use crate::model::SecretId;
use crate::policy::{SWEEPER, VersionDestroy};
use crate::settings::DESTROY_BATCH_MAX;
use crate::{Secrets, store};

impl Secrets {
    /// Removes data key and ciphertext of every version whose overlap is over. Returns how many there were. Any number
    /// of replicas may do it at once.
    pub async fn destroy_ended(&self) -> Result<usize> {
        let context = Context::new(Actor::system(SWEEPER), self.db.make_id());
        let batch_max = self.settings.get(&DESTROY_BATCH_MAX);
        let mut destroyed = 0;
        loop {
            let count = self.destroy_batch(&context, batch_max).await?;
            destroyed += count;
            if count < batch_max as usize {
                return Ok(destroyed);
            }
        }
    }

    async fn destroy_batch(&self, context: &Context, batch_max: u32) -> Result<usize> {
        let permit =
            authorize::<VersionDestroy>(&*self.decider, context, Resource::platform("secret_version"))?;
        self.db
            .change(context, permit, async |tx| {
                let params: db::Params<'_> = &[&tx.now(), &i64::from(batch_max)];
                let rows = tx.query(store::VERSIONS_DESTROY_ENDED, params).await?;
                if rows.is_empty() {
                    return Ok(tx.unchanged(0));
                }
                Ok(tx.record_many(rows.iter().map(destroyed)).with(rows.len()))
            })
            .await
    }
}

fn destroyed(row: &Row) -> Change {
    let id = SecretId::from_uuid(row.get(0));
    let event = SecretVersionDestroyed { secret_id: id, version: row.get(1) };
    let change = Change::new(VersionDestroy::NAME, id, row.get(4)).after(&event).event(&event);
    match (row.get::<_, Option<Uuid>>(2), row.get::<_, Option<Uuid>>(3)) {
        (Some(organization), Some(project)) => change.in_organization(&organization).in_project(&project),
        _ => change,
    }
}
