//! The whole run: prepare, start and restart the server, let it rest, measure the rounds, burst, print.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::cpu::pss_mb;
use crate::floor::{self, Floor};
use crate::flow_steps::Flows;
use crate::gpuaasd::{Gpuaasd, StartTimes};
use crate::hello::Hello;
use crate::report::{self, Memory, Results};
use crate::requests::Requests;
use crate::revoking::NatsServer;
use crate::round::{Bench, Size};
use crate::spine::Spine;
use crate::verifying::Export;
use crate::{LoadArguments, Result, RunArguments, What, machine};

/// Connections of the burst: enough to fill the pool's queue, not so many that requests are turned away.
const BURST_CONNECTIONS: usize = 64;
// fixed: what is freed after a burst is freed within this
const AFTER_BURST: Duration = Duration::from_secs(1);

/// What `--quick` changes.
struct Scale {
    starts: usize,
    rest: Duration,
    singles: usize,
    backlog: u64,
    entries: u64,
}

impl Scale {
    fn of(quick: bool) -> Self {
        if quick {
            // fixed: long enough to see that everything works
            let rest = Duration::from_secs(2);
            return Self { starts: 2, rest, singles: 50, backlog: 2_000, entries: 50_000 };
        }
        // fixed: the aim is about the memory half a minute after the start
        let rest = Duration::from_secs(30);
        Self { starts: 7, rest, singles: 200, backlog: 20_000, entries: 1_000_000 }
    }
}

pub fn run(arguments: &RunArguments) -> Result<()> {
    let scale = Scale::of(arguments.quick);
    let program = program(arguments.gpuaasd.as_deref())?;
    let home = Home::make()?;
    let busy_before = machine::load_average();
    say("starting gpuaasd, again and again");
    let (server, starts) = start(&program, &home.0.join("data"), scale.starts)?;
    say(&format!("letting it rest for {} s", scale.rest.as_secs()));
    std::thread::sleep(scale.rest);
    let at_rest_mb = pss_mb(server.pid())?;
    say("filling databases and files");
    let size = Size {
        time: Duration::from_secs_f64(arguments.seconds),
        singles: scale.singles,
        backlog: scale.backlog,
    };
    let bench = prepare(server, &home.0, size, scale.entries)?;
    let mut rounds = Vec::new();
    for number in 0..arguments.rounds {
        say(&format!("round {} of {}", number + 1, arguments.rounds));
        rounds.push(bench.round(number)?);
    }
    say("burst");
    bench.requests.burst(BURST_CONNECTIONS)?;
    std::thread::sleep(AFTER_BURST);
    let memory = Memory { at_rest_mb, rested: scale.rest, after_burst_mb: pss_mb(bench.server.pid())? };
    let postgres = bench.runtime.block_on(postgres_version(&bench.server.admin()?))?;
    let (floor_tool, floor_is_pgbench) = (bench.floor.tool_name(), bench.floor.is_pgbench());
    let results = Results { rounds, starts, memory, floor_tool, floor_is_pgbench };
    println!("Measured at commit {} on: {}", machine::commit(), machine::line(&postgres));
    println!("Load average before: {busy_before}; {} rounds of {} s.\n", arguments.rounds, arguments.seconds);
    print!("{}", report::table(&results));
    bench.stop()
}

/// One load and nothing else, on a server whose process ids are printed: for a profiler in another terminal.
pub fn hold(arguments: &LoadArguments) -> Result<()> {
    let home = Home::make()?;
    let server = Gpuaasd::start(&program(arguments.gpuaasd.as_deref())?, &home.0.join("data"))?;
    let requests = Requests::prepare(&server, Duration::from_secs_f64(arguments.seconds))?;
    println!("gpuaasd {} postmaster {}", server.pid(), server.postmaster()?);
    let sample = match arguments.what {
        What::ReadOneTenant => requests.read_one_tenant()?,
        What::ReadManyTenants => requests.read_many_tenants()?,
        What::Create => requests.create()?,
        What::Rename => requests.rename()?,
    };
    println!(
        "{:.0}/s, {:.1} gpuaasd + {:.1} PostgreSQL + {:.1} client CPU-µs each",
        sample.per_second(),
        sample.server_us(),
        sample.postgres_us(),
        sample.client_us()
    );
    server.stop()
}

/// A first start makes the database; each one after it is a second start, and measured.
fn start(program: &Path, data_dir: &Path, times: usize) -> Result<(Gpuaasd, Vec<StartTimes>)> {
    let mut server = Gpuaasd::start(program, data_dir)?;
    let mut starts = Vec::new();
    for _ in 0..times {
        server.stop()?;
        server = Gpuaasd::start(program, data_dir)?;
        starts.push(server.times);
    }
    Ok((server, starts))
}

fn prepare(server: Gpuaasd, home: &Path, size: Size, entries: u64) -> Result<Bench> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let admin = server.admin()?;
    let floor = Floor::prepare(&runtime, &admin, server.postmaster()?, size.time)?;
    let spine = Arc::new(runtime.block_on(Spine::open(&admin))?);
    let mut beside = admin;
    beside.dbname(floor::DATABASE);
    let flows = runtime.block_on(Flows::start(&spine, &beside))?;
    let requests = Requests::prepare(&server, size.time)?;
    let export = Export::write(home, entries)?;
    let (hello, nats) = (Hello::start()?, NatsServer::start()?);
    Ok(Bench { hello, runtime, server, floor, requests, spine, flows, export, nats, size })
}

impl Bench {
    /// In order: our connections end before the server is told to.
    fn stop(self) -> Result<()> {
        drop(self.flows);
        drop(self.spine);
        drop(self.runtime);
        self.server.stop()
    }
}

async fn postgres_version(admin: &tokio_postgres::Config) -> Result<String> {
    let (client, connection) = admin.connect(tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    Ok(client.query_one("SHOW server_version", &[]).await?.get(0))
}

/// The server somebody named, else the one beside us: cargo puts all binaries of a profile into one directory.
fn program(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(program) = named {
        return Ok(program.to_owned());
    }
    let program = std::env::current_exe()?.with_file_name("gpuaasd");
    if program.is_file() {
        return Ok(program);
    }
    Err(format!("{} is not there: build it with the same profile (`make bench` does)", program.display())
        .into())
}

/// A temporary directory that the account of PostgreSQL can pass through; gone with us.
struct Home(PathBuf);

impl Home {
    fn make() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("gpuaas-bench-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        let home = Self(path);
        for directory in [home.0.clone(), home.0.join("data")] {
            std::fs::create_dir_all(&directory)?;
            std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o711))?;
        }
        Ok(home)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn say(what: &str) {
    eprintln!("bench: {what}");
}
