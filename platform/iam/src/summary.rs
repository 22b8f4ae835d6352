//! How many projects each organization has: a read model, derived from project events.

use ::events::{LogEvent, Projection};
use db::{Bookkeeping, DbError};
use futures::future::BoxFuture;

use crate::store;

/// The projection's name, and with it its place in the log.
pub const NAME: &str = "iam.organization_summary";

pub struct OrganizationSummary;

impl Projection for OrganizationSummary {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tables(&self) -> &'static [&'static str] {
        &["iam.organization_summary", "spine.consumer"]
    }

    /// Counts anew instead of adding one: applying an event twice, or after a rebuild, changes nothing.
    fn apply<'a>(
        &'a self,
        tx: &'a mut Bookkeeping,
        event: &'a LogEvent,
    ) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move {
            let Some(organization) = event.organization else { return Ok(()) };
            if !is_ours(&event.event_type) {
                return Ok(());
            }
            tx.query(store::SUMMARY_UPSERT, &[&organization]).await.map(drop)
        })
    }

    fn rebuild<'a>(&'a self, tx: &'a mut Bookkeeping) -> BoxFuture<'a, Result<(), DbError>> {
        Box::pin(async move {
            tx.query(store::SUMMARY_CLEAR, &[]).await?;
            tx.query(store::SUMMARY_FILL, &[]).await.map(drop)
        })
    }
}

fn is_ours(event_type: &str) -> bool {
    use db::Event as _;

    use crate::events::{OrganizationCreated, ProjectArchived, ProjectCreated};
    [OrganizationCreated::TYPE, ProjectCreated::TYPE, ProjectArchived::TYPE].contains(&event_type)
}
