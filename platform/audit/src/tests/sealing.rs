//! Nothing committed is ever skipped, whoever seals, whatever crashes.

use std::sync::Arc;
use std::time::Duration;

use db::Login;
use merkle::{Checkpoint, Frontier, SignerKey, leaf_hash};
use testkit::eventually;
use tokio_postgres::Client;
use types::{Clock as _, ManualClock, SystemClock, Timestamp};
use uuid::Uuid;

use super::fixture::{World, crash_after};
use crate::sealer::{SealError, SealKeys};
use crate::store;

/// Writes an entry within whatever transaction the client is in.
async fn insert(client: &Client, id: u128) {
    let sql =
        "INSERT INTO spine.audit_entry (id, at, actor_kind, actor_id, action, resource_kind, resource_id,
                   generation, correlation_id, policy_version)
               VALUES ($1, now(), 'system', 'test', 'test.thing.change', 'thing', 'thg_1', 1, $1, 1)";
    client.execute(sql, &[&Uuid::from_u128(id)]).await.unwrap();
}

async fn order(world: &World) -> Vec<u128> {
    let rows = world.admin.query("SELECT entry_id FROM audit.leaf ORDER BY index", &[]).await.unwrap();
    rows.iter().map(|row| row.get::<_, Uuid>(0).as_u128()).collect()
}

#[tokio::test]
async fn a_late_committer_is_waited_for_and_never_skipped() {
    let world = World::new().await;
    let (late, early, rolled_back) =
        (world.superuser().await, world.superuser().await, world.superuser().await);
    late.batch_execute("BEGIN").await.unwrap();
    insert(&late, 9).await;
    rolled_back.batch_execute("BEGIN").await.unwrap();
    insert(&rolled_back, 8).await;
    insert(&early, 1).await;
    insert(&early, 2).await;
    assert_eq!(world.seal().await.unwrap().sealed, 0, "an open transaction could still come before these");
    rolled_back.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(world.seal().await.unwrap().sealed, 0);
    late.batch_execute("COMMIT").await.unwrap();
    // All, not in one step: transactions of other databases on the same server hold the horizon back, too.
    world.seal_all().await;
    assert_eq!(order(&world).await, [9, 1, 2], "by transaction, not by id or time");
    insert(&early, 3).await;
    world.seal_all().await;
    assert_eq!(world.check_tree().await, 4);
}

#[tokio::test]
async fn entries_of_one_transaction_may_be_sealed_in_several_batches() {
    let world = World::new().await;
    let client = world.superuser().await;
    client.batch_execute("BEGIN").await.unwrap();
    for id in 1..=5 {
        insert(&client, id).await;
    }
    client.batch_execute("COMMIT").await.unwrap();
    world.test.set("audit.seal_batch_max", 2).await;
    let sealer = world.sealer();
    let mut steps = Vec::new();
    testkit::eventually("all are sealed", async || {
        steps.push(sealer.step().await.unwrap().sealed);
        world.unsealed().await == 0
    })
    .await;
    steps.retain(|sealed| *sealed > 0);
    assert_eq!(steps, [2, 2, 1]);
    assert_eq!(world.check_tree().await, 5);
    assert_eq!(world.count("SELECT count(*) FROM audit.checkpoint").await, 3);
}

/// One that is always behind has a full batch each time.
#[tokio::test]
async fn a_sealer_that_never_catches_up_raises_the_alarm() {
    let world = World::new().await;
    let client = world.superuser().await;
    for id in 1..=3 {
        insert(&client, id).await;
    }
    world.test.set("audit.seal_batch_max", 1).await;
    let mut lateness = crate::sealer::Lateness::default();
    let in_an_hour = ManualClock::at(SystemClock.now() + Duration::from_secs(3_600));
    assert!(world.sealer_at(in_an_hour).turn(&mut lateness).await, "more is waiting");
    assert!(lateness.said.is_some(), "and has been for an hour");
}

