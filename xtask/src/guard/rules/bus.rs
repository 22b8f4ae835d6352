//! Only the relay speaks to the message bus.
//!
//! An event published beside the transaction that caused it can exist without its cause, or be lost with the process.
//! The durable log is in PostgreSQL; the relay alone carries it to NATS, in order, with the id that drops duplicates.

use super::Family;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::Project;

pub const FAMILY: Family = Family { bans: &[&BUS], check };

static BUS: Ban = Ban::new(
    "bus",
    "an event published beside its transaction can exist without its cause, or be lost with the process",
    "record the event with `tx.record(…)`; the relay publishes it",
);

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust() {
        if let Some(index) = source.find(&["async_nats"]).first() {
            findings.push(BUS.at(&file.path, source.line(*index), "async_nats", "use of async_nats"));
        }
    }
}
