//! What cannot be brought about from outside. Everything else is in `tests/spine`.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use authz::Scope;
use testkit::TestDb;

use crate::transaction::Transaction;
use crate::{DbError, Pool, PoolOptions, Target};

fn pool(test: &TestDb, connections_max: usize, wait_timeout: Duration) -> Pool {
    // The kit's `db` is the library as others see it, and this is its own test build: they share the driver's types.
    let target = Target::plain(test.target(testkit::db::Login::App).config);
    Pool::new(target, PoolOptions { connections_max, waiting_max: 1, wait_timeout }).unwrap()
}

/// No caller can hand the record of a change a value that has no encoding, as far as we know. Should one find a way,
/// the transaction must not be committed without that record.
#[tokio::test]
async fn commit_does_not_follow_a_statement_that_was_never_sent() {
    let test = TestDb::kernel().await;
    let pool = pool(&test, 1, Duration::from_secs(5));
    let mut transaction = Transaction::new(pool.get(Scope::Platform).await.unwrap(), Scope::Platform, None);
    transaction.query("INSERT INTO toy.mark VALUES ('change', 1)", &[]).await.unwrap();
    let not_a_name = 1i32;
    let record = ("INSERT INTO toy.mark VALUES ($1, 2)", [&not_a_name as &(dyn crate::ToSql + Sync)]);
    assert!(transaction.commit_after(&[(record.0, &record.1)]).await.is_err());
    assert_eq!(test.count("SELECT count(*) FROM toy.mark").await, 0);
}

#[tokio::test]
async fn a_tenant_has_its_share_and_leaves_the_rest() {
    let test = TestDb::kernel().await;
    let pool = pool(&test, 8, Duration::from_millis(50));
    let [a, b, c] = [1, 2, 3].map(|n| Scope::Organization(testkit::toy::org(n)));
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(pool.get(a).await.unwrap());
    }
    let (waited, refused) = tokio::join!(pool.get(a), pool.get(a));
    assert!(matches!(waited.err(), Some(DbError::ShareUsedUp)), "half is all there is for one");
    assert!(matches!(refused.err(), Some(DbError::ShareUsedUp)), "and its queue has room for one");
    for _ in 0..2 {
        held.push(pool.get(b).await.unwrap());
    }
    assert!(matches!(pool.get(c).await.err(), Some(DbError::QueueTimeout)), "tenants have three quarters");
    let own = [pool.get(Scope::Platform).await.unwrap(), pool.get(Scope::Platform).await.unwrap()];
    drop(own);
    held.remove(0);
    pool.get(c).await.unwrap();
    pool.get(a).await.unwrap();
}

#[tokio::test]
async fn a_tenant_that_waited_in_vain_is_forgotten() {
    let test = TestDb::kernel().await;
    let pool = pool(&test, 2, Duration::from_millis(1));
    let tenant = Scope::Organization(testkit::toy::org(1));
    let held = pool.get(tenant).await.unwrap();
    assert!(pool.get(tenant).await.is_err());
    assert_eq!(pool.status().1, 0, "nobody waits any more");
    held.discard();
    // More than the queue has places: each was given back.
    for _ in 0..5 {
        pool.get(tenant).await.unwrap();
    }
}
