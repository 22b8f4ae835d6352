//! CPU time, from the kernel's own books.
//!
//! `/proc/PID/stat` counts a process's user and system time, over all its threads, in ticks of 10 ms; over the seconds
//! of a load that is well below the noise. PostgreSQL is a family of processes that come and go, and is counted whole:
//! the living children one by one, the dead ones through their postmaster, which inherits their time when it reaps them.
//! That includes checkpoints, the WAL writer and vacuum: they are part of what a write costs, here and in the floor.

use std::fs;
use std::ops::Sub;

use crate::Result;

// fixed: USER_HZ is part of the kernel's interface to programs
const TICK_US: f64 = 10_000.0;

/// CPU time spent so far, or between two looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cpu {
    pub server_us: f64,
    pub postgres_us: f64,
    pub client_us: f64,
}

impl Sub for Cpu {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            server_us: self.server_us - before.server_us,
            postgres_us: self.postgres_us - before.postgres_us,
            client_us: self.client_us - before.client_us,
        }
    }
}

/// Whose time is counted. The client is always this process and the children it has waited for (pgbench).
#[derive(Debug, Clone, Copy, Default)]
pub struct Processes {
    pub server: Option<u32>,
    pub postmaster: Option<u32>,
}

impl Processes {
    pub fn cpu(&self) -> Result<Cpu> {
        let server_us = match self.server {
            Some(pid) => Times::of(pid)?.own_us(),
            None => 0.0,
        };
        let postgres_us = match self.postmaster {
            Some(pid) => family_us(pid)?,
            None => 0.0,
        };
        let client = Times::of(std::process::id())?;
        Ok(Cpu { server_us, postgres_us, client_us: client.own_us() + client.reaped_us() })
    }
}

fn family_us(postmaster: u32) -> Result<f64> {
    let mut living = 0.0;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that ends while we look is counted through its parent the next time.
        if let Ok(times) = Times::of(pid)
            && times.parent == postmaster
        {
            living += times.own_us();
        }
    }
    let parent = Times::of(postmaster)?;
    Ok(parent.own_us() + parent.reaped_us() + living)
}

/// The fields of `/proc/PID/stat` we need, in ticks.
#[derive(Debug, PartialEq)]
struct Times {
    parent: u32,
    own: u64,
    /// Of children that have ended and were waited for.
    reaped: u64,
}

impl Times {
    fn of(pid: u32) -> Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Self::parse(&text).ok_or_else(|| format!("/proc/{pid}/stat reads {text:?}").into())
    }

    /// The second field is the program's name in brackets and may hold anything, so counting starts behind it: the
    /// state is then field 0, the parent 1, and user and system time, own and of reaped children, are 11 to 14.
    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own: ticks(11)? + ticks(12)?,
            reaped: ticks(13)? + ticks(14)?,
        })
    }

    fn own_us(&self) -> f64 {
        self.own as f64 * TICK_US
    }

    fn reaped_us(&self) -> f64 {
        self.reaped as f64 * TICK_US
    }
}

/// A process's share of the machine's memory, in megabytes: shared pages count by how many share them.
pub fn pss_mb(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = fs::read_to_string(&path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    Ok(kib.ok_or_else(|| format!("{path} has no Pss line"))? / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "42 (post) gres: x) S 7 1 1 0 -1 4194560 9 9 0 0 100 23 5 6 20 0 1 0 99 1 1";
        assert_eq!(Times::parse(stat), Some(Times { parent: 7, own: 123, reaped: 11 }));
        assert_eq!(Times::parse("42 (x) S 7"), None);
    }
}
