//! Statements read what they need and not the whole table, also where the table is large and the place unusual.

use tokio_postgres::SimpleQueryMessage;

use super::fixture::World;
use crate::store;

/// How many pages a statement touches. Literals stand for its parameters: EXPLAIN takes none.
async fn pages(world: &World, sql: &str, params: &[(&str, &str)]) -> i64 {
    let text = params.iter().fold(sql.to_owned(), |text, (name, value)| text.replace(name, value));
    explained(world, &text).await
}

/// The same for a statement planned without knowing its parameters, as one that is used often is.
async fn pages_of_any(world: &World, sql: &str, params: &[&str]) -> i64 {
    let prepare =
        format!("DEALLOCATE ALL; SET plan_cache_mode = force_generic_plan; PREPARE listing AS {sql}");
    world.admin.batch_execute(&prepare).await.unwrap();
    explained(world, &format!("EXECUTE listing ({})", params.join(", "))).await
}

async fn explained(world: &World, statement: &str) -> i64 {
    let rows = world
        .admin
        .simple_query(&format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"))
        .await
        .unwrap();
    let plan = rows.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let plan: serde_json::Value = serde_json::from_str(plan.unwrap()).unwrap();
    let top = &plan[0]["Plan"];
    top["Shared Hit Blocks"].as_i64().unwrap() + top["Shared Read Blocks"].as_i64().unwrap()
}

const FEW: i64 = 300;

/// Entries of an earlier era, all sealed, whose transaction ids lie far above those of this server.
const EARLIER_ERA: &str = "
SET session_replication_role = replica;
INSERT INTO spine.audit_entry (xid, id, at, actor_kind, actor_id, action, resource_kind, resource_id, generation,
    correlation_id, policy_version)
SELECT (1000000000 + n)::text::xid8, md5(n::text)::uuid, now(), 'user', 'u', 'a.b.c', 'thing', 'thg_' || n, 1,
    gen_random_uuid(), 1 FROM generate_series(1, 20000) n;
INSERT INTO audit.leaf SELECT n - 1, sha256(n::text::bytea), 1, (1000000000 + n)::text::xid8, md5(n::text)::uuid, now()
    FROM generate_series(1, 20000) n;
INSERT INTO audit.era SELECT 2, 20000, system_identifier FROM pg_control_system();
UPDATE audit.tree SET size = 20000, done_xid = '1', done_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
RESET session_replication_role; ANALYZE;";

#[tokio::test]
async fn after_a_restore_the_lag_is_not_looked_for_among_all_that_is_sealed() {
    let world = World::new().await;
    world.admin.batch_execute(EARLIER_ERA).await.unwrap();
    let read = pages(&world, store::OLDEST_UNSEALED, &[]).await;
    assert!(read < FEW, "{read} pages for no unsealed entry");
    world.change(world.organization()).await;
    let oldest = world.admin.query(store::OLDEST_UNSEALED, &[]).await.unwrap();
    assert_eq!(oldest.len(), 1, "and what waits is found");
}

const CHECKPOINTS: &str = "
INSERT INTO audit.checkpoint SELECT n * 3, sha256(n::text::bytea), repeat('x', 200) || n, now()
FROM generate_series(1, 40000) n; ANALYZE audit.checkpoint;";

#[tokio::test]
async fn a_few_checkpoints_of_many_are_found_without_reading_them_all() {
    let world = World::new().await;
    world.admin.batch_execute(CHECKPOINTS).await.unwrap();
    let read =
        pages(&world, store::CHECKPOINT_SAMPLE, &[("$1", "120000::bigint"), ("$2", "20::bigint")]).await;
    assert!(read < FEW, "{read} pages for 20 checkpoints");
    let notes = async |size: i64, most: i64| -> Vec<i64> {
        let rows = world.admin.query(store::CHECKPOINT_SAMPLE, &[&size, &most]).await.unwrap();
        rows.iter().map(|row| row.get::<_, &str>(0).trim_matches('x').parse::<i64>().unwrap() * 3).collect()
    };
    let sample = notes(120_000, 20).await;
    assert_eq!(sample.len(), 20);
    assert!(sample.windows(2).all(|pair| (5_900..=6_100).contains(&(pair[1] - pair[0]))), "{sample:?}");
    assert!(sample.iter().all(|size| *size < 120_000), "the newest one is not an earlier one");
    // Where all fit, all come.
    assert_eq!(notes(31, 1_000).await, (1..=10).map(|n| n * 3).collect::<Vec<i64>>());
    assert_eq!(notes(3, 1_000).await, [0; 0]);
}

/// Five organizations that take turns, all sealed, in the era after another one.
const LONG_LOG: &str = "
SET session_replication_role = replica;
CREATE TEMP TABLE numbered AS SELECT n, CASE WHEN n <= 1000 THEN 1 ELSE 2 END AS era,
    (CASE WHEN n <= 1000 THEN 1000000000 ELSE 1000 END + n)::text::xid8 AS xid, md5(n::text)::uuid AS id,
    now() - interval '1 day' + n * interval '1 second' AS at FROM generate_series(0, 19999) n;
INSERT INTO spine.audit_entry (xid, id, at, org_id, actor_kind, actor_id, action, resource_kind, resource_id, generation,
    correlation_id, policy_version)
SELECT xid, id, at, md5('org' || n % 5)::uuid, 'user', 'u', 'a.b.c', 'thing', 'thg_' || n, 1, id, 1 FROM numbered;
INSERT INTO audit.leaf SELECT n, sha256(n::text::bytea), era, xid, id, at FROM numbered;
INSERT INTO audit.era SELECT 2, 1001, system_identifier FROM pg_control_system();
UPDATE audit.tree SET size = 20000;
RESET session_replication_role; ANALYZE;";

#[tokio::test]
async fn a_page_of_a_long_log_reads_about_as_much_as_it_shows() {
    let world = World::new().await;
    world.admin.batch_execute(LONG_LOG).await.unwrap();
    let page = |from, since| [from, "20000", since, "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "11"];
    let ours = "md5('org3')::uuid";
    let check = async |from, since| {
        let page = page(from, since);
        let read = pages_of_any(&world, store::LOG_LIST, &page).await;
        assert!(read < FEW, "{read} pages for ten entries from {from}, {since}");
        let read = pages_of_any(&world, store::ENTRY_LIST, &[&page[..], &[ours]].concat()).await;
        assert!(read < FEW, "{read} pages for ten of an organization's entries from {from}, {since}");
    };
    for from in ["0", "990", "1001", "10000", "19990"] {
        check(from, "NULL").await;
    }
    // Entries before a time are passed over in the index alone.
    check("0", "(now() - interval '1 day' + interval '19900 seconds')").await;
}
