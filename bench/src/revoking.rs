//! How soon another replica knows what was revoked, and what it costs to know a caller.
//!
//! Two replicas of the revocation feed in this process, each with a line, nudges and a carrier of its own, on the database
//! of [`Spine`]. Nothing a caller can ask for over HTTP would show the moment in which the other replica knows.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use db::{Bridge, Change, Line, Nudges};
use iam::revocation::{Kind, Revocations, revoke};
use iam::{Loaded, Remembered};
use relay::{NatsTarget, NudgeCarrier};
use tokio::runtime::Runtime;
use tokio_util::sync::{CancellationToken, DropGuard};
use types::Id;
use uuid::Uuid;

use crate::Result;
use crate::gpuaasd::free_address;
use crate::sample::Latencies;
use crate::spine::{Spine, ThingKind, Work, in_words};

/// Not counted: until both ends of a carrier are connected.
const WARM_UP: usize = 5;
/// Checks of one remembered caller.
const CHECKS: u32 = 100_000;
/// What a caller rests on: credential, principal, organization, role.
const SUBJECTS: u128 = 4;
// fixed: far beyond any aim; then something is broken
const PATIENCE: Duration = Duration::from_secs(30);
// fixed: between two looks, outside of the runtime that does the work
const LOOK: Duration = Duration::from_micros(50);

pub struct Revoking {
    pub by_notify: Latencies,
    /// Only where there is a NATS server.
    pub by_nats: Option<Latencies>,
    pub check_us: f64,
    /// The same answer with a round trip.
    pub look_up_us: f64,
    pub look_ups: u64,
}

enum Carrier<'a> {
    Notify,
    Nats(&'a NatsServer),
}

pub fn measure(
    runtime: &Runtime,
    spine: &Spine,
    nats: Option<&NatsServer>,
    times: usize,
) -> Result<Revoking> {
    let by_notify = until_known(runtime, spine, &Carrier::Notify, times)?;
    let by_nats = nats.map(|nats| until_known(runtime, spine, &Carrier::Nats(nats), times)).transpose()?;
    let (check_us, look_up_us, look_ups) = check(runtime, spine)?;
    Ok(Revoking { by_notify, by_nats, check_us, look_up_us, look_ups })
}

/// From the end of the change here to when the other replica would refuse.
fn until_known(runtime: &Runtime, spine: &Spine, carrier: &Carrier<'_>, times: usize) -> Result<Latencies> {
    let (_here, _stops) = runtime.block_on(replica(spine, spine.db.nudges(), carrier))?;
    let (there, _stops) = runtime.block_on(replica(spine, &Nudges::default(), carrier))?;
    let mut latencies = Latencies::default();
    for number in 0..WARM_UP + times {
        let subject: Id<ThingKind> = spine.db.make_id();
        let mark = wait_for(|| there.mark())?;
        runtime.block_on(revoke_one(spine, *subject.as_uuid()))?;
        let committed = Instant::now();
        wait_for(|| there.is_revoked_since(*subject.as_uuid(), mark).then_some(()))?;
        if number >= WARM_UP {
            latencies.push(committed.elapsed());
        }
    }
    Ok(latencies)
}

async fn replica(spine: &Spine, nudges: &Nudges, carrier: &Carrier<'_>) -> Result<(Revocations, DropGuard)> {
    let (settings, stop) = (spine.settings.clone(), CancellationToken::new());
    let line = Line::new(spine.target.clone(), "bench", false);
    let revocations = Revocations::new(line, nudges.clone(), settings.clone());
    let (following, stopped) = (revocations.clone(), stop.clone());
    tokio::spawn(async move { following.run(stopped).await });
    let (nudges, stopped) = (nudges.clone(), stop.clone());
    let own: Id<ThingKind> = spine.db.make_id();
    match carrier {
        Carrier::Notify => {
            let bridge = Bridge::new(spine.target.clone(), nudges, settings, *own.as_uuid());
            tokio::spawn(async move { bridge.run(stopped).await });
        }
        Carrier::Nats(server) => {
            let carrier = NudgeCarrier::new(server.target(), nudges, settings, *own.as_uuid()).await?;
            tokio::spawn(async move { carrier.run(stopped).await });
        }
    }
    Ok((revocations, stop.drop_guard()))
}

async fn revoke_one(spine: &Spine, subject: Uuid) -> Result<()> {
    let context = spine.context();
    let permit = spine.permit(&context)?;
    let changed = spine.db.change(&context, permit, async |tx| {
        revoke(tx, Kind::Credential, subject).await?;
        let thing: Id<ThingKind> = tx.make_id();
        Ok(tx.record(Change::new(<Work as authz::Action>::NAME, thing, 1)))
    });
    changed.await.map_err(in_words)
}

/// What a remembered caller costs, what asking the database would, and how often it was asked in between.
fn check(runtime: &Runtime, spine: &Spine) -> Result<(f64, f64, u64)> {
    let (revocations, _stops) = runtime.block_on(replica(spine, &Nudges::default(), &Carrier::Notify))?;
    wait_for(|| revocations.mark())?;
    let remembered: Remembered<u64, Arc<str>> =
        Remembered::new(revocations, Arc::clone(&spine.clock), spine.settings.clone());
    let (internal, asked) = (spine.db.internal("bench"), AtomicU64::new(0));
    let load = async || {
        asked.fetch_add(1, Ordering::Relaxed);
        internal.query_opt("SELECT 1", &[]).await?;
        Ok(Loaded {
            value: "caller".into(),
            subjects: (0..SUBJECTS).map(Uuid::from_u128).collect(),
            until: None,
        })
    };
    runtime.block_on(async {
        let begun = Instant::now();
        for _ in 0..100 {
            load().await.map_err(in_words)?;
        }
        let look_up_us = begun.elapsed().as_secs_f64() * 1e6 / 100.0;
        remembered.get(1, &load).await.map_err(in_words)?;
        asked.store(0, Ordering::Relaxed);
        let begun = Instant::now();
        for _ in 0..CHECKS {
            std::hint::black_box(remembered.get(1, &load).await.map_err(in_words)?);
        }
        let check_us = begun.elapsed().as_secs_f64() * 1e6 / f64::from(CHECKS);
        Ok((check_us, look_up_us, asked.load(Ordering::Relaxed)))
    })
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if begun.elapsed() > PATIENCE {
            return Err("a revocation did not reach the other replica".into());
        }
        std::thread::sleep(LOOK);
    }
}

/// A NATS server of our own, in memory.
pub struct NatsServer {
    process: Child,
    url: String,
}

impl NatsServer {
    /// `None` if there is no such program; the table says so.
    pub fn start() -> Result<Option<Self>> {
        let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/nats/bin/nats-server");
        let program = std::env::var_os("GPUAAS_NATS_SERVER").map_or(installed, PathBuf::from);
        if !program.is_file() {
            return Ok(None);
        }
        let address = free_address()?;
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &address.port().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn()?;
        Ok(Some(Self { process, url: format!("nats://{address}") }))
    }

    fn target(&self) -> NatsTarget {
        NatsTarget { url: self.url.clone(), credentials: None, tls: None }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
