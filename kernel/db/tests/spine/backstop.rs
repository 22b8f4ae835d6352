//! Bookkeeping that changes domain state is caught where tests run.

use db::{DbError, Internal};
use testkit::TestDb;
use testkit::toy::{self, ThingRead, org};

/// A worker that names one table and writes another.
async fn write_domain_state(internal: &Internal) -> Result<(), DbError> {
    internal
        .bookkeeping(&["toy.mark"], async |tx| {
            tx.query("INSERT INTO toy.mark VALUES ('a', 1)", &[]).await?;
            tx.query("INSERT INTO toy.thing (id, org_id, name) VALUES ($1, $1, 'a')", &[&org(1)])
                .await
                .map(drop)
        })
        .await
}

async fn rows(test: &TestDb) -> (i64, i64) {
    (test.count("SELECT count(*) FROM toy.mark").await, test.count("SELECT count(*) FROM toy.thing").await)
}

#[tokio::test]
async fn writing_a_table_that_was_not_named_fails_and_is_rolled_back() {
    let test = TestDb::kernel().await;
    let error = write_domain_state(&test.db.internal("toy.worker")).await.unwrap_err().to_string();
    assert!(error.contains("unrecorded_change") && error.contains("toy.worker wrote toy.thing"), "{error}");
    assert_eq!(rows(&test).await, (0, 0));
}

/// A read that writes: nobody named its table, and nothing would be recorded.
#[tokio::test]
async fn writing_through_a_read_fails() {
    let test = TestDb::kernel().await;
    let write = "INSERT INTO toy.thing (id, org_id, name) VALUES ($1, $1, 'a') RETURNING id";
    let context = test.context("someone");
    let reader = test.db.read(&test.permit::<ThingRead>(&context, toy::resource(org(1))));
    let internal = test.db.internal("toy.worker");
    let refused = [
        reader.query(write, &[&org(1)]).await.unwrap_err(),
        internal.query(write, &[&org(1)]).await.unwrap_err(),
    ];
    for error in refused {
        assert!(error.to_string().contains("read-only transaction"), "{error}");
    }
    assert_eq!(rows(&test).await, (0, 0));
    assert!(
        reader.query(toy::NAMES, &[]).await.unwrap().is_empty(),
        "and the connections are as good as before"
    );
}

/// The hole the backstop closes: without it, the same transaction commits, and no audit entry tells of it.
#[tokio::test]
async fn without_the_backstop_it_would_be_committed() {
    let test = TestDb::kernel().await;
    let unchecked = Internal::new(test.db.pool().clone(), "toy.worker", false);
    write_domain_state(&unchecked).await.unwrap();
    assert_eq!(rows(&test).await, (1, 1));
}

/// Counts of earlier transactions in the session, and those of partitions, are told apart.
#[tokio::test]
async fn named_tables_may_be_written_again_and_again_on_one_connection() {
    let test = TestDb::plan_kernel().connections(1).start().await;
    testkit::toy::create(&test.db, &test.context("someone"), org(1), "a").await.unwrap();
    let internal = test.db.internal("toy.worker");
    let mark =
        "INSERT INTO toy.mark VALUES ('a', 1) ON CONFLICT (name) DO UPDATE SET value = toy.mark.value + 1";
    for _ in 0..20 {
        internal.bookkeeping_one(&["toy.mark"], mark, &[]).await.unwrap();
    }
    assert_eq!(test.count("SELECT value FROM toy.mark").await, 20);
}
