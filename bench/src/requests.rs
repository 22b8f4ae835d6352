//! The requests the aims are about, as load.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Deserialize;

use crate::Result;
use crate::client::Connection;
use crate::cpu::Processes;
use crate::gpuaasd::Gpuaasd;
use crate::load::{CONNECTIONS, drive, measured};
use crate::sample::Sample;

/// Organizations for the read that changes tenant with every request, and for the renames.
const TENANTS: usize = 64;

pub struct Requests {
    address: SocketAddr,
    processes: Processes,
    time: Duration,
    key: String,
    demo: String,
    tenants: Vec<String>,
    /// Makes names and idempotency keys that were never used before.
    serial: AtomicU64,
}

impl Requests {
    /// Makes the organizations the loads work on.
    pub fn prepare(server: &Gpuaasd, time: Duration) -> Result<Self> {
        let mut requests = Self {
            address: server.address,
            processes: server.processes()?,
            time,
            key: server.key.clone(),
            demo: server.ready.org.clone(),
            tenants: Vec::new(),
            serial: AtomicU64::new(0),
        };
        let mut connection = Connection::open(server.address)?;
        for _ in 0..TENANTS {
            let mut request = Vec::new();
            requests.write_create(&mut request);
            requests.tenants.push(created(connection.succeed(&request)?)?);
        }
        Ok(requests)
    }

    /// The same organization all the time: connections keep the tenant they are set to.
    pub fn read_one_tenant(&self) -> Result<Sample> {
        self.measure(|_, request| self.write_read(request, &self.demo))
    }

    /// Another organization each time: most reads first set their connection to another tenant.
    pub fn read_many_tenants(&self) -> Result<Sample> {
        self.measure(|_, request| {
            let turn = self.serial.fetch_add(1, Ordering::Relaxed) as usize;
            self.write_read(request, &self.tenants[turn % self.tenants.len()]);
        })
    }

    pub fn create(&self) -> Result<Sample> {
        self.measure(|_, request| self.write_create(request))
    }

    /// Each connection renames an organization of its own: what is measured is a change, not a queue for a row.
    pub fn rename(&self) -> Result<Sample> {
        self.measure(|connection, request| {
            let name = self.unused();
            let path = format!("/{}", self.tenants[connection]);
            self.write(request, "PATCH /api/v1/orgs", &path, "", &format!(r#"{{"name":"renamed {name}"}}"#));
        })
    }

    /// Many connections at once, for what it does to the server's memory.
    pub fn burst(&self, connections: usize) -> Result<()> {
        drive(self.address, connections, self.time, |_, request| self.write_read(request, &self.demo))?;
        drive(self.address, connections, self.time, |_, request| self.write_create(request))?;
        Ok(())
    }

    /// A request that creates an organization of an unused name.
    pub fn write_create(&self, request: &mut Vec<u8>) {
        let name = self.unused();
        let header = format!("idempotency-key: bench-{name}\r\n");
        self.write(request, "POST /api/v1/orgs", "", &header, &format!(r#"{{"name":"bench {name}"}}"#));
    }

    /// A request for the stream of events from now on.
    pub fn follow_events(&self) -> Vec<u8> {
        let key = &self.key;
        let head = "GET /api/v1/events HTTP/1.1\r\nhost: bench\r\naccept: text/event-stream";
        format!("{head}\r\nauthorization: Bearer {key}\r\n\r\n").into_bytes()
    }

    fn measure(&self, write: impl Fn(usize, &mut Vec<u8>) + Sync) -> Result<Sample> {
        measured(self.processes, || drive(self.address, CONNECTIONS, self.time, write))
    }

    fn write_read(&self, request: &mut Vec<u8>, organization: &str) {
        for part in ["GET /api/v1/orgs/", organization, " HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer "]
        {
            request.extend_from_slice(part.as_bytes());
        }
        request.extend_from_slice(self.key.as_bytes());
        request.extend_from_slice(b"\r\n\r\n");
    }

    fn write(&self, request: &mut Vec<u8>, operation: &str, path: &str, header: &str, body: &str) {
        let (key, length) = (&self.key, body.len());
        let text = format!(
            "{operation}{path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n{header}\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        request.extend_from_slice(text.as_bytes());
    }

    fn unused(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }
}

/// The id in the reply to a create.
pub fn created(body: &[u8]) -> Result<String> {
    #[derive(Deserialize)]
    struct Created {
        id: String,
    }
    Ok(serde_json::from_slice::<Created>(body)?.id)
}
