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

/// Whoever got hold of the application's login cannot empty the tables: what is young stays, whatever it asks for.
#[tokio::test]
async fn young_ones_stay_whatever_the_application_says() {
    let test = TestDb::kernel().await;
    toy::create(&test.db, &test.context("someone"), toy::org(1), "stray").await.unwrap();
    test.run("UPDATE spine.sequencer SET done_xid = pg_snapshot_xmax(pg_current_snapshot())").await;
    let app = test.client(Login::App).await;
    for (table, column) in [("outbox", "at"), ("log", "sequenced_at"), ("idempotency", "at")] {
        let made = PartitionedTable::ALL.into_iter().find(|made| made.name == table).unwrap();
        make(&test, made).await;
        let before = partitions(&test, table).await;
        let prune = format!("SELECT spine.partition_prune('{table}', '{column}', 'infinity')");
        assert!(!app.query_one(&prune, &[]).await.unwrap().get::<_, bool>(0), "a partition of {table} went");
        assert_eq!(partitions(&test, table).await, before);
    }
    assert_eq!(test.count("SELECT count(*) FROM spine.outbox").await, 1, "the stray of now is there");
}

/// A log of five days with one event each, sequenced on its day.
async fn five_days_of_log() -> TestDb {
    let test = on_the_fifth_of_march().await;
    make(&test, PartitionedTable::LOG).await;
    test.advance(DAY);
    make(&test, PartitionedTable::LOG).await;
    test.run(
        "INSERT INTO spine.log (position, sequenced_at, epoch, id, at, type, subject, generation, data, correlation_id)
         SELECT n, at, 1, gen_random_uuid(), at, 't', 's', 1, '{}', gen_random_uuid()
         FROM generate_series(1, 5) n, LATERAL (SELECT timestamptz '2026-03-04 12:00Z' + n * interval '1 day' AS at) t",
    )
    .await;
    test.advance(9 * DAY);
    test
}

#[tokio::test]
async fn one_partition_goes_at_a_time() {
    let test = five_days_of_log().await;
    let client = test.client(Login::App).await;
    let prune = "SELECT spine.partition_prune('log', 'sequenced_at', '2026-03-09 00:00Z')";
    let mut left = Vec::new();
    for _ in 0..6 {
        let went: bool = client.query_one(prune, &[]).await.unwrap().get(0);
        left.push((went, partitions(&test, "log").await.len()));
    }
    let expected = [(true, 5), (true, 4), (true, 3), (true, 2), (false, 2), (false, 2)];
    assert_eq!(left, expected, "the oldest first, until one more says that there is nothing left");
    assert_eq!(partitions(&test, "log").await, ["20260309", "default"]);
}

/// Whoever is registered to read the log gets to read it, however long it was away.
#[tokio::test]
async fn what_a_consumer_has_not_read_is_kept() {
    let test = five_days_of_log().await;
    let stray = "INSERT INTO spine.log (position, sequenced_at, epoch, id, at, type, subject, generation, data, correlation_id)
                 SELECT n, '2026-02-01', 1, gen_random_uuid(), now(), 't', 's', 1, '{}', gen_random_uuid() FROM (VALUES (0), (6)) v (n)";
    test.run(stray).await;
    test.run("INSERT INTO spine.consumer (name, position) VALUES ('quick', 5), ('slow', 2)").await;
    let internal = test.db.internal("toy.partitions");
    let prune = async || PartitionedTable::LOG.prune(&internal, test.db.now(), DAY).await.unwrap();
    let kept = "SELECT string_agg(position::text, ' ' ORDER BY position) FROM spine.log";
    let kept = async || test.superuser().await.query_one(kept, &[]).await.unwrap().get::<_, String>(0);
    assert_eq!(prune().await, 2);
    assert_eq!(kept().await, "3 4 5 6", "read by all: gone, in the default partition as well");
    test.run("UPDATE spine.consumer SET position = 4 WHERE name = 'slow'").await;
    assert_eq!((prune().await, kept().await.as_str()), (2, "5 6"));
    test.run("UPDATE spine.consumer SET position = 6").await;
    assert_eq!(prune().await, 1);
    assert_eq!(test.count("SELECT count(*) FROM spine.log").await, 0);
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
