//! What cannot be brought about from outside. Everything else is in `tests/spine`.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use authz::Scope;
use testkit::TestDb;

use crate::transaction::Transaction;
use crate::{DbError, Pool, PoolOptions, Target};

fn pool(test: &TestDb, connections_max: usize, wait_timeout: Duration) -> Pool {
    pool_with_queue(test, connections_max, wait_timeout, 1)
}

fn pool_with_queue(
    test: &TestDb,
    connections_max: usize,
    wait_timeout: Duration,
    waiting_max: usize,
) -> Pool {
    // The kit's `db` is the library as others see it, and this is its own test build: they share the driver's types.
    let target = Target::plain(test.target(testkit::db::Login::App).config);
    Pool::new(target, PoolOptions { connections_max, waiting_max, wait_timeout }).unwrap()
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
    let [a, b, c, d] = [1, 2, 3, 4].map(|n| Scope::Organization(testkit::toy::org(n)));
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(pool.get(a).await.unwrap());
    }
    let (waited, refused) = tokio::join!(pool.get(a), pool.get(a));
    assert!(matches!(waited.err(), Some(DbError::ShareUsedUp)), "half is all there is for one");
    assert!(matches!(refused.err(), Some(DbError::ShareUsedUp)), "and its queue has room for one");
    held.push(pool.get(b).await.unwrap());
    let others = pool.get(b).await.err();
    assert!(
        matches!(others, Some(DbError::QueueTimeout)),
        "one is kept for who has none, and that is not b's fault"
    );
    held.push(pool.get(c).await.unwrap());
    let (waited, refused) = tokio::join!(pool.get(d), pool.get(d));
    assert!(matches!(waited.err(), Some(DbError::QueueTimeout)), "tenants have three quarters");
    assert!(matches!(refused.err(), Some(DbError::Overloaded { .. })), "and d has nothing of them");
    let own = [pool.get(Scope::Platform).await.unwrap(), pool.get(Scope::Platform).await.unwrap()];
    drop(own);
    held.truncate(3);
    pool.get(d).await.unwrap();
    pool.get(a).await.unwrap();
}

/// Three organizations whose changes all wait for a lock take what they can get; a fourth reads on.
#[tokio::test]
async fn a_quiet_tenant_is_served_while_others_wait_for_locks() {
    let test = TestDb::kernel().await;
    let pool = pool_with_queue(&test, 16, Duration::from_secs(20), 100);
    let mut hogs = Vec::new();
    for n in [1, 2, 3].repeat(20) {
        let (pool, done) = (pool.clone(), std::future::pending::<()>());
        hogs.push(tokio::spawn(async move {
            let _held = pool.get(Scope::Organization(testkit::toy::org(n))).await;
            done.await;
        }));
    }
    testkit::eventually("the others hold and wait", async || pool.status().1 >= 50).await;
    let reads = (0..20).map(|_| async {
        let read = pool.get(Scope::Organization(testkit::toy::org(4))).await?;
        read.client.simple_query("SELECT 1").await?;
        Ok::<_, DbError>(())
    });
    futures::future::try_join_all(reads).await.unwrap();
    assert!(pool.status().1 >= 50, "the others still wait");
    for hog in hogs {
        hog.abort();
        assert!(hog.await.unwrap_err().is_cancelled());
    }
    assert_eq!(pool.status().1, 0);
    for n in [1, 2, 3, 4] {
        let share = Scope::Organization(testkit::toy::org(n));
        let all = futures::future::try_join_all((0..8).map(|_| pool.get(share))).await;
        assert!(all.is_ok(), "all is given back");
    }
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
