//! From a change to whoever follows events: one request at a time, and a listener on the event stream.
//!
//! The commit itself cannot be seen from outside. It lies between sending the request and reading its reply, so two
//! times are given: from the reply (a lower bound, and what a caller who waits for the event notices) and from the
//! request (an upper bound, the whole mutation included).

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::Result;
use crate::client::Connection;
use crate::gpuaasd::Gpuaasd;
use crate::requests::{Requests, created};
use crate::sample::Latencies;

// fixed: an event that takes this long is lost, which is a failure and not a slow round
const LOST: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct EventTimes {
    pub from_reply: Latencies,
    pub from_request: Latencies,
}

/// Makes changes one after the other and waits for the event of each.
pub fn measure(server: &Gpuaasd, requests: &Requests, changes: usize) -> Result<EventTimes> {
    let events = listen(Connection::open(server.address)?.stream(&requests.follow_events())?)?;
    let mut connection = Connection::open(server.address)?;
    let mut times = EventTimes { from_reply: Latencies::default(), from_request: Latencies::default() };
    let mut request = Vec::new();
    for _ in 0..changes {
        request.clear();
        requests.write_create(&mut request);
        let sent = Instant::now();
        let organization = created(connection.succeed(&request)?)?;
        let replied = Instant::now();
        let seen = wait_for(&events, &organization)?;
        times.from_request.push(seen - sent);
        times.from_reply.push_ms(match seen.checked_duration_since(replied) {
            Some(after) => after.as_secs_f64() * 1e3,
            None => -((replied - seen).as_secs_f64() * 1e3),
        });
    }
    Ok(times)
}

/// Reads events in a thread of its own, so that one which overtakes its reply is seen when it comes. Returns once the
/// stream is open: what happens from then on is in it.
fn listen(stream: TcpStream) -> Result<Receiver<(Instant, String)>> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    while !line.starts_with(": connected") {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Err("the event stream ended before it began".into());
        }
    }
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in lines.lines().map_while(std::io::Result::ok).filter(|line| line.starts_with("data: ")) {
            if sender.send((Instant::now(), line)).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}

fn wait_for(events: &Receiver<(Instant, String)>, organization: &str) -> Result<Instant> {
    loop {
        let (seen, data) =
            events.recv_timeout(LOST).map_err(|_| format!("the event about {organization} did not come"))?;
        if data.contains(organization) {
            return Ok(seen);
        }
    }
}
