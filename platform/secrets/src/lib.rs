//! Secrets: named values and signing keys, sealed at rest, handed out for one purpose and never without a trace.
//!
//! Owns the schema `secrets`. Nothing else in the product stores a secret; other domains keep its id and ask for a
//! delivery when they need it. Tenants' secrets belong to a project, our own to the platform.
//!
//! Each version of a secret is sealed (AES-256-GCM) with a random data key of its own, and that key is wrapped with a
//! key encryption key that is not in the database: a file today, Vault or a KMS later, behind [`KeyEncryption`]. Who
//! has only the database, a backup or a replica has nothing. Rotating the key encryption key wraps the data keys anew
//! and touches no ciphertext (`rewrap.rs`).
//!
//! Invariants
//! - A ciphertext is bound to its secret's id, version, material, purpose, organization and project: moved to another
//!   row, or under another purpose, it does not open.
//! - A value leaves only through a delivery, and the delivery is committed to the log before it leaves.
//! - A secret is delivered only for the purpose it was stored for.
//! - After a rotation the older version can be delivered for the overlap, then no more; retiring ends all at once. What
//!   has ended is destroyed: data key and ciphertext are removed, not only marked.
//! - No audit entry, event, log line, error or idempotency record holds a value. [`types::Secret`] cannot be
//!   serialised; the one exception is the reply that shows a generated value once (`http.rs`).
//!
//! Must never: return a value over HTTP after the reply that made it, or call a key service inside a transaction.

mod cipher;
mod deliver;
mod destroy;
mod events;
mod http;
mod key_encryption;
mod key_file;
mod manage;
mod model;
mod policy;
mod rewrap;
mod seal;
mod settings;
mod signing;
mod store;

use std::sync::Arc;

use authz::{Action, Context, Decider, Permit, Resource, authorize};
use db::migrate::MigrationSet;
use db::{Db, EventInfo, Migration, Settings};
use domain::Domain;
use iam::{Iam, ProjectKind};
use types::{Entropy, Kind as _, Result};
use uuid::Uuid;

pub use deliver::{Delivered, DeliveryRequest};
pub use key_encryption::{DataKey, KeyEncryption, KeyError, KeyFuture, Keyring};
pub use key_file::{FileKey, KeyFileError, MissingKey};
pub use manage::{Generated, NewSecret, SecretFilter};
pub use model::{
    Delivery, DeliveryId, Holder, Material, Purpose, PurposeError, SecretId, SecretInfo, SecretState,
};
pub use policy::POLICY;
pub use rewrap::{Rewrapped, keys_in_use};
pub use settings::ROTATION_OVERLAP_SECONDS;
pub use signing::{PublicKey, SigningKey};

/// The secrets domain. Cheap to clone.
#[derive(Clone)]
pub struct Secrets {
    db: Db,
    settings: Settings,
    decider: Arc<dyn Decider>,
    entropy: Arc<dyn Entropy>,
    iam: Iam,
    keys: Arc<Keyring>,
}

impl Secrets {
    pub fn new(
        db: Db,
        settings: Settings,
        decider: Arc<dyn Decider>,
        entropy: Arc<dyn Entropy>,
        iam: Iam,
        keys: Arc<Keyring>,
    ) -> Self {
        Self { db, settings, decider, entropy, iam, keys }
    }

    /// What the server registers.
    pub fn domain(&self) -> Domain {
        Domain {
            name: "secrets",
            migrations: MIGRATION_SET,
            endpoints: http::endpoints(self),
            tags: http::TAGS,
            events: events(),
            errors: model::errors(),
            settings: settings::settings(),
            projections: Vec::new(),
        }
    }

    /// The same work without the request's idempotency key. What a caller does through us as a part of its own request
    /// must neither use up its key nor be skipped as a replay: a second delivery is a second line in the log.
    fn apart(context: &Context) -> Context {
        Context { idempotency: None, ..context.clone() }
    }

    /// Asks for `A` on a holder's secret. A missing project is told from a foreign one only to those who may know.
    async fn permit<A: Action>(
        &self,
        context: &Context,
        holder: Holder,
        id: Option<SecretId>,
    ) -> Result<Permit<A>> {
        let id = id.map(|id| *id.as_uuid());
        let resource = match holder {
            Holder::Platform => Resource { id, ..Resource::platform(model::SecretKind::NAME) },
            Holder::Project(project) => {
                let project = self.iam.project_resource(project).await?;
                Resource { kind: model::SecretKind::NAME, id, ..project }
            }
        };
        let permit = authorize::<A>(&*self.decider, context, resource)?;
        if resource.organization == Some(Uuid::nil()) {
            return Err(model::not_found(ProjectKind::NAME));
        }
        Ok(permit)
    }
}

pub const MIGRATION_SET: MigrationSet = MigrationSet {
    domain: "secrets",
    migrations: &[Migration {
        version: 1,
        name: "secrets",
        sql: include_str!("../migrations/0001_secrets.sql"),
    }],
};

fn events() -> Vec<EventInfo> {
    vec![
        EventInfo::of::<events::SecretCreated>(),
        EventInfo::of::<events::SecretRotated>(),
        EventInfo::of::<events::SecretRetired>(),
        EventInfo::of::<events::SecretDelivered>(),
        EventInfo::of::<events::SecretVersionDestroyed>(),
        EventInfo::of::<events::SecretRewrapped>(),
    ]
}

#[cfg(test)]
mod tests;
