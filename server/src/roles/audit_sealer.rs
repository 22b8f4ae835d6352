//! `audit-sealer`: seals audit entries, signs checkpoints, brings both elsewhere, and prunes what is old and safe there.

use std::sync::Arc;

use audit::{Channel, Delivery, Destination, Pruner, Replica, Sealer, Witness};
use blob::Blobs;
use db::Login;

use crate::Failure;
use crate::audit_key::LogKeys;
use crate::config::AuditConfig;
use crate::process::Process;

pub async fn start(process: &mut Process, config: &AuditConfig) -> Result<(), Failure> {
    let app = process.app()?;
    let keys = LogKeys::open(&app, &config.log_name, config.verifier_key_file.as_deref()).await?;
    let sealer = Sealer::new(
        process.internal(Login::Sealer, "audit-sealer")?,
        Arc::clone(&app.clock),
        app.db.nudges().clone(),
        app.settings.clone(),
        Arc::new(keys),
    );
    let stop = process.stop.clone();
    process.spawn("audit sealer", async move { sealer.run(stop).await });
    if let Some(place) = &config.replica {
        let blobs = Blobs::open(place)
            .map_err(|error| Failure::new(format!("the audit log's second place cannot be used: {error}")))?;
        if config.prune {
            let pruner = Pruner::new(
                process.internal(Login::Sealer, "audit-pruner")?,
                Arc::clone(&app.clock),
                app.settings.clone(),
                blobs.clone(),
            );
            let stop = process.stop.clone();
            process.spawn("audit pruner", async move { pruner.run(stop).await });
        }
        let replica = Replica::new(process.internal(Login::Sealer, "audit-replica")?, blobs);
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
    process.base.troubles.watch(delivery.trouble());
    let stop = process.stop.clone();
    process.spawn(task, async move { delivery.run(stop).await });
    Ok(())
}
