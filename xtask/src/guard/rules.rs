//! The families of rules, one file each, and the catalogue of everything they ban.

mod addresses;
mod bookkeeping;
mod bus;
mod clock;
mod edges;
mod errors;
mod events;
mod http;
mod leftovers;
mod listeners;
mod literals;
mod migrations;
mod output;
mod pipelines;
mod routes;
mod schemas;
mod shape;
mod sql_place;

use super::finding::{Ban, Finding};
use super::ledger;
use super::project::Project;

/// Rules that look at the same thing for related reasons.
pub struct Family {
    pub bans: &'static [&'static Ban],
    pub check: fn(&Project, &mut Vec<Finding>),
}

pub static FAMILIES: &[Family] = &[
    edges::FAMILY,
    schemas::FAMILY,
    sql_place::FAMILY,
    events::FAMILY,
    routes::FAMILY,
    http::FAMILY,
    clock::FAMILY,
    bus::FAMILY,
    literals::FAMILY,
    output::FAMILY,
    listeners::FAMILY,
    errors::FAMILY,
    shape::FAMILY,
    leftovers::FAMILY,
    addresses::FAMILY,
    pipelines::FAMILY,
    migrations::FAMILY,
    bookkeeping::FAMILY,
];

/// A row of tokens as people write it.
fn spelling(tokens: &[&str]) -> String {
    tokens.join(" ").replace(" :: ", "::").replace(" ::", "")
}

/// Every ban there is.
pub fn bans() -> impl Iterator<Item = &'static Ban> {
    FAMILIES.iter().flat_map(|family| family.bans).chain(ledger::BANS).copied()
}
