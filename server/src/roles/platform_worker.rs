//! `platform-worker`: flows and read models of the platform's domains, the end of old secrets, and the partitions of
//! the spine.

use std::sync::Arc;
use std::time::Duration;

use db::PartitionedTable;
use flow::Runner;
use iam::ArchiveOrganization;

use crate::Failure;
use crate::assemble::App;
use crate::process::Process;

pub fn start(process: &mut Process) -> Result<(), Failure> {
    let app = process.app()?;
    start_flows(process, &app);
    start_projections(process, &app);
    start_destroying(process, &app);
    let stop = process.stop.clone();
    process.spawn("partitions", async move {
        while !stop.is_cancelled() {
            keep_partitions(&app).await;
            prune_revocations(&app).await;
            tokio::select! {
                () = tokio::time::sleep(PARTITION_SWEEP) => {}
                () = stop.cancelled() => {}
            }
        }
    });
    Ok(())
}

// fixed: partitions are made days ahead, so an hour is soon enough
const PARTITION_SWEEP: Duration = Duration::from_secs(3600);
// fixed: what has ended cannot be delivered any more; a minute longer in the database is no difference
const ENDED_SWEEP: Duration = Duration::from_secs(60);
// fixed: how often overdue flows are counted for the metrics
const FLOW_SWEEP: Duration = Duration::from_secs(30);

fn start_flows(process: &mut Process, app: &App) {
    let machine = ArchiveOrganization { iam: app.iam.clone() };
    let internal = app.db.internal("iam.archiver");
    let runner = Arc::new(Runner::new(
        machine,
        internal,
        Arc::clone(&app.clock),
        app.db.nudges().clone(),
        app.settings.clone(),
    ));
    let (running, stop) = (Arc::clone(&runner), process.stop.clone());
    process.spawn("archive flow", async move { running.run(stop).await });
    let stop = process.stop.clone();
    process.spawn("archive flow care", async move {
        while !stop.is_cancelled() {
            if let Err(error) = runner.look_after().await {
                tracing::warn!(%error, "flows could not be looked after");
            }
            tokio::select! {
                () = tokio::time::sleep(FLOW_SWEEP) => {}
                () = stop.cancelled() => {}
            }
        }
    });
}

/// Versions of secrets that can no longer be delivered are destroyed.
fn start_destroying(process: &mut Process, app: &Arc<App>) {
    let (app, stop) = (Arc::clone(app), process.stop.clone());
    process.spawn("ended secrets", async move {
        while !stop.is_cancelled() {
            match app.secrets.destroy_ended().await {
                Ok(0) => {}
                Ok(destroyed) => tracing::info!(destroyed, "ended versions of secrets destroyed"),
                Err(error) => tracing::warn!(%error, "ended versions of secrets could not be destroyed"),
            }
            tokio::select! {
                () = tokio::time::sleep(ENDED_SWEEP) => {}
                () = stop.cancelled() => {}
            }
        }
    });
}

fn start_projections(process: &mut Process, app: &Arc<App>) {
    for projection in app.domains.iter().flat_map(|domain| domain.projections.iter().cloned()) {
        let (app, stop) = (Arc::clone(app), process.stop.clone());
        process.spawn("projection", async move {
            let internal = app.db.internal("projection");
            events::run_projection(&*projection, &internal, &app.feed, &app.settings, stop).await;
        });
    }
}

/// Makes partitions ahead and drops old ones. A failure is logged and tried again later.
pub async fn keep_partitions(app: &App) {
    let internal = app.db.internal("partitions");
    let now = app.clock.now();
    for table in PartitionedTable::ALL {
        if let Err(error) = table.make_ahead(&internal, now).await {
            tracing::warn!(table = table.name, %error, "partitions could not be made ahead; the default one takes the rows");
        }
    }
    let prune = [
        (PartitionedTable::OUTBOX, events::outbox_retention(&app.settings)),
        (PartitionedTable::LOG, events::LOG_RETENTION_SECONDS.seconds(&app.settings)),
        (PartitionedTable::IDEMPOTENCY, IDEMPOTENCY_KEPT),
    ];
    for (table, keep) in prune {
        match table.prune(&internal, now, keep).await {
            Ok(0) => {}
            Ok(dropped) => tracing::info!(table = table.name, dropped, "old partitions dropped"),
            Err(error) => tracing::warn!(table = table.name, %error, "old partitions could not be dropped"),
        }
    }
    name_who_holds_back(app, &internal).await;
}

async fn prune_revocations(app: &App) {
    if let Err(error) = iam::revocation::prune(&app.db.internal("iam.revocations"), &app.settings).await {
        tracing::warn!(%error, "old revocations could not be deleted");
    }
}

/// Events that somebody has not read are kept beyond their time. Someone should know, before the disk is full.
async fn name_who_holds_back(app: &App, internal: &db::Internal) {
    let lags = events::lags(internal).await.unwrap_or_default();
    for lag in lags.iter().filter(|lag| lag.holds_back(app.clock.now(), &app.settings).is_some()) {
        tracing::warn!(
            consumer = lag.consumer,
            behind = lag.positions,
            "old events are kept because this consumer has not read them"
        );
    }
}

// fixed: results are promised for 24 hours; partitions are days, so two of them
const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(48 * 3600);
