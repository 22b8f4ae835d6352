//! Version N goes on writing while N+1 migrates. There is no release yet: an older form of the toy schema stands in.

use std::panic::AssertUnwindSafe;

use db::Migration;
use db::migrate::MigrationSet;
use futures::FutureExt as _;
use testkit::released::{dump, upgrade_under_load};
use testkit::{SPINE, TestDb, toy, types};

const EXPAND: Migration = Migration {
    version: 2,
    name: "colours",
    sql: "ALTER TABLE toy.thing ADD COLUMN colour text NOT NULL DEFAULT 'grey';
          CREATE INDEX thing_by_colour ON toy.thing (colour);
          GRANT SELECT ON toy.thing TO ${reader}",
};
const CONTRACT: Migration =
    Migration { version: 2, name: "title", sql: "ALTER TABLE toy.thing RENAME COLUMN name TO title" };

const HEAD: MigrationSet =
    MigrationSet { domain: "toy", migrations: &[toy::MIGRATION_SET.migrations[0], EXPAND] };
const TOO_EARLY: MigrationSet =
    MigrationSet { domain: "toy", migrations: &[toy::MIGRATION_SET.migrations[0], CONTRACT] };

async fn released() -> String {
    let old = TestDb::kernel().await;
    toy::create(&old.db, &old.context("someone"), toy::org(1), "from the release").await.unwrap();
    dump(&old).await
}

async fn write(test: &TestDb, number: usize) -> types::Result<()> {
    toy::create(&test.db, &test.context("someone"), toy::org(1), &format!("thing {number}")).await.map(drop)
}

#[tokio::test]
async fn an_expanding_migration_runs_beside_the_released_version() {
    let (test, written) = upgrade_under_load(&released().await, &[SPINE, HEAD], write).await;
    let written = i64::try_from(written).unwrap();
    assert_eq!(test.count("SELECT count(*) FROM toy.thing WHERE colour = 'grey'").await, written + 1);
    assert_eq!(test.count("SELECT count(*) FROM spine.audit_entry").await, written + 1);
}

#[tokio::test]
async fn a_contracting_migration_in_the_same_release_is_found() {
    let dump = released().await;
    let upgrade = upgrade_under_load(&dump, &[SPINE, TOO_EARLY], write);
    let panic = AssertUnwindSafe(upgrade).catch_unwind().await.map(|(_, written)| written).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("of the released version failed"), "{message}");
}
