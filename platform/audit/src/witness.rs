//! Someone outside who keeps our checkpoints: then nobody here can cut the log short unnoticed.
//!
//! Only the newest checkpoint is sent; it vouches for everything before it. An HTTP witness gets the note as the body of
//! a POST. A git witness is a clone: the note is committed there as the file `checkpoint`, and pushed if the clone has a
//! remote. A witness that holds a larger checkpoint, or another one of the same size, contradicts us: an alarm.

use std::path::{Path, PathBuf};
use std::time::Duration;

use db::Settings;
use futures::future::BoxFuture;
use merkle::tree::SIZE_MAX;
use merkle::{Checkpoint, SignedNote};

use crate::delivery::{Delivered, DeliveryError, Destination, Parcel};
use crate::settings::{WITNESS_INTERVAL_MS, WITNESS_TIMEOUT_MS};

/// How the witness is reached.
pub enum Channel {
    /// POST the note to this address.
    Http(String),
    /// Commit the note in this clone.
    Git(PathBuf),
}

pub struct Witness {
    channel: Channel,
    client: reqwest::Client,
    settings: Settings,
}

const FILE: &str = "checkpoint";
/// What a witness answers when our checkpoint contradicts what it has (c2sp.org/tlog-witness).
const CONTRADICTIONS: [u16; 2] = [409, 422];

impl Witness {
    pub fn new(channel: Channel, settings: Settings) -> Self {
        Self { channel, client: reqwest::Client::new(), settings }
    }

    async fn send(&self, parcel: &Parcel) -> Result<(), DeliveryError> {
        let time = WITNESS_TIMEOUT_MS.millis(&self.settings);
        let sent = async {
            match &self.channel {
                Channel::Http(url) => self.post(url, parcel).await,
                Channel::Git(clone) => commit(clone, parcel).await,
            }
        };
        let late = |_| DeliveryError::Unavailable("the witness did not answer in time".to_owned());
        tokio::time::timeout(time, sent).await.map_err(late)?
    }

    async fn post(&self, url: &str, parcel: &Parcel) -> Result<(), DeliveryError> {
        let request = self.client.post(url).header("content-type", "text/plain; charset=utf-8");
        let reply = request.body(parcel.note.clone()).send().await;
        let status = reply.map_err(|error| DeliveryError::Unavailable(error.to_string()))?.status();
        if status.is_success() {
            return Ok(());
        }
        if CONTRADICTIONS.contains(&status.as_u16()) {
            let size = parcel.to;
            return Err(DeliveryError::Alarm(format!(
                "the witness refuses our checkpoint of {size} entries ({status})"
            )));
        }
        Err(DeliveryError::Unavailable(format!("the witness answered {status}")))
    }
}

impl Destination for Witness {
    fn name(&self) -> &'static str {
        "witness"
    }

    fn entries_max(&self, _: &Settings) -> u64 {
        SIZE_MAX
    }

    fn interval(&self, settings: &Settings) -> Duration {
        WITNESS_INTERVAL_MS.millis(settings)
    }

    /// A witness keeps what it has to itself; the newest checkpoint is all it ever needs.
    fn is_empty(&self) -> BoxFuture<'_, Result<bool, DeliveryError>> {
        Box::pin(async { Ok(false) })
    }

    /// It compares by itself, with each checkpoint it gets.
    fn check<'a>(&'a self, _: &'a Delivered) -> BoxFuture<'a, Result<(), DeliveryError>> {
        Box::pin(async { Ok(()) })
    }

    fn deliver<'a>(&'a self, parcel: &'a Parcel) -> BoxFuture<'a, Result<(), DeliveryError>> {
        Box::pin(self.send(parcel))
    }
}

/// Whole or not at all: half a checkpoint would look like a contradiction for ever.
async fn replace(clone: &Path, path: &Path, note: &str) -> std::io::Result<()> {
    let part = clone.join(".git").join("gpuaas-checkpoint.part");
    tokio::fs::write(&part, note).await?;
    tokio::fs::File::open(&part).await?.sync_all().await?;
    tokio::fs::rename(&part, path).await
}

async fn commit(clone: &Path, parcel: &Parcel) -> Result<(), DeliveryError> {
    let path = clone.join(FILE);
    let failed = |error: std::io::Error| DeliveryError::Unavailable(format!("{}: {error}", path.display()));
    match tokio::fs::read(&path).await {
        Ok(kept) if kept == parcel.note.as_bytes() => {}
        Ok(kept) => {
            let size = kept_size(&kept);
            if size.is_none_or(|size| size >= parcel.to) {
                return Err(DeliveryError::Alarm(format!(
                    "the witness holds a checkpoint that contradicts ours of {} entries: {}",
                    parcel.to,
                    path.display()
                )));
            }
            replace(clone, &path, &parcel.note).await.map_err(failed)?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            replace(clone, &path, &parcel.note).await.map_err(failed)?;
        }
        Err(error) => return Err(failed(error)),
    }
    git(clone, &["add", "--", FILE]).await?;
    // Nothing staged: a crash came after the commit.
    if git(clone, &["diff", "--cached", "--quiet", "--", FILE]).await.is_err() {
        let message = format!("Audit checkpoint of {} entries", parcel.to);
        git(clone, &["commit", "--quiet", "--message", &message, "--", FILE]).await?;
    }
    if !git(clone, &["remote"]).await?.is_empty() {
        git(clone, &["push", "--quiet"]).await?;
    }
    Ok(())
}

/// The size of a kept checkpoint; `None` if it is not one, which counts as a contradiction.
fn kept_size(note: &[u8]) -> Option<u64> {
    let note = SignedNote::parse(note).ok()?;
    Checkpoint::parse(note.text()).ok().map(|checkpoint| checkpoint.size)
}

async fn git(clone: &Path, arguments: &[&str]) -> Result<Vec<u8>, DeliveryError> {
    let output = tokio::process::Command::new("git")
        .arg("-C")
        .arg(clone)
        .args(["-c", "user.name=gpuaasd", "-c", "user.email=gpuaasd@localhost", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| DeliveryError::Unavailable(format!("git: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(DeliveryError::Unavailable(format!("git {}: {}", arguments.join(" "), said.trim())))
}
