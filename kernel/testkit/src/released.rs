//! Upgrades as they happen: the schema of a released version, migrated to head while that version goes on writing.
//!
//! `db/released/VERSION.sql` is [`dump`] of a database at a release, made when the version is tagged. A migration that
//! takes away what the old version writes, or that blocks it, fails [`upgrade_under_load`].

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use db::Login;
use db::migrate::{self, MigrationSet, with_logins};
use postgres_server::Binaries;

use crate::eventually::eventually;
use crate::template::PREFIX;
use crate::{Plan, TestDb, postgres};

/// Writes before the migration begins, and again after it has ended.
const WRITES_AROUND: usize = 20;

/// A database as SQL, with the logins as `${app}` and so on, so that it fits any installation.
pub async fn dump(test: &TestDb) -> String {
    let output = tokio::process::Command::new(program("pg_dump").await)
        .args(["--inserts", "--no-comments", "--dbname"])
        .arg(postgres::connection_string(&test.superuser_config()))
        .output()
        .await
        .expect("run pg_dump");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("pg_dump writes UTF-8");
    // Lines with a backslash speak to psql, not to the server.
    let plain = text.lines().filter(|line| !line.starts_with('\\')).map(|line| format!("{line}\n"));
    Login::ALL.iter().fold(plain.collect(), |text: String, login| {
        text.replace(&login.role_name(PREFIX), &format!("${{{}}}", login.suffix()))
    })
}

/// A database made from a dump.
pub async fn restore(dump: &str) -> TestDb {
    restore_into(TestDb::plan(&[]), dump).await
}

/// The same, where `plan` says: on a server of the test's own, for instance. The plan has no migrations.
pub async fn restore_into(plan: Plan<'_>, dump: &str) -> TestDb {
    let test = plan.start().await;
    test.run(&with_logins(dump, PREFIX)).await;
    test
}

/// Restores a dump and migrates it to `head` while `write`, which is what the released version does, runs all the
/// time with a growing number. Fails when one write does. Returns the database and how many writes there were.
pub async fn upgrade_under_load(
    dump: &str,
    head: &[MigrationSet],
    write: impl AsyncFn(&TestDb, usize) -> types::Result<()>,
) -> (TestDb, usize) {
    let test = restore(dump).await;
    let (written, migrated) = (AtomicUsize::new(0), AtomicBool::new(false));
    let writer = async {
        let mut left = WRITES_AROUND;
        while left > 0 {
            let number = written.load(Ordering::SeqCst);
            if let Err(error) = write(&test, number).await {
                panic!("write {number} of the released version failed: {error:?}");
            }
            written.store(number + 1, Ordering::SeqCst);
            left -= usize::from(migrated.load(Ordering::SeqCst));
        }
    };
    let migration = async {
        eventually("the released version writes", async || written.load(Ordering::SeqCst) >= WRITES_AROUND)
            .await;
        let owner = test.client(Login::Owner).await;
        migrate::run(&owner, PREFIX, head).await.expect("migrate to head");
        migrated.store(true, Ordering::SeqCst);
    };
    futures::join!(writer, migration);
    let count = written.load(Ordering::SeqCst);
    (test, count)
}

async fn program(name: &str) -> PathBuf {
    let named = std::env::var_os("GPUAAS_POSTGRES_DIR");
    let binaries = Binaries::find(named.as_deref().map(std::path::Path::new)).await.expect("a PostgreSQL");
    let path = binaries.directory().join(name);
    assert!(path.exists(), "there is no {}: install the package postgresql-client", path.display());
    path
}
