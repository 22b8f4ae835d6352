//! What a superuser changes in the database, an export shows and the verifier names.

use std::path::PathBuf;
use std::sync::Arc;

use merkle::{Finding, Outside, Report, verify_export};

use super::fixture::World;
use crate::{export, record_export};

/// Exports and verifies with a key, and optionally a checkpoint, that were kept elsewhere.
async fn examine(world: &World, checkpoint: Option<&str>) -> Report {
    let home = world.directory("exports");
    let directory = home.join(format!("out{}", std::fs::read_dir(&home).unwrap().count()));
    export(&world.internal(), None, &directory).await.unwrap();
    let key = home.join("log.vkey");
    std::fs::write(&key, format!("{}\n", world.key.verifier())).unwrap();
    let kept: Option<PathBuf> = checkpoint.map(|note| {
        let path = home.join("kept");
        std::fs::write(&path, note).unwrap();
        path
    });
    verify_export(&directory, &Outside { key: Some(key), checkpoint: kept }).unwrap()
}

async fn sealed(count: usize) -> World {
    let world = World::new().await;
    world.changes(world.organization(), count).await;
    world.seal_all().await;
    world
}

async fn tamper(world: &World, sql: &str) {
    world.admin.batch_execute(&format!("SET session_replication_role = replica; {sql}")).await.unwrap();
}

const ENTRY: &str = "(SELECT entry_id FROM audit.leaf WHERE index = 3)";

#[tokio::test]
async fn an_untouched_log_verifies_and_an_unanchored_one_says_so() {
    let world = sealed(10).await;
    let kept = world.audit.checkpoint(None).await.unwrap().checkpoint.note;
    world.changes(world.organization(), 3).await;
    world.seal_all().await;
    let report = examine(&world, Some(&kept)).await;
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.entries, 13);
    let directory = world.directory("bare").join("out");
    export(&world.internal(), None, &directory).await.unwrap();
    let report = verify_export(&directory, &Outside::default()).unwrap();
    assert!(report.is_clean() && report.to_string().contains("UNANCHORED"), "{report}");
}

#[tokio::test]
async fn an_altered_entry_is_named() {
    for column in [
        "actor_id = 'someone'",
        "action = 'nothing.happened'",
        "after = '{}'",
        "at = at + interval '1 microsecond'",
        "org_id = NULL",
        "policy_version = 7",
    ] {
        let world = sealed(8).await;
        tamper(&world, &format!("UPDATE spine.audit_entry SET {column} WHERE id = {ENTRY}")).await;
        let report = examine(&world, None).await;
        assert!(matches!(report.problem, Some(Finding::Altered { index: 3, .. })), "{column}: {report}");
        assert_eq!(report.intact, 3);
    }
}

#[tokio::test]
async fn a_removed_entry_is_named() {
    let world = sealed(8).await;
    tamper(&world, &format!("DELETE FROM spine.audit_entry WHERE id = {ENTRY}")).await;
    let report = examine(&world, None).await;
    assert!(matches!(report.problem, Some(Finding::Removed { index: 3, instead: 4 })), "{report}");
}

#[tokio::test]
async fn an_inserted_entry_is_named() {
    let world = sealed(8).await;
    let sql = format!(
        "INSERT INTO spine.audit_entry SELECT xid, 'ffffffff-0000-0000-0000-000000000000', at, org_id, project_id,
             actor_kind, 'forged', behalf_kind, behalf_id, credential, action, resource_kind, resource_id, generation, before, after,
             correlation_id, causation_id, policy_version
         FROM spine.audit_entry WHERE id = {ENTRY}"
    );
    tamper(&world, &sql).await;
    let report = examine(&world, None).await;
    assert!(matches!(report.problem, Some(Finding::Inserted { index: 4, .. })), "{report}");
}

#[tokio::test]
async fn two_entries_that_changed_places_are_named() {
    let world = sealed(8).await;
    // Places are (xid, id): give each entry the other's, here and in the leaves.
    let swap = "CREATE TEMP TABLE pair AS SELECT l.index, l.xid, l.entry_id FROM audit.leaf l WHERE index IN (3, 5);
        UPDATE spine.audit_entry e SET xid = o.xid FROM pair p, pair o WHERE e.id = p.entry_id AND o.index <> p.index;
        UPDATE audit.leaf l SET entry_id = gen_random_uuid() WHERE index IN (3, 5);
        UPDATE audit.leaf l SET entry_id = o.entry_id FROM pair o
            WHERE l.index IN (3, 5) AND o.index IN (3, 5) AND o.index <> l.index;";
    tamper(&world, swap).await;
    let report = examine(&world, None).await;
    assert_eq!(report.problem.as_ref().and_then(Finding::index), Some(3), "{report}");
}

#[tokio::test]
async fn the_newest_entries_removed_with_their_checkpoint_are_missed_by_a_kept_one() {
    let world = sealed(4).await;
    world.changes(world.organization(), 4).await;
    world.seal_all().await;
    let kept = world.audit.checkpoint(None).await.unwrap().checkpoint.note;
    let cut = "DELETE FROM spine.audit_entry e USING audit.leaf l WHERE l.entry_id = e.id AND l.index >= 4;
        DELETE FROM audit.leaf WHERE index >= 4; DELETE FROM audit.checkpoint WHERE size > 4;";
    tamper(&world, cut).await;
    assert!(examine(&world, None).await.is_clean(), "without a kept checkpoint this cannot be seen");
    let report = examine(&world, Some(&kept)).await;
    let missed = report.problem.iter().chain(&report.also);
    assert!(
        missed.clone().any(|finding| matches!(finding, Finding::EndsBefore { index: 4, last: 7 })),
        "{report}"
    );
}

#[tokio::test]
async fn hashes_changed_along_with_the_entry_do_not_help() {
    let world = sealed(8).await;
    let row = &world.admin.query(crate::store::SEALED_RANGE, &[&3i64, &4i64]).await.unwrap()[0];
    let mut entry = crate::store::entry_row(row);
    entry.actor_id = "someone".to_owned();
    let forged = merkle::leaf_hash(entry.line(3).as_bytes());
    tamper(&world, &format!("UPDATE spine.audit_entry SET actor_id = 'someone' WHERE id = {ENTRY}")).await;
    let hash = forged.as_bytes().as_slice();
    world.admin.execute("UPDATE audit.leaf SET hash = $1 WHERE index = 3", &[&hash]).await.unwrap();
    let report = examine(&world, None).await;
    assert!(!report.is_clean(), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_while_others_write_is_a_clean_prefix() {
    let world = Arc::new(sealed(20).await);
    let stop = tokio_util::sync::CancellationToken::new();
    let (writing, told) = (Arc::clone(&world), stop.clone());
    let writer = tokio::spawn(async move {
        let org = writing.organization();
        while !told.is_cancelled() {
            writing.change(org).await;
            writing.seal().await.unwrap();
        }
    });
    for _ in 0..5 {
        let report = examine(&world, None).await;
        assert!(report.is_clean() && report.entries >= 20, "{report}");
    }
    stop.cancel();
    writer.await.unwrap();
}

#[tokio::test]
async fn an_export_is_itself_recorded() {
    let world = sealed(1).await;
    record_export(&world.db, &*world.decider).await.unwrap();
    assert_eq!(
        world.count("SELECT count(*) FROM spine.audit_entry WHERE action = 'audit.log.export'").await,
        1
    );
}
