//! `audit-sealer`: seals audit entries, signs checkpoints, and brings both elsewhere.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use audit::{Channel, Delivery, Destination, Replica, Sealer, Witness};
use db::Login;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;

use crate::config::AuditConfig;
use crate::process::Process;
use crate::{Failure, audit_key};

pub async fn start(process: &mut Process, config: &AuditConfig) -> Result<(), Failure> {
    let app = process.app()?;
    let key = audit_key::open(&app, &config.log_name, config.verifier_key_file.as_deref()).await?;
    let sealer = Sealer::new(
        process.internal(Login::Sealer, "audit-sealer")?,
        Arc::clone(&app.clock),
        app.db.nudges().clone(),
        app.settings.clone(),
        key,
    );
    let stop = process.stop.clone();
    process.spawn("audit sealer", async move { sealer.run(stop).await });
    if let Some(directory) = &config.replica_dir {
        let internal = process.internal(Login::Sealer, "audit-replica")?;
        let replica = Replica::new(internal, second_place(directory)?);
        start_delivery(process, "audit replica", Arc::new(replica))?;
    }
    let channel = match (&config.witness_url, &config.witness_git) {
        (Some(url), None) => Some(Channel::Http(url.clone())),
        (None, Some(clone)) => Some(Channel::Git(clone.clone())),
        (None, None) => None,
        (Some(_), Some(_)) => {
            return Err(Failure::new("audit.witness_url and audit.witness_git exclude each other: set one"));
        }
    };
    if let Some(channel) = channel {
        let witness = Witness::new(channel, app.settings.clone());
        start_delivery(process, "audit witness", Arc::new(witness))?;
    }
    Ok(())
}

fn start_delivery(
    process: &mut Process,
    task: &'static str,
    destination: Arc<dyn Destination>,
) -> Result<(), Failure> {
    let (base, internal) = (process.base.clone(), process.internal(Login::Sealer, "audit-delivery")?);
    let delivery = Delivery::new(internal, base.clock, base.settings, destination);
    let stop = process.stop.clone();
    process.spawn(task, async move { delivery.run(stop).await });
    Ok(())
}

/// A directory as an object store that keeps what it was given even if the power fails.
fn second_place(directory: &Path) -> Result<Arc<dyn ObjectStore>, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(format!("the audit log's second place {} cannot be used: {error}", directory.display()))
    };
    // Entries are tenants' data: nobody else on this machine reads them.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| failed(&error))?;
    let objects = LocalFileSystem::new_with_prefix(directory).map_err(|error| failed(&error))?;
    Ok(Arc::new(objects.with_fsync(true)))
}
