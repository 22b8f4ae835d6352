//! What only the statements themselves can tell: whether an index serves them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use db::{Login, PartitionedTable};
use testkit::TestDb;

use crate::store;

#[tokio::test]
async fn an_organizations_events_are_found_by_its_index() {
    let test = TestDb::kernel().await;
    let internal = test.internal(Login::App, "toy.partitions");
    PartitionedTable::LOG.make_ahead(&internal, test.db.now()).await.unwrap();
    test.run(
        "INSERT INTO spine.log (position, sequenced_at, epoch, id, at, org_id, type, subject, generation, data, correlation_id)
         SELECT n, now() + n * interval '1 s', 1, gen_random_uuid(), now(), ('00000000-0000-0000-0000-' || lpad((n % 1000)::text, 12, '0'))::uuid,
                't', 's', 1, '{}', gen_random_uuid()
         FROM generate_series(1, 150000) n; ANALYZE spine.log",
    )
    .await;
    // As the reader reads it: under row-level security, with a plan for any organization.
    let client = test.client(Login::App).await;
    let prepare = format!(
        "PREPARE replay (bigint, timestamptz, bigint, uuid) AS {}",
        store::EVENTS_OF_ORGANIZATION_AFTER
    );
    client
        .batch_execute(&format!(
            "SET gpuaas.platform = 'on'; SET plan_cache_mode = force_generic_plan; {prepare}"
        ))
        .await
        .unwrap();
    let explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE replay (0, 'epoch', 1000, '00000000-0000-0000-0000-000000000001')";
    let rows = client.query(explain, &[]).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(
        plan.contains("org_id_position_idx")
            && !plan.contains("Seq Scan")
            && !plan.contains("Removed by Filter"),
        "{plan}"
    );
}

#[test]
fn the_outbox_is_never_kept_longer_than_the_log() {
    let kept = |outbox: u64, log: u64| {
        let seconds = [("events.outbox_retention_seconds", outbox), ("events.log_retention_seconds", log)];
        let values = seconds.map(|(key, value)| (key.to_owned(), value.into()));
        crate::outbox_retention(&db::Settings::with_overrides(values.into())).as_secs()
    };
    assert_eq!((kept(7_200, 86_400), kept(86_400, 7_200)), (7_200, 7_200));
}
