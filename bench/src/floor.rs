//! What PostgreSQL alone can do on this machine, in this minute: pgbench's two standard loads, prepared statements,
//! eight connections, on the cluster that serves gpuaasd and in a database of its own.
//!
//! `pgbench` ships beside the server in most packages. Where it does not (the packaged PostgreSQL of `make up` has only
//! the server), the same statements are sent by `statements.rs` over the driver gpuaasd uses, and the table says so.

mod pgbench;
mod statements;

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_postgres::{Config, NoTls};

use crate::Result;
use crate::cpu::Processes;
use crate::load::measured;
use crate::sample::Sample;

pub const DATABASE: &str = "bench_floor";

/// pgbench's unit of size. As many branches as clients, or the write load would measure a queue for one row.
const SCALE: u32 = 8;
/// The reads stay within the first unit's accounts. All eight units are larger than the server's shared buffers, and
/// copying from the page cache would make the floor dearer than the hot row we compare with it.
const SELECT_SCALE: u32 = 1;

/// pgbench's standard loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// `-S`: one row by its key.
    Select,
    /// The default, "TPC-B (sort of)": three updates, a select and an insert in one transaction.
    Transfer,
}

enum Tool {
    Pgbench(PathBuf),
    Driver,
}

pub struct Floor {
    tool: Tool,
    admin: Config,
    processes: Processes,
    time: Duration,
}

impl Floor {
    /// Makes the database and fills it.
    pub fn prepare(runtime: &Runtime, admin: &Config, postmaster: u32, time: Duration) -> Result<Self> {
        runtime.block_on(create_database(admin))?;
        let mut admin = admin.clone();
        admin.dbname(DATABASE);
        let tool = match pgbench::beside(postmaster) {
            Some(program) => {
                pgbench::fill(&program, &admin)?;
                Tool::Pgbench(program)
            }
            None => {
                runtime.block_on(statements::fill(&admin))?;
                Tool::Driver
            }
        };
        let processes = Processes { server: None, postmaster: Some(postmaster) };
        Ok(Self { tool, admin, processes, time })
    }

    pub fn measure(&self, runtime: &Runtime, load: Load) -> Result<Sample> {
        measured(self.processes, || match &self.tool {
            Tool::Pgbench(program) => pgbench::run(program, &self.admin, load, self.time),
            Tool::Driver => runtime.block_on(statements::run(&self.admin, load, self.time)),
        })
    }

    /// What made the load, for the table.
    pub fn tool_name(&self) -> &'static str {
        match self.tool {
            Tool::Pgbench(_) => "pgbench",
            Tool::Driver => "tokio-postgres (no pgbench here)",
        }
    }

    /// The aims are ratios to pgbench. Another client is dearer, and would make us look better than we are.
    pub fn is_pgbench(&self) -> bool {
        matches!(self.tool, Tool::Pgbench(_))
    }
}

async fn create_database(admin: &Config) -> Result<()> {
    let (client, connection) = admin.connect(NoTls).await?;
    let driver = tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {DATABASE}")).await?;
    drop(client);
    driver.await??;
    Ok(())
}
