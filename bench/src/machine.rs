//! What the numbers were measured on: without it they mean nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

/// One line for the top of the table.
pub fn line(postgres_version: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let build =
        if cfg!(debug_assertions) { "**debug build: the numbers mean nothing**" } else { "release build" };
    format!("{} · {cores} cores · Linux {kernel} · PostgreSQL {postgres_version} · {build}", processor())
}

/// How busy the machine is: 1, 5 and 15 minutes.
pub fn load_average() -> String {
    read("/proc/loadavg").split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// The version of the code, for a table that is kept.
pub fn commit() -> String {
    let output = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output();
    let commit = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    commit.map_or_else(|| "unknown".to_owned(), |bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
}

fn processor() -> String {
    let text = read("/proc/cpuinfo");
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
