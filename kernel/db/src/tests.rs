//! What cannot be brought about from outside. Everything else is in `tests/spine`.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use authz::Scope;
use testkit::TestDb;

use crate::transaction::Transaction;
use crate::{Pool, PoolOptions, Target};

/// No caller can hand the record of a change a value that has no encoding, as far as we know. Should one find a way,
/// the transaction must not be committed without that record.
#[tokio::test]
async fn commit_does_not_follow_a_statement_that_was_never_sent() {
    let test = TestDb::kernel().await;
    // The kit's `db` is the library as others see it, and this is its own test build: they share the driver's types.
    let target = Target::plain(test.target(testkit::db::Login::App).config);
    let options = PoolOptions { connections_max: 1, waiting_max: 1, wait_timeout: Duration::from_secs(5) };
    let pool = Pool::new(target, options).unwrap();
    let mut transaction = Transaction::new(pool.get().await.unwrap(), Scope::Platform, None);
    transaction.query("INSERT INTO toy.mark VALUES ('change', 1)", &[]).await.unwrap();
    let not_a_name = 1i32;
    let record = ("INSERT INTO toy.mark VALUES ($1, 2)", [&not_a_name as &(dyn crate::ToSql + Sync)]);
    assert!(transaction.commit_after(&[(record.0, &record.1)]).await.is_err());
    assert_eq!(test.count("SELECT count(*) FROM toy.mark").await, 0);
}
