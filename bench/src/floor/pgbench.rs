//! The floor by `pgbench` itself.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::{DATABASE, Load, SCALE, SELECT_SCALE};
use crate::Result;
use crate::load::CONNECTIONS;

/// The `pgbench` in the directory of the running server's program.
pub fn beside(postmaster: u32) -> Option<PathBuf> {
    let server = std::fs::read_link(format!("/proc/{postmaster}/exe")).ok()?;
    Some(server.parent()?.join("pgbench")).filter(|program| program.is_file())
}

pub fn fill(program: &PathBuf, admin: &Config) -> Result<()> {
    let mut command = command(program, admin)?;
    command.args(["--initialize", "--quiet", "--scale", &SCALE.to_string(), DATABASE]);
    finish(command).map(drop)
}

/// How many transactions were made, and in what time: pgbench counts its own start-up out.
pub fn run(program: &PathBuf, admin: &Config, load: Load, time: Duration) -> Result<(u64, Duration)> {
    let mut command = command(program, admin)?;
    command.args(["--protocol", "prepared", "--no-vacuum", "--client", &CONNECTIONS.to_string(), "--time"]);
    command.arg((time.as_secs_f64().round().max(1.0) as u64).to_string());
    if load == Load::Select {
        command.args(["--select-only", "--define", &format!("scale={SELECT_SCALE}")]);
    }
    command.arg(DATABASE);
    let begun = Instant::now();
    let said = finish(command)?;
    let took = begun.elapsed();
    let number = |before: &str| -> Option<f64> {
        let rest = said.split_once(before)?.1.trim_start();
        rest.split(|c: char| !(c.is_ascii_digit() || c == '.')).next()?.parse().ok()
    };
    let done = number("transactions actually processed:").ok_or("pgbench did not say what it did")?;
    let rate = number("tps =").filter(|rate| *rate > 0.0);
    let elapsed = rate.map_or(took, |rate| Duration::from_secs_f64(done / rate));
    Ok((done as u64, elapsed))
}

fn command(program: &PathBuf, admin: &Config) -> Result<Command> {
    let Some(Host::Unix(socket)) = admin.get_hosts().first() else {
        return Err("the embedded server is reached by its socket".into());
    };
    let mut command = Command::new(program);
    command.env("PGHOST", socket).env("PGUSER", admin.get_user().unwrap_or("postgres"));
    // In the environment, which only root and we can read, and not on the command line, which everybody can.
    command.env("PGPASSWORD", String::from_utf8_lossy(admin.get_password().unwrap_or_default()).as_ref());
    command.stdin(Stdio::null());
    Ok(command)
}

fn finish(mut command: Command) -> Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("pgbench failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
