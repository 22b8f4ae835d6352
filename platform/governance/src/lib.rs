//! Governance: by which rules the platform, its organizations and their projects are run. So far: their settings.
//!
//! Owns the schema `governance`, which has no table yet: settings are read by every process, so they are kept in
//! `spine.setting` by `kernel/db`, together with the rules for which value counts.
//!
//! Invariants
//! - A value is stored only if it counts: it has the setting's type, lies within its bounds, may be set at that place,
//!   and is not looser than what holds outside if the setting forbids that.
//! - Every change has an audit entry with the value before and after; it belongs to the organization whose setting it is.
//! - A tenant sees the settings it can have, and of the platform's only the value, not who set it.
//! - A setting that needs evidence is not set without it.
//!
//! Must never: let a tenant change what holds for another, or decide by itself which stored value counts.

mod events;
mod http;
mod model;
mod policy;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use authz::Decider;
use db::migrate::MigrationSet;
use db::{Db, EventInfo, Settings};
use domain::Domain;
use iam::Iam;

pub use model::{
    EffectiveSetting, Holder, Layer, SETTING_INVALID, SETTING_NEEDS_EVIDENCE, SETTING_UNKNOWN, SettingState,
};
pub use policy::POLICY;
pub use settings::Evidence;

/// The governance domain. Cheap to clone.
#[derive(Clone)]
pub struct Governance {
    db: Db,
    settings: Settings,
    decider: Arc<dyn Decider>,
    iam: Iam,
    evidence: Arc<HashMap<&'static str, Arc<dyn Evidence>>>,
}

impl Governance {
    /// `evidence`: who can tell, by the key of the setting that needs it.
    pub fn new(
        db: Db,
        settings: Settings,
        decider: Arc<dyn Decider>,
        iam: Iam,
        evidence: Vec<(&'static str, Arc<dyn Evidence>)>,
    ) -> Self {
        Self { db, settings, decider, iam, evidence: Arc::new(evidence.into_iter().collect()) }
    }

    /// What the server registers.
    pub fn domain(&self) -> Domain {
        Domain {
            name: "governance",
            migrations: MIGRATION_SET,
            endpoints: http::endpoints(self),
            tags: http::TAGS,
            events: events(),
            errors: model::errors(),
            settings: Vec::new(),
            projections: Vec::new(),
        }
    }
}

pub const MIGRATION_SET: MigrationSet = MigrationSet { domain: "governance", migrations: &[] };

fn events() -> Vec<EventInfo> {
    vec![EventInfo::of::<events::SettingSet>(), EventInfo::of::<events::SettingCleared>()]
}
