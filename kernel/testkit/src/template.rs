//! The migrated database that tests' databases are copies of.
//!
//! Made once per server and set of migrations, under an advisory lock, so that test processes may race for it. It is
//! marked as a template only when it is whole; one that is not marked was left by a process that died, and goes.

use aws_lc_rs::digest::{Context, SHA256};
use db::migrate::{self, MigrationSet};
use db::{Login, login};
use tokio_postgres::Client;
use types::Secret;

use crate::postgres::Cluster;

/// The logins are the server's, shared by all its databases; what they may do is granted in each.
pub(crate) const PREFIX: &str = "test";
pub(crate) const PASSWORD: &str = "throwaway";

const LOCK_KEY: i64 = 0x0074_6573_746b_6974; // "testkit"

/// The name of the template for these migrations, which is there when this returns.
pub(crate) async fn ensure(cluster: &Cluster, admin: &Client, sets: &[MigrationSet]) -> String {
    let name = name(sets);
    if is_ready(admin, &name).await {
        return name;
    }
    admin.execute("SELECT pg_advisory_lock($1)", &[&LOCK_KEY]).await.expect("lock");
    if !is_ready(admin, &name).await {
        make(cluster, admin, &name, sets).await;
    }
    admin.execute("SELECT pg_advisory_unlock($1)", &[&LOCK_KEY]).await.expect("unlock");
    name
}

async fn is_ready(admin: &Client, name: &str) -> bool {
    let sql = "SELECT FROM pg_database WHERE datname = $1 AND datistemplate";
    admin.query_opt(sql, &[&name]).await.expect("look for the template").is_some()
}

async fn make(cluster: &Cluster, admin: &Client, name: &str, sets: &[MigrationSet]) {
    admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.expect("drop");
    login::init(admin, PREFIX, name, |_| Secret::new(PASSWORD.to_owned())).await.expect("make the logins");
    // Without migrations it stays as bare as `gpuaasd db init` leaves it: for tests of the migrations themselves.
    if !sets.is_empty() {
        let mut config = cluster.admin.clone();
        config.dbname(name).user(Login::Owner.role_name(PREFIX)).password(PASSWORD);
        let owner = db::Target::plain(config).connect().await.expect("connect as the owner");
        migrate::run(&owner, PREFIX, sets).await.expect("migrate the template");
    }
    // Closed to sessions, because one would keep it from being copied.
    let finish = format!("ALTER DATABASE {name} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false");
    admin.batch_execute(&finish).await.expect("mark the template");
}

fn name(sets: &[MigrationSet]) -> String {
    let mut hash = Context::new(&SHA256);
    for set in sets {
        for migration in set.migrations {
            for part in [set.domain, &migration.version.to_string(), migration.name, migration.sql] {
                hash.update(&(part.len() as u64).to_be_bytes());
                hash.update(part.as_bytes());
            }
        }
    }
    let digest = hash.finish();
    let hex: String = digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("template_{hex}")
}
