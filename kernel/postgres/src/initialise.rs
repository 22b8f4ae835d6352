//! Making a new cluster.
//!
//! initdb works in a directory beside the final one, which is renamed when all is done: a crash, a full disk or an
//! impatient operator leaves something that the next start throws away, never half a database.

use std::ffi::OsString;
use std::fs::{self, File};
use std::time::Instant;

use rustix::process::Signal;

use crate::account::Account;
use crate::binaries::Binaries;
use crate::error::{LogTail, PostgresError, Result};
use crate::layout::{Layout, create_private, remove_if_there, remove_tree, sync_directory, write_private};
use crate::orphan;
use crate::password;
use crate::process::{Child, Launch, describe};
use crate::server::SUPERUSER;

/// Makes the cluster. There must be none.
pub(crate) async fn initialise(
    layout: &Layout,
    binaries: &Binaries,
    account: &Account,
    durable: bool,
) -> Result<()> {
    let (cluster, unfinished) = (layout.cluster(), layout.unfinished_cluster());
    tracing::info!(version = %binaries.version(), cluster = %cluster.display(), "making a new PostgreSQL cluster");
    let begun = Instant::now();
    orphan::end_all(&unfinished).await?;
    remove_tree(&unfinished)?;
    create_private(&unfinished).map_err(PostgresError::io("make the directory", &unfinished))?;
    account.own(&unfinished)?;
    password::make(layout)?;

    let handed_over = layout.initdb_password();
    let outcome = run_initdb(layout, binaries, account, durable).await;
    remove_if_there(&handed_over).map_err(PostgresError::io("remove", &handed_over))?;
    outcome?;

    fs::rename(&unfinished, &cluster).map_err(PostgresError::io("move the new database to", &cluster))?;
    sync_directory(layout.root()).map_err(PostgresError::io("sync", layout.root()))?;
    tracing::info!(elapsed_ms = begun.elapsed().as_millis(), "made a new PostgreSQL cluster");
    Ok(())
}

async fn run_initdb(layout: &Layout, binaries: &Binaries, account: &Account, durable: bool) -> Result<()> {
    // initdb runs as the server's account, which may not read our file; a pipe it may not open either.
    let handed_over = layout.initdb_password();
    write_private(&handed_over, password::read(layout)?.expose())?;
    account.own(&handed_over)?;

    let log_path = layout.initdb_log();
    let log = File::create(&log_path).map_err(PostgresError::io("open the log", &log_path))?;
    let program = binaries.program("initdb");
    let launch = Launch {
        program: &program,
        arguments: arguments(layout, durable),
        account,
        log,
        last_signal: Signal::KILL,
    };
    let initdb = Child::spawn(launch).await.map_err(PostgresError::io("start", &program))?;
    let ending = initdb.wait().await;
    if ending.is_some_and(|status| status.success()) {
        return Ok(());
    }
    Err(PostgresError::InitialisationFailed {
        cluster: layout.cluster(),
        status: describe(ending),
        said: LogTail::read(&log_path, 0),
    })
}

fn arguments(layout: &Layout, durable: bool) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![
        "-D".into(),
        layout.unfinished_cluster().into(),
        "-U".into(),
        SUPERUSER.into(),
        "--pwfile".into(),
        layout.initdb_password().into(),
    ];
    let plain = [
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        // Sorting by bytes: the same on every machine and after every upgrade of the C library.
        "--locale=C",
        "--data-checksums",
        "--no-instructions",
    ];
    arguments.extend(plain.map(OsString::from));
    if !durable {
        arguments.push("--no-sync".into());
    }
    arguments
}
