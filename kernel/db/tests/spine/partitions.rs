//! Partitions come before they are needed and go when they are old; nobody waits for either.

use std::sync::Arc;
use std::time::Duration;

use db::{Login, PartitionedTable};
use testkit::{TestDb, eventually, toy};

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn on_the_fifth_of_march() -> TestDb {
    TestDb::plan_kernel().at("2026-03-05T12:00:00Z").start().await
}

async fn make(test: &TestDb, table: PartitionedTable) -> usize {
    table.make_ahead(&test.db.internal("toy.partitions"), test.db.now()).await.unwrap()
}

async fn partitions(test: &TestDb, parent: &str) -> Vec<String> {
    let sql = "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
               WHERE i.inhparent = $1::text::regclass ORDER BY 1";
    let rows = test.superuser().await.query(sql, &[&format!("spine.{parent}")]).await.unwrap();
    rows.iter().map(|row| row.get::<_, String>(0).replace(&format!("{parent}_"), "")).collect()
}

#[tokio::test]
async fn some_are_made_ahead_and_once() {
    let test = on_the_fifth_of_march().await;
    assert_eq!(make(&test, PartitionedTable::OUTBOX).await, 4);
    assert_eq!(make(&test, PartitionedTable::OUTBOX).await, 0);
    assert_eq!(
        partitions(&test, "outbox").await,
        ["20260305", "20260306", "20260307", "20260308", "default"]
    );
    assert_eq!(make(&test, PartitionedTable::AUDIT_ENTRY).await, 4);
    assert_eq!(partitions(&test, "audit_entry").await, ["202603", "202604", "202605", "202606", "default"]);
    test.advance(DAY);
    assert_eq!(make(&test, PartitionedTable::OUTBOX).await, 1);
    assert_eq!(make(&test, PartitionedTable::AUDIT_ENTRY).await, 0);
}

/// A write never fails for want of a partition; what strayed stays, and its partition is not made over its head.
#[tokio::test]
async fn the_default_partition_catches_strays() {
    let test = on_the_fifth_of_march().await;
    toy::create(&test.db, &test.context("someone"), toy::org(1), "before").await.unwrap();
    assert_eq!(make(&test, PartitionedTable::OUTBOX).await, 3, "not today's: a row of today strayed");
    test.advance(10 * DAY);
    toy::create(&test.db, &test.context("someone"), toy::org(1), "beyond").await.unwrap();
    assert_eq!(test.count("SELECT count(*) FROM spine.outbox_default").await, 2);
    assert_eq!(test.count("SELECT count(*) FROM spine.outbox").await, 2);
}

#[tokio::test]
async fn only_old_ones_are_pruned() {
    let test = on_the_fifth_of_march().await;
    toy::create(&test.db, &test.context("someone"), toy::org(1), "stray").await.unwrap();
    for table in PartitionedTable::ALL {
        make(&test, table).await;
    }
    test.advance(DAY);
    toy::create(&test.db, &test.context("someone"), toy::org(1), "tomorrow").await.unwrap();
    test.advance(DAY);
    toy::create(&test.db, &test.context("someone"), toy::org(1), "the day after").await.unwrap();

    let internal = test.db.internal("toy.partitions");
    let prune =
        async |table: PartitionedTable, keep| table.prune(&internal, test.db.now(), keep).await.unwrap();
    assert_eq!(
        prune(PartitionedTable::OUTBOX, DAY / 2).await,
        0,
        "what has no position yet stays, however old"
    );
    assert_eq!(test.count("SELECT count(*) FROM spine.outbox").await, 3);
    test.run("UPDATE spine.sequencer SET done_xid = pg_snapshot_xmax(pg_current_snapshot())").await;
    assert_eq!(prune(PartitionedTable::OUTBOX, DAY).await, 0, "of the sixth, half is less than a day old");
    assert_eq!(prune(PartitionedTable::OUTBOX, DAY / 2).await, 1);
    assert_eq!(partitions(&test, "outbox").await, ["20260307", "20260308", "default"]);
    assert_eq!(test.count("SELECT count(*) FROM spine.outbox").await, 1, "the stray of the fifth went too");
    // Audit entries may go only when they are sealed and copied elsewhere, which is not this caller's to judge.
    let refused =
        PartitionedTable::AUDIT_ENTRY.prune(&internal, test.db.now(), Duration::ZERO).await.unwrap_err();
    assert!(refused.to_string().contains("no partitions are pruned for audit_entry"), "{refused}");
    assert_eq!(test.count("SELECT count(*) FROM spine.audit_entry").await, 3);
}

/// A new partition needs a strong lock on the default one, for an instant. If a long reader keeps it from getting it,
/// it gives way soon: the sequencer, who reads the same table, must not queue behind it for seconds.
#[tokio::test]
async fn making_one_gives_way_to_those_who_read_and_write() {
    let test = Arc::new(on_the_fifth_of_march().await);
    make(&test, PartitionedTable::OUTBOX).await;
    let reader = test.superuser().await;
    reader.batch_execute("BEGIN; SELECT count(*) FROM spine.outbox").await.unwrap();
    test.advance(DAY);
    let making = {
        let test = Arc::clone(&test);
        tokio::spawn(async move {
            PartitionedTable::OUTBOX.make_ahead(&test.db.internal("toy.partitions"), test.db.now()).await
        })
    };
    let waiting =
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'spine.outbox_default'::regclass";
    eventually("the new partition waits for its lock", async || test.count(waiting).await > 0).await;
    toy::create(&test.db, &test.context("someone"), toy::org(1), "a").await.unwrap();
    assert!(!making.is_finished(), "a write does not wait for the partition");
    let relay = test.client(Login::Relay).await;
    let read = relay.query_one("SELECT count(*) FROM spine.outbox", &[]);
    let read =
        tokio::time::timeout(Duration::from_secs(1), read).await.expect("a reader queues for over a second");
    assert_eq!(read.unwrap().get::<_, i64>(0), 1, "it got through while the long reader is still at it");
    assert!(making.await.unwrap().is_err(), "it gave way");

    reader.batch_execute("COMMIT").await.unwrap();
    assert_eq!(make(&test, PartitionedTable::OUTBOX).await, 1, "the next time it succeeds");
}
