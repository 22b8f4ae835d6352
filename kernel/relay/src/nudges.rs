//! Nudges between replicas by core NATS, beside or instead of the NOTIFY of [`db::Bridge`].
//!
//! A message names topics, never data: whoever hears it looks into PostgreSQL. It may be lost, come twice or late, as
//! with NOTIFY, and the sweep of each waiter stays the guarantee; so nothing is stored and nothing acknowledged. The
//! subject lies outside of the stream's, which would keep them otherwise.

use async_nats::{Client, Event};
use db::{NUDGE_GATHER_MS, Nudges, Settings, Topic};
use futures::StreamExt as _;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::connect::{NatsTarget, RelayError};

const SUBJECT: &str = "gpuaas-nudge";

/// One process's end.
pub struct NudgeCarrier {
    client: Client,
    nudges: Nudges,
    settings: Settings,
    /// Tells our own messages from others'.
    replica: Uuid,
}

impl NudgeCarrier {
    /// `replica` is unique to this process. Does not wait for the server.
    pub async fn new(
        target: NatsTarget,
        nudges: Nudges,
        settings: Settings,
        replica: Uuid,
    ) -> Result<Self, RelayError> {
        let heard = nudges.clone();
        let look_at_everything = move |event: &Event| {
            match event {
                // What was told while nobody listened.
                Event::Connected => Topic::ALL.into_iter().for_each(|topic| heard.from_outside(topic)),
                other => tracing::warn!(event = %other, "nudges by NATS"),
            }
        };
        let client = target.client("gpuaasd nudges", look_at_everything).await?;
        Ok(Self { client, nudges, settings, replica })
    }

    /// Hears and tells until asked to stop.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = self.hear() => {}
            () = self.tell() => {}
            () = stop.cancelled() => {}
        }
        // Only a client that is closed for good ends by itself, and nobody closes it.
        stop.cancelled().await;
    }

    async fn hear(&self) {
        let mut messages = match self.client.subscribe(SUBJECT).await {
            Ok(messages) => messages,
            Err(error) => return tracing::error!(%error, "nudges of other replicas cannot be heard by NATS"),
        };
        while let Some(message) = messages.next().await {
            if let Ok(words) = std::str::from_utf8(&message.payload) {
                self.nudges.hear(self.replica, words);
            }
        }
    }

    /// Tells at once, then rests, as the bridge does.
    async fn tell(&self) {
        let mut local = self.nudges.listen_local();
        loop {
            let words = db::nudge_words(self.replica, &local.take().await);
            if let Err(error) = self.client.publish(SUBJECT, words.into()).await {
                return tracing::error!(%error, "other replicas cannot be nudged by NATS");
            }
            tokio::time::sleep(NUDGE_GATHER_MS.millis(&self.settings)).await;
        }
    }
}