#[tokio::test]
async fn a_batch_is_bounded_in_bytes_and_one_entry_always_fits() {
    let world = World::new().await;
    let org = world.organization();
    world.changes(org, 3).await;
    world.test.set("audit.seal_batch_bytes_max", 1024).await;
    let large =
        "INSERT INTO spine.audit_entry (id, at, actor_kind, actor_id, action, resource_kind, resource_id,
                   generation, after, correlation_id, policy_version)
               VALUES (gen_random_uuid(), now(), 'system', 'test', 'x', 'thing', 'thg_1', 1,
                       to_json(repeat('x', 5000)), gen_random_uuid(), 1)";
    world.admin.batch_execute(large).await.unwrap();
    world.changes(org, 1).await;
    let sealer = world.sealer();
    let mut steps = Vec::new();
    for _ in 0..4 {
        steps.push(sealer.step().await.unwrap().sealed);
    }
    assert_eq!(steps, [3, 1, 1, 0]);
    world.check_tree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_rollbacks_and_two_sealers_give_one_complete_log() {
    let world = Arc::new(World::new().await);
    world.test.set("audit.seal_batch_max", 7).await;
    let mut writers = Vec::new();
    for writer in 0..6u128 {
        let client = world.superuser().await;
        writers.push(tokio::spawn(async move {
            let mut committed = Vec::new();
            for round in 0..40u128 {
                let id = writer * 1_000 + round + 1;
                client.batch_execute("BEGIN").await.unwrap();
                insert(&client, id).await;
                // Some transactions stay open for longer than others, so that they end in another order.
                for _ in 0..(writer * 7 + round * 3) % 5 {
                    client.batch_execute("SELECT").await.unwrap();
                }
                let rollback = (writer + round) % 4 == 0;
                client.batch_execute(if rollback { "ROLLBACK" } else { "COMMIT" }).await.unwrap();
                if !rollback {
                    committed.push(id);
                }
            }
            committed
        }));
    }
    let stop = tokio_util::sync::CancellationToken::new();
    let sealers: Vec<_> = (0..2)
        .map(|_| {
            let (world, stop) = (Arc::clone(&world), stop.clone());
            tokio::spawn(async move {
                let sealer = world.sealer();
                let mut overtaken = 0;
                while !stop.is_cancelled() {
                    match sealer.step().await {
                        Ok(_) => {}
                        Err(SealError::Overtaken) => overtaken += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                overtaken
            })
        })
        .collect();
    let mut expected = Vec::new();
    for writer in writers {
        expected.extend(writer.await.unwrap());
    }
    eventually("everything is sealed", async || world.unsealed().await == 0).await;
    stop.cancel();
    for sealer in sealers {
        sealer.await.unwrap();
    }
    let mut found = order(&world).await;
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    world.check_tree().await;
}

#[tokio::test]
async fn a_crash_at_any_point_of_a_seal_loses_and_doubles_nothing() {
    let world = World::new().await;
    let org = world.organization();
    let mut finished = false;
    for polls in 0..60 {
        world.changes(org, 2).await;
        finished |= crash_after(polls, Box::pin(world.seal())).await.is_some();
        if polls % 3 == 0 {
            world.seal_all().await;
            world.check_tree().await;
        }
    }
    assert!(finished, "no attempt ever came to its end: the crashes came too early to mean anything");
    world.seal_all().await;
    assert_eq!(world.check_tree().await, 120);
}

#[tokio::test]
async fn the_tree_stays_right_across_stored_levels() {
    let world = World::new().await;
    let sql = "INSERT INTO spine.audit_entry (id, at, actor_kind, actor_id, action, resource_kind, resource_id,
                   generation, correlation_id, policy_version)
               SELECT gen_random_uuid(), now(), 'system', 'test', 'x', 'thing', n::text, 1, gen_random_uuid(), 1
               FROM generate_series(1, $1::int) n";
    for count in [255, 1, 1, 256 * 3, 70_000] {
        world.admin.execute(sql, &[&count]).await.unwrap();
        world.seal_all().await;
    }
    assert_eq!(world.check_tree().await, 71_025);
    assert_eq!(world.count("SELECT count(*) FROM audit.node WHERE level = 2").await, 1);
}

#[tokio::test]
async fn a_key_the_log_is_not_known_by_signs_nothing() {
    let world = World::new().await;
    let org = world.organization();
    world.change(org).await;
    world.seal_all().await;
    world.change(org).await;
    let other = SignerKey::from_seed("audit.test", &[8; 32]).unwrap();
    let sealer = world.sealer_with(SealKeys::from(other));
    assert!(matches!(sealer.step().await, Err(SealError::OtherKey { .. })));
    assert_eq!(world.unsealed().await, 1);
}

/// As if the database had come from another server.
const ELSEWHERE: &str = "SET session_replication_role = replica; UPDATE audit.era SET cluster = 1;
    RESET session_replication_role;";

#[tokio::test]
async fn on_another_server_nothing_is_sealed_while_something_could_hide_below_the_mark() {
    let world = World::new().await;
    let org = world.organization();
    world.changes(org, 2).await;
    world.seal_all().await;
    world.admin.batch_execute(ELSEWHERE).await.unwrap();
    world.change(org).await;
    // The marks speak of transaction ids far ahead of this server's.
    world.admin.batch_execute("UPDATE audit.tree SET done_xid = '99999999999'").await.unwrap();
    assert!(matches!(world.seal().await, Err(SealError::OtherCluster)));
    // The counter is beyond the mark, and an entry that was written below it is not sealed.
    let hidden = "UPDATE audit.tree SET done_xid = (SELECT max(xid) FROM spine.audit_entry),
                      done_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff'";
    world.admin.batch_execute(hidden).await.unwrap();
    assert!(matches!(world.seal().await, Err(SealError::OtherCluster)));
    // As after pg_upgrade: everything up to the mark is sealed, the counter goes on.
    let fine = "UPDATE audit.tree SET done_xid = (SELECT xid FROM audit.leaf WHERE index = 1),
                    done_id = (SELECT entry_id FROM audit.leaf WHERE index = 1)";
    world.admin.batch_execute(fine).await.unwrap();
    world.seal_all().await;
    world.check_tree().await;
}

#[tokio::test]
async fn a_restored_log_goes_on_whatever_the_old_transaction_ids_were() {
    // The old server was far ahead, or hardly begun: then old and new ids overlap.
    for old_ids in ["(9000000 + row)", "(3 + row)", "(txid_current() + 5 + row)"] {
        let world = World::new().await;
        let org = world.organization();
        world.changes(org, 6).await;
        let age = format!(
            "SET session_replication_role = replica;
             UPDATE spine.audit_entry e SET xid = {old_ids}::text::xid8
             FROM (SELECT id, row_number() OVER (ORDER BY xid) AS row FROM spine.audit_entry) o WHERE o.id = e.id;
             RESET session_replication_role;"
        );
        world.admin.batch_execute(&age).await.unwrap();
        seal_elsewhere(&world, 4).await;
        world.admin.batch_execute(ELSEWHERE).await.unwrap();
        world.admin.batch_execute(crate::NEW_CLUSTER).await.unwrap();
        world.changes(org, 5).await;
        for _ in 0..20 {
            world.admin.query_one("SELECT txid_current()", &[]).await.unwrap();
        }
        world.seal_all().await;
        world.changes(org, 1).await;
        world.seal_all().await;
        assert_eq!(world.check_tree().await, 12, "{old_ids}");
        // What is not sealed yet is not in an export, which says how many those are.
        world.changes(org, 2).await;
        let out = world.directory("restored").join("export");
        let exported = crate::export(&world.internal(), None, &out).await.unwrap();
        assert_eq!((exported.entries, exported.left_out), (12, 2), "{old_ids}");
        let report = merkle::verify_export(&out, &merkle::Outside::default()).unwrap();
        assert!(report.is_clean() && report.entries == 12, "{old_ids}: {report}");
    }
}

/// Seals the first entries with whatever transaction ids they have: what the old server's sealer did.
async fn seal_elsewhere(world: &World, count: i64) {
    let everything = store::SEAL_BATCH.replace("AND e.xid < pg_snapshot_xmin(pg_current_snapshot())", "");
    let (bytes, era) = (i64::MAX, 1i32);
    let params: db::Params<'_> = &[&"0", &Uuid::nil(), &count, &bytes, &era];
    let rows = world.admin.query(&everything, params).await.unwrap();
    let entries: Vec<_> = rows.iter().map(store::entry_row).collect();
    let mut tree = Frontier::default();
    let mut hashes: Vec<Vec<u8>> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let hash = leaf_hash(entry.line(index as u64).as_bytes());
        tree.append(hash);
        hashes.push(hash.as_bytes().to_vec());
    }
    let note = Checkpoint::new("audit.test", tree.size(), tree.root()).sign(&world.key).unwrap().to_string();
    let xids: Vec<&str> = entries.iter().map(|entry| entry.xid.as_str()).collect();
    let ids: Vec<Uuid> = entries.iter().map(|entry| entry.id).collect();
    let times: Vec<Timestamp> = entries.iter().map(|entry| entry.at).collect();
    let (none16, none64, none): (Vec<i16>, Vec<i64>, Vec<Vec<u8>>) = (vec![], vec![], vec![]);
    let (frontier, root, now) = (tree.to_bytes(), tree.root().as_bytes().to_vec(), world.db.now());
    let params: db::Params<'_> = &[
        &0i64,
        &count,
        &frontier,
        &xids.last(),
        &ids.last(),
        &now,
        &hashes,
        &xids,
        &ids,
        &times,
        &none16,
        &none64,
        &none,
        &root,
        &note,
        &era,
    ];
    assert_eq!(world.admin.query(store::SEAL_WRITE, params).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_running_sealer_seals_every_change_by_itself() {
    let world = Arc::new(World::new().await);
    let org = world.organization();
    let stop = tokio_util::sync::CancellationToken::new();
    let (sealing, told) = (Arc::clone(&world), stop.clone());
    let task = tokio::spawn(async move { sealing.sealer().run(told).await });
    for _ in 0..3 {
        world.change(org).await;
        eventually("the change is sealed", async || world.unsealed().await == 0).await;
    }
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn no_login_can_rewrite_what_is_sealed() {
    let world = World::new().await;
    world.change(world.organization()).await;
    world.seal_all().await;
    let tables = ["leaf", "node", "checkpoint", "signing_key", "tree"];
    let (owner, app, sealer) =
        (world.client(Login::Owner).await, world.client(Login::App).await, world.client(Login::Sealer).await);
    for table in tables {
        for client in [&owner, &app, &sealer] {
            for sql in [format!("DELETE FROM audit.{table}"), format!("TRUNCATE audit.{table}")] {
                let error = client.batch_execute(&sql).await.unwrap_err();
                assert_eq!(error.code().unwrap().code(), "42501", "{sql}");
            }
        }
    }
    for sql in [
        "UPDATE audit.leaf SET hash = hash",
        "UPDATE audit.node SET hash = hash",
        "UPDATE audit.checkpoint SET note = note",
        "UPDATE audit.signing_key SET verifier_key = verifier_key",
        "UPDATE audit.tree SET size = 0",
    ] {
        for client in [&owner, &app, &sealer] {
            assert_eq!(client.batch_execute(sql).await.unwrap_err().code().unwrap().code(), "42501", "{sql}");
        }
    }
    let forged = "INSERT INTO audit.checkpoint VALUES (9, '\\x', '', now())";
    assert_eq!(app.batch_execute(forged).await.unwrap_err().code().unwrap().code(), "42501");
}
