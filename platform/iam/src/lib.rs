//! Identity: organizations, their projects, and who is calling.
//!
//! Owns the schema `iam`. Organizations are the tenants; a project is where their work lives. Nothing is ever deleted:
//! archiving ends a thing and frees its name, its history stays readable.
//!
//! Invariants
//! - A name is unique among the organizations that are not archived, and among such projects of one organization
//!   (partial unique indexes).
//! - A project belongs to one organization for ever; an archived organization has no active project.
//! - `generation` counts changes; the row, its audit entry and its event carry the same number.
//! - Keys, sessions and sign-in codes are stored only as hashes; a sign-in code works once.
//!
//! Must never: hand out another tenant's data or its existence (missing and foreign are one answer), or store a
//! credential in the clear.

mod archive;
mod bootstrap;
mod credentials;
mod events;
mod grants;
mod http;
mod invitations;
mod keys;
mod model;
mod organizations;
mod people;
mod policy;
mod projects;
mod remembered;
pub mod revocation;
mod roles;
mod store;
mod summary;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::events::Feed;
use authz::Decider;
use db::migrate::MigrationSet;
use db::{Db, EventInfo, Migration, Settings};
use domain::Domain;
use types::Entropy;

pub use archive::ArchiveOrganization;
pub use bootstrap::{Seeded, SeededKey};
pub use credentials::{Credentials, SESSION_COOKIE};
pub use model::{ARCHIVED, NAME_TAKEN, Organization, OrganizationId, Project, ProjectId, ProjectKind};
pub use policy::{POLICY, SYSTEM_BOOTSTRAP};
pub use remembered::{Loaded, REVOCATION_UNKNOWN, Remembered};
pub use revocation::Revocations;
pub use roles::{ORGANIZATION_OWNER, PLATFORM_OPERATOR, ROLES, role};

/// The identity domain. Cheap to clone.
#[derive(Clone)]
pub struct Iam {
    db: Db,
    feed: Feed,
    settings: Settings,
    decider: Arc<dyn Decider>,
    entropy: Arc<dyn Entropy>,
    organizations_of_projects: moka::sync::Cache<uuid::Uuid, uuid::Uuid>,
    /// Are replies sent over TLS? Decides how a session cookie is named and marked.
    tls: bool,
}

impl Iam {
    pub fn new(
        db: Db,
        feed: Feed,
        settings: Settings,
        decider: Arc<dyn Decider>,
        entropy: Arc<dyn Entropy>,
        tls: bool,
    ) -> Self {
        // fixed: bounds memory; an entry is two ids and never changes, a miss costs one look-up
        let organizations_of_projects = moka::sync::Cache::new(100_000);
        Self { db, feed, settings, decider, entropy, organizations_of_projects, tls }
    }

    /// What the server registers.
    pub fn domain(&self) -> Domain {
        Domain {
            name: "iam",
            migrations: MIGRATION_SET,
            endpoints: http::endpoints(self),
            tags: http::TAGS,
            events: events(),
            errors: [model::errors(), vec![&remembered::REVOCATION_UNKNOWN]].concat(),
            settings: [credentials::settings(), revocation::settings(), remembered::settings()].concat(),
            projections: vec![Arc::new(summary::OrganizationSummary)],
        }
    }
}

pub const MIGRATION_SET: MigrationSet = MigrationSet {
    domain: "iam",
    migrations: &[
        Migration { version: 1, name: "iam", sql: include_str!("../migrations/0001_iam.sql") },
        Migration { version: 2, name: "revocation", sql: include_str!("../migrations/0002_revocation.sql") },
    ],
};

fn events() -> Vec<EventInfo> {
    vec![
        EventInfo::of::<events::OrganizationCreated>(),
        EventInfo::of::<events::OrganizationRenamed>(),
        EventInfo::of::<events::OrganizationArchiving>(),
        EventInfo::of::<events::OrganizationArchived>(),
        EventInfo::of::<events::ProjectCreated>(),
        EventInfo::of::<events::ProjectRenamed>(),
        EventInfo::of::<events::ProjectArchived>(),
        EventInfo::of::<events::PersonCreated>(),
        EventInfo::of::<events::GrantCreated>(),
        EventInfo::of::<events::GrantEnded>(),
        EventInfo::of::<events::InvitationCreated>(),
        EventInfo::of::<events::InvitationAccepted>(),
        EventInfo::of::<events::InvitationWithdrawn>(),
        EventInfo::of::<events::KeyCreated>(),
        EventInfo::of::<events::KeyRevoked>(),
        EventInfo::of::<events::SessionCreated>(),
        EventInfo::of::<events::SignInLinkCreated>(),
    ]
}
