//! The migration runner: once, in order, by one, and never against a database it does not fit.

use std::sync::Arc;
use std::time::Duration;

use db::migrate::{self, MigrateError, MigrationSet};
use db::{Login, Migration};
use testkit::{SPINE, TestDb, eventually, toy};

const ONE: Migration = Migration { version: 1, name: "one", sql: "CREATE TABLE public.one (id int)" };
const TWO: Migration = Migration { version: 2, name: "two", sql: "ALTER TABLE public.one ADD COLUMN name text" };
const SLOW: Migration = Migration { version: 2, name: "slow", sql: "SELECT pg_sleep(0.5); CREATE TABLE public.two ()" };
const BROKEN: Migration = Migration { version: 2, name: "broken", sql: "CREATE TABLE public.two (); SELECT 1/0" };
const EDITED: Migration = Migration { version: 1, name: "one", sql: "CREATE TABLE public.one (id bigint)" };

const FIRST: MigrationSet = MigrationSet { domain: "plain", migrations: &[ONE] };
const BOTH: MigrationSet = MigrationSet { domain: "plain", migrations: &[ONE, TWO] };
const WITH_SLOW: MigrationSet = MigrationSet { domain: "plain", migrations: &[ONE, SLOW] };
const WITH_BROKEN: MigrationSet = MigrationSet { domain: "plain", migrations: &[ONE, BROKEN] };
const WITH_EDITED: MigrationSet = MigrationSet { domain: "plain", migrations: &[EDITED, TWO] };

async fn run(test: &TestDb, sets: &[MigrationSet]) -> Result<usize, MigrateError> {
    let owner = test.client(Login::Owner).await;
    migrate::run(&owner, "test", sets).await
}

#[tokio::test]
async fn a_fresh_database_gets_all_and_a_second_run_none() {
    let test = TestDb::with(&[]).await;
    let sets = [SPINE, toy::MIGRATION_SET, FIRST];
    assert_eq!(migrate::pending(&test.client(Login::Owner).await, &sets).await.unwrap(), None);
    let all = SPINE.migrations.len() + 2;
    assert_eq!(run(&test, &sets).await.unwrap(), all);
    assert_eq!(run(&test, &sets).await.unwrap(), 0);
    assert_eq!(run(&test, &[SPINE, toy::MIGRATION_SET, BOTH]).await.unwrap(), 1);
    // A role checks with its own login that the schema fits it.
    let app = test.client(Login::App).await;
    assert_eq!(migrate::pending(&app, &[SPINE, toy::MIGRATION_SET, BOTH]).await.unwrap(), Some(0));
}

/// The second waits for the first, longer than a migration waits for a table's lock.
#[tokio::test]
async fn two_runners_at_once_apply_each_migration_once() {
    let test = TestDb::with(&[]).await;
    test.run(&format!("ALTER ROLE test_owner IN DATABASE {} SET lock_timeout = '100ms'", test.name())).await;
    let (one, other) = futures::join!(run(&test, &[WITH_SLOW]), run(&test, &[WITH_SLOW]));
    let mut applied = [one.unwrap(), other.unwrap()];
    applied.sort_unstable();
    assert_eq!(applied, [0, 2]);
}

#[tokio::test]
async fn a_changed_migration_is_refused() {
    let test = TestDb::with(&[FIRST]).await;
    let error = run(&test, &[WITH_EDITED]).await.unwrap_err();
    assert!(matches!(error, MigrateError::Changed { domain: "plain", version: 1 }), "{error}");
    assert_eq!(run(&test, &[BOTH]).await.unwrap(), 1, "nothing of the refused run was applied");
}

#[tokio::test]
async fn a_newer_database_is_refused_with_both_versions_named() {
    let test = TestDb::with(&[BOTH]).await;
    let error = run(&test, &[FIRST]).await.unwrap_err().to_string();
    assert!(error.contains("migration 2 of 'plain'") && error.contains("knows up to 1"), "{error}");
    let error = run(&test, &[SPINE]).await.unwrap_err().to_string();
    assert!(error.contains("'plain'") && error.contains("knows up to 0"), "{error}");
}

#[tokio::test]
async fn a_failing_migration_leaves_nothing_and_says_which_it_was() {
    let test = TestDb::with(&[FIRST]).await;
    let error = run(&test, &[WITH_BROKEN]).await.unwrap_err().to_string();
    assert!(error.contains("migration 2 'broken' of 'plain'") && error.contains("division by zero"), "{error}");
    assert_eq!(test.count("SELECT count(*) FROM pg_class WHERE relname = 'two'").await, 0);
    assert_eq!(run(&test, &[BOTH]).await.unwrap(), 1);
}

/// A migration that queues for a lock stops everyone behind it; so it gives way, and tries again until it gets it.
#[tokio::test]
async fn a_migration_that_meets_a_lock_gives_way_and_comes_back() {
    let test = Arc::new(TestDb::with(&[FIRST]).await);
    test.run(&format!("ALTER ROLE test_owner IN DATABASE {} SET lock_timeout = '100ms'", test.name())).await;
    let busy = test.superuser().await;
    busy.batch_execute("BEGIN; SELECT count(*) FROM public.one").await.unwrap();
    let migration = {
        let test = Arc::clone(&test);
        tokio::spawn(async move { run(&test, &[BOTH]).await })
    };
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'public.one'::regclass";
    eventually("the migration waits for its lock", async || test.count(waiting).await > 0).await;
    // Queued behind the migration, and served when it gives way: the lock it waits for is still held.
    let read = tokio::time::timeout(Duration::from_secs(2), test.count("SELECT count(*) FROM public.one")).await;
    assert_eq!(read, Ok(0), "a reader was stopped by a waiting migration");
    eventually("the migration comes back", async || test.count(waiting).await > 0).await;

    busy.batch_execute("COMMIT").await.unwrap();
    assert_eq!(migration.await.unwrap().unwrap(), 1);
}
