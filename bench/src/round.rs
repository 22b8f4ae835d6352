//! One round: every load once, each beside its floor.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::cpu::Processes;
use crate::event_stream::{self, EventTimes};
use crate::floor::{Floor, Load};
use crate::flow_steps::Flows;
use crate::gpuaasd::Gpuaasd;
use crate::hello::Hello;
use crate::load::{CONNECTIONS, drive, measured};
use crate::requests::Requests;
use crate::revoking::{NatsServer, Revoking};
use crate::sample::{Latencies, Sample};
use crate::spine::Spine;
use crate::verifying::Export;
use crate::{Result, revoking, sealing, sequencing};

/// What one round measured.
pub struct Round {
    pub select: Sample,
    pub hello: Sample,
    pub read_one_tenant: Sample,
    pub read_many_tenants: Sample,
    pub transfer: Sample,
    pub create: Sample,
    pub rename: Sample,
    pub events: EventTimes,
    pub commit: Latencies,
    pub flow: Latencies,
    pub flows_at_once: Sample,
    pub sequenced: Sample,
    pub sealed: Sample,
    pub verified_per_second: f64,
    pub revoking: Revoking,
}

/// How much is measured in a round.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub time: Duration,
    /// Things timed one by one: changes until their event, commits, flows.
    pub singles: usize,
    /// Events for the sequencer, and entries for the sealer.
    pub backlog: u64,
}

/// Everything that is running and prepared.
pub struct Bench {
    pub runtime: Runtime,
    pub server: Gpuaasd,
    pub hello: Hello,
    pub floor: Floor,
    pub requests: Requests,
    pub spine: Arc<Spine>,
    pub flows: Flows,
    pub export: Export,
    pub nats: Option<NatsServer>,
    pub size: Size,
}

impl Bench {
    pub fn round(&self, number: u32) -> Result<Round> {
        let (runtime, size, postmaster) = (&self.runtime, self.size, self.server.postmaster()?);
        let reads = || Ok((self.requests.read_one_tenant()?, self.requests.read_many_tenants()?));
        let (select, (read_one_tenant, read_many_tenants)) =
            in_turn(number, || self.floor.measure(runtime, Load::Select), reads)?;
        let hello = self.say_hello()?;
        let writes = || Ok((self.requests.create()?, self.requests.rename()?));
        let (transfer, (create, rename)) =
            in_turn(number, || self.floor.measure(runtime, Load::Transfer), writes)?;
        let events = event_stream::measure(&self.server, &self.requests, size.singles)?;
        let (commit, flow) = in_turn(
            number,
            || self.flows.commits(runtime, size.singles),
            || self.flows.one_by_one(runtime, size.singles),
        )?;
        Ok(Round {
            select,
            hello,
            read_one_tenant,
            read_many_tenants,
            transfer,
            create,
            rename,
            events,
            commit,
            flow,
            flows_at_once: self.flows.at_once(runtime, postmaster, size.time)?,
            sequenced: sequencing::measure(runtime, &self.spine, postmaster, size.backlog)?,
            sealed: sealing::measure(runtime, &self.spine, postmaster, size.backlog)?,
            verified_per_second: self.export.verify()?,
            revoking: revoking::measure(runtime, &self.spine, self.nats.as_ref(), size.singles)?,
        })
    }

    fn say_hello(&self) -> Result<Sample> {
        let processes = Processes { server: Some(self.hello.pid()), postmaster: None };
        measured(processes, || {
            drive(self.hello.address, CONNECTIONS, self.size.time, |_, request| {
                request.extend_from_slice(b"GET /hello HTTP/1.1\r\nhost: bench\r\n\r\n");
            })
        })
    }
}

/// Floor first in even rounds, last in odd ones: a machine that gets busier or hotter favours neither.
fn in_turn<F, T>(
    number: u32,
    floor: impl FnOnce() -> Result<F>,
    on_top: impl FnOnce() -> Result<T>,
) -> Result<(F, T)> {
    if number.is_multiple_of(2) {
        let floor = floor()?;
        return Ok((floor, on_top()?));
    }
    let on_top = on_top()?;
    Ok((floor()?, on_top))
}
