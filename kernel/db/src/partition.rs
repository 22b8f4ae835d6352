//! Keeping time partitions: some made ahead, old ones dropped.

use std::time::Duration;

use jiff::ToSpan as _;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use types::Timestamp;

use crate::Params;
use crate::error::DbError;
use crate::internal::Internal;

/// A table of the spine that is partitioned by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionedTable {
    pub name: &'static str,
    column: &'static str,
    every: Every,
    /// The table, if its old rows may go.
    prunes: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Every {
    Day,
    Month,
}

impl PartitionedTable {
    pub const AUDIT_ENTRY: Self =
        Self { name: "audit_entry", column: "at", every: Every::Month, prunes: &[] };
    pub const OUTBOX: Self =
        Self { name: "outbox", column: "at", every: Every::Day, prunes: &["spine.outbox"] };
    pub const LOG: Self =
        Self { name: "log", column: "sequenced_at", every: Every::Day, prunes: &["spine.log"] };
    pub const IDEMPOTENCY: Self =
        Self { name: "idempotency", column: "at", every: Every::Day, prunes: &["spine.idempotency"] };
    pub const ALL: [Self; 4] = [Self::AUDIT_ENTRY, Self::OUTBOX, Self::LOG, Self::IDEMPOTENCY];

    /// Partitions are made this many periods ahead; the default partition catches what lies beyond.
    const AHEAD: i32 = 3;

    /// Makes the partitions for `now` and the next periods. Returns how many were made.
    pub async fn make_ahead(self, internal: &Internal, now: Timestamp) -> Result<usize, DbError> {
        let mut made = 0;
        for period in 0..=Self::AHEAD {
            let Some((lower, upper, suffix)) = self.bounds(now, period) else { continue };
            let rows = internal
                .bookkeeping_one(
                    &[],
                    "SELECT spine.partition_make($1, $2, $3, $4, $5)",
                    &[&self.name, &self.column, &lower, &upper, &suffix],
                )
                .await?;
            made += usize::from(rows.first().is_some_and(|row| row.get(0)));
        }
        Ok(made)
    }

    /// Drops what is older than `keep` and read by everyone who has to, each partition in a transaction of its own.
    /// Returns how many partitions went.
    pub async fn prune(self, internal: &Internal, now: Timestamp, keep: Duration) -> Result<usize, DbError> {
        let before = now.checked_sub(keep).unwrap_or(Timestamp::MIN);
        let mut dropped = 0;
        loop {
            let params: Params<'_> = &[&self.name, &self.column, &before];
            let rows = internal
                .bookkeeping_one(self.prunes, "SELECT spine.partition_prune($1, $2, $3)", params)
                .await?;
            if !rows.first().is_some_and(|row| row.get(0)) {
                return Ok(dropped);
            }
            dropped += 1;
        }
    }

    fn bounds(self, now: Timestamp, period: i32) -> Option<(Timestamp, Timestamp, String)> {
        let today = now.to_zoned(TimeZone::UTC).date();
        let (from, to, suffix) = match self.every {
            Every::Day => {
                let from = today.checked_add(period.days()).ok()?;
                (from, from.checked_add(1.day()).ok()?, from.strftime("%Y%m%d").to_string())
            }
            Every::Month => {
                let from = today.first_of_month().checked_add(period.months()).ok()?;
                (from, from.checked_add(1.month()).ok()?, from.strftime("%Y%m").to_string())
            }
        };
        Some((midnight(from)?, midnight(to)?, suffix))
    }
}

fn midnight(date: Date) -> Option<Timestamp> {
    date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}
