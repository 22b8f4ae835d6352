//! Load: some connections, each with one request in flight at any time, for a while.
//!
//! A thread per connection with blocking calls is the cheapest generator there is for eight connections, and the
//! generator shares the machine with what it measures.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::Result;
use crate::client::Connection;
use crate::cpu::Processes;
use crate::sample::Sample;

/// What pgbench is told with `-c 8`, too.
pub const CONNECTIONS: usize = 8;

/// What a load leaves behind (events to sequence, read models to renew) is part of its cost: CPU time is read when that
/// is done. The server's workers react within milliseconds.
// fixed: a hundred times the reaction of what it waits for
const SETTLE: Duration = Duration::from_millis(300);

/// Runs `load`, which tells how much it did and how long that took, and counts the CPU time it cost.
pub fn measured(processes: Processes, load: impl FnOnce() -> Result<(u64, Duration)>) -> Result<Sample> {
    let before = processes.cpu()?;
    let (done, elapsed) = load()?;
    std::thread::sleep(SETTLE);
    if done == 0 {
        return Err("a load got nothing done".into());
    }
    Ok(Sample { done, elapsed, cpu: processes.cpu()? - before })
}

/// Sends requests on `connections` connections for `time`. `write` makes the next request of a connection; anything
/// but success ends the run.
pub fn drive(
    address: SocketAddr,
    connections: usize,
    time: Duration,
    write: impl Fn(usize, &mut Vec<u8>) + Sync,
) -> Result<(u64, Duration)> {
    let ready = Barrier::new(connections + 1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|number| {
                let (ready, write) = (&ready, &write);
                scope.spawn(move || {
                    let opened = Connection::open(address);
                    ready.wait();
                    converse(opened?, time, |request| write(number, request))
                })
            })
            .collect();
        ready.wait();
        let begun = Instant::now();
        let mut done = 0;
        for worker in workers {
            done += worker.join().map_err(|_| "a connection's thread panicked")??;
        }
        Ok((done, begun.elapsed()))
    })
}

fn converse(mut connection: Connection, time: Duration, write: impl Fn(&mut Vec<u8>)) -> Result<u64> {
    let begun = Instant::now();
    let mut request = Vec::new();
    let mut done = 0;
    while begun.elapsed() < time {
        request.clear();
        write(&mut request);
        connection.succeed(&request)?;
        done += 1;
    }
    Ok(done)
}
