//! What a domain hands to the server: everything it owns, in one value.
//!
//! The server knows domains only as a list of these; adding one is adding a line. Contracts, catalogues and
//! references are made from the same list, so nothing a domain owns can be forgotten in them.

mod paging;

use std::sync::Arc;

use db::migrate::MigrationSet;
use db::{EventInfo, SettingInfo};
use events::Projection;
use types::ErrorCode;
use web::Endpoint;

pub use paging::{page, page_start};

/// A registered domain.
pub struct Domain {
    /// Also the name of its PostgreSQL schema.
    pub name: &'static str,
    pub migrations: MigrationSet,
    pub endpoints: Vec<Endpoint>,
    /// Groups of operations: name, and what they are about.
    pub tags: &'static [(&'static str, &'static str)],
    pub events: Vec<EventInfo>,
    pub errors: Vec<&'static ErrorCode>,
    pub settings: Vec<SettingInfo>,
    pub projections: Vec<Arc<dyn Projection>>,
}
