//! Passes nudges on between replicas: one connection per process that listens, and tells.
//!
//! A replica that committed something nudges its own waiters at once ([`Nudges`]); this carries the nudge to the others
//! as a NOTIFY that names the topics and nothing else. However many commits there were, a replica sends one message per
//! few milliseconds, in a transaction of its own: NOTIFY takes a lock that all of the cluster shares and holds it
//! through commit, so a mutating transaction must never contain one.
//!
//! The listening connection is driven by a task that does nothing else and hands each message over without a queue:
//! a listener that falls behind would make PostgreSQL keep everybody's messages. A lost connection loses nudges, which is
//! allowed; after reconnecting all topics are nudged once, and the periodic sweep of each waiter is the guarantee.
//!
//! Where NATS is configured it carries the same words as well (`relay::NudgeCarrier`). Rejected: NATS alone. PostgreSQL has
//! to be there anyway, and most installations have nothing else.

use std::time::Duration;

use tokio_postgres::{AsyncMessage, Client};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::error::DbError;
use crate::nudge::{LocalNudges, Nudges, Topic, nudge_words};
use crate::pool::Target;
use crate::settings::{Setting, SettingInfo, Settings};

pub static NUDGE_GATHER_MS: Setting<u64> = Setting::new(
    "db.nudge_gather_ms",
    5,
    "Shortest time between two messages of one replica to the others, in milliseconds; what happens meanwhile is told \
     together.",
)
.at_least(1);
static NUDGE_PROBE_SECONDS: Setting<u64> = Setting::new(
    "db.nudge_probe_seconds",
    10,
    "How often a replica that has nothing to tell checks that its listening connection still works, in seconds.",
)
.at_least(1);

/// The settings of this crate, for the reference.
pub static SETTINGS: fn() -> Vec<SettingInfo> = || vec![NUDGE_GATHER_MS.info(), NUDGE_PROBE_SECONDS.info()];

const CHANNEL: &str = "gpuaas_nudge";
const LISTEN: &str = "LISTEN gpuaas_nudge";
const TELL: &str = "SELECT pg_notify($1, $2)";

// fixed: first and longest pause before connecting again; nudges only shorten waiting, so there is no hurry
const RECONNECT_FIRST: Duration = Duration::from_millis(100);
// fixed: see above
const RECONNECT_LONGEST: Duration = Duration::from_secs(5);

/// One process's end of the bridge.
pub struct Bridge {
    target: Target,
    nudges: Nudges,
    settings: Settings,
    /// Tells our own messages from others'.
    replica: Uuid,
}

impl Bridge {
    /// `replica` is unique to this process. The login needs no grants.
    pub fn new(target: Target, nudges: Nudges, settings: Settings, replica: Uuid) -> Self {
        Self { target, nudges, settings, replica }
    }

    /// Listens and tells until asked to stop.
    pub async fn run(&self, stop: CancellationToken) {
        let mut local = self.nudges.listen_local();
        let mut pause = RECONNECT_FIRST;
        while !stop.is_cancelled() {
            let Err(error) = self.connected(&mut local, &mut pause, &stop).await else { return };
            tracing::warn!(%error, "other replicas are not heard, will connect again");
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(RECONNECT_LONGEST),
                () = stop.cancelled() => {}
            }
        }
    }

    /// Works on one connection for as long as it lasts. Returns `Ok` only when asked to stop.
    async fn connected(
        &self,
        local: &mut LocalNudges,
        pause: &mut Duration,
        stop: &CancellationToken,
    ) -> Result<(), DbError> {
        let (nudges, replica) = (self.nudges.clone(), self.replica);
        // The connection's task owns the guard: when it ends, we learn of it although we are not talking.
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let hear = move |message| {
            let _until_the_connection_ends = &guard;
            if let AsyncMessage::Notification(notification) = message
                && notification.channel() == CHANNEL
            {
                nudges.hear(replica, notification.payload());
            }
        };
        let client = self.target.connect_and_hear(hear).await?;
        client.batch_execute(LISTEN).await?;
        *pause = RECONNECT_FIRST;
        // What was told while nobody listened.
        for topic in Topic::ALL {
            self.nudges.from_outside(topic);
        }
        while !stop.is_cancelled() {
            let probe = NUDGE_PROBE_SECONDS.seconds(&self.settings);
            tokio::select! {
                topics = local.take() => self.tell(&client, &topics).await?,
                () = tokio::time::sleep(probe) => within(probe, client.simple_query("SELECT")).await.map(drop)?,
                () = ended.cancelled() => return Err(DbError::Connect("PostgreSQL closed the connection".to_owned())),
                () = stop.cancelled() => {}
            }
        }
        Ok(())
    }

    /// Tells at once, then rests: the first of many nudges is not delayed, the others travel together.
    async fn tell(&self, client: &Client, topics: &[Topic]) -> Result<(), DbError> {
        let payload = nudge_words(self.replica, topics);
        let patience = NUDGE_PROBE_SECONDS.seconds(&self.settings);
        within(
            patience,
            client.query_typed(
                TELL,
                &[
                    (&CHANNEL, tokio_postgres::types::Type::TEXT),
                    (&payload, tokio_postgres::types::Type::TEXT),
                ],
            ),
        )
        .await?;
        metrics::counter!("gpuaas_nudges_told_total").increment(1);
        tokio::time::sleep(NUDGE_GATHER_MS.millis(&self.settings)).await;
        Ok(())
    }
}

/// A connection whose other end vanished without a word answers nothing: that is an error too.
async fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, DbError> {
    let late = |_| DbError::Connect("PostgreSQL does not answer any more".to_owned());
    Ok(tokio::time::timeout(patience, work).await.map_err(late)??)
}
