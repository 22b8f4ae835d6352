//! Old entries leave the database when their copy is whole, and what is left proves as much as before.

use std::path::PathBuf;
use std::sync::Arc;

use blob::Blobs;
use merkle::{Outside, verify_export};
use types::SystemClock;

use super::delivering::{deliver_all, delivery, place};
use super::fixture::World;
use crate::{DeliveryError, EntryFilter, ExportFailure, Pruner, Replica, export, verify_page};

/// Two months, two years ago and one month later, with entries; and some of today.
async fn old_world() -> (World, PathBuf, Blobs) {
    let world = World::new().await;
    for (month, suffix) in [(24, "old_a"), (23, "old_b")] {
        let bounds = format!(
            "date_trunc('month', now() - interval '{month} months'), date_trunc('month', now() - interval '{} months')",
            month - 1
        );
        let fill = format!(
            "SELECT spine.partition_make('audit_entry', 'at', {bounds}, '{suffix}');
             INSERT INTO spine.audit_entry (id, at, org_id, actor_kind, actor_id, action, resource_kind, resource_id,
                 generation, correlation_id, policy_version)
             SELECT gen_random_uuid(), date_trunc('month', now() - interval '{month} months') + n * interval '1 hour',
                 gen_random_uuid(), 'user', 'u', 'test.thing.change', 'thing', 'thg_' || n, 1, gen_random_uuid(), 1
             FROM generate_series(1, 20) n"
        );
        world.admin.batch_execute(&fill).await.unwrap();
        world.seal_all().await;
    }
    world.changes(world.organization(), 5).await;
    world.seal_all().await;
    let (path, blobs) = place(&world);
    (world, path, blobs)
}

fn pruner(world: &World, blobs: &Blobs) -> Pruner {
    Pruner::new(world.internal(), Arc::new(SystemClock), world.settings.clone(), blobs.clone())
}

async fn entries(world: &World) -> i64 {
    world.count("SELECT count(*) FROM spine.audit_entry").await
}

async fn examine(world: &World, blobs: Option<&Blobs>) -> Result<merkle::Report, ExportFailure> {
    let home = world.directory("exports");
    let directory = home.join(format!("out{}", std::fs::read_dir(&home).unwrap().count()));
    export(&world.internal(), blobs, &directory).await?;
    let key = world.directory("kept").join("audit.vkey");
    std::fs::write(&key, format!("{}\n", world.key.verifier())).unwrap();
    Ok(verify_export(&directory, &Outside { key: Some(key), checkpoint: None }).unwrap())
}

#[tokio::test]
async fn a_month_goes_per_call_when_its_copy_is_whole_and_exports_stay_whole() {
    let (world, _, blobs) = old_world().await;
    let pruner = pruner(&world, &blobs);
    assert_eq!(pruner.step().await.unwrap(), None, "without a second place nothing goes");
    let delivery = delivery(&world, Replica::new(world.internal(), blobs.clone()));
    deliver_all(&delivery).await;
    for (partition, left) in [("audit_entry_old_a", 25), ("audit_entry_old_b", 5)] {
        let pruned = pruner.step().await.unwrap().unwrap();
        assert_eq!((pruned.partition.as_str(), pruned.entries), (partition, 20));
        assert_eq!(entries(&world).await, left);
        let report = examine(&world, Some(&blobs)).await.unwrap();
        assert!(report.is_clean() && report.intact == 45, "{report}");
    }
    assert_eq!(pruner.step().await.unwrap(), None, "what is not old stays");
    assert!(matches!(examine(&world, None).await, Err(ExportFailure::Pruned)));
    // The log goes on, and the remaining entries have their proofs.
    let org = world.organization();
    world.changes(org, 3).await;
    world.seal_all().await;
    deliver_all(&delivery).await;
    let filter = EntryFilter { limit: 10, proofs: true, ..EntryFilter::default() };
    let page = world.audit.entry_list(&world.owner(org), org, &filter).await.unwrap();
    let keys = merkle::KeyChain::new(vec![world.key.verifier().clone()]);
    assert_eq!(verify_page(&page, &keys).unwrap().proven, 3);
    let quiet = world.organization();
    assert!(world.audit.entry_list(&world.owner(quiet), quiet, &filter).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn what_is_not_sealed_or_not_copied_keeps_its_month() {
    let (world, _, blobs) = old_world().await;
    let delivery = delivery(&world, Replica::new(world.internal(), blobs.clone()));
    assert!(delivery.step().await.unwrap().is_some());
    // One more of that month, committed just now and not sealed.
    world
        .admin
        .batch_execute(
            "INSERT INTO spine.audit_entry (id, at, actor_kind, actor_id, action, resource_kind, resource_id, generation,
                 correlation_id, policy_version)
             SELECT gen_random_uuid(), date_trunc('month', now() - interval '24 months') + interval '1 day', 'user', 'u',
                 'test.thing.change', 'thing', 'thg_late', 1, gen_random_uuid(), 1",
        )
        .await
        .unwrap();
    let pruner = pruner(&world, &blobs);
    assert_eq!(pruner.step().await.unwrap(), None);
    world.seal_all().await;
    assert_eq!(pruner.step().await.unwrap(), None, "sealed, and not copied yet");
    deliver_all(&delivery).await;
    assert_eq!(pruner.step().await.unwrap().unwrap().entries, 21);
    let report = examine(&world, Some(&blobs)).await.unwrap();
    assert!(report.is_clean() && report.intact == 46, "{report}");
}

#[tokio::test]
async fn a_copy_that_is_gone_or_changed_keeps_the_original() {
    for damage in ["remove", "change"] {
        let (world, path, blobs) = old_world().await;
        deliver_all(&delivery(&world, Replica::new(world.internal(), blobs.clone()))).await;
        let object = std::fs::read_dir(path.join("entries")).unwrap().next().unwrap().unwrap().path();
        match damage {
            "remove" => std::fs::remove_file(&object).unwrap(),
            _ => {
                let text = std::fs::read_to_string(&object).unwrap().replace("thg_7\"", "thg_8\"");
                std::fs::write(&object, text).unwrap();
            }
        }
        let refused = pruner(&world, &blobs).step().await;
        assert!(matches!(refused, Err(DeliveryError::Alarm(_))), "{damage}: {refused:?}");
        assert_eq!(entries(&world).await, 45);
    }
}

#[tokio::test]
async fn an_entry_that_somebody_deleted_is_still_named_and_an_empty_place_is_an_alarm() {
    let (world, path, blobs) = old_world().await;
    let delivery = delivery(&world, Replica::new(world.internal(), blobs.clone()));
    deliver_all(&delivery).await;
    pruner(&world, &blobs).step().await.unwrap().unwrap();
    world
        .admin
        .batch_execute(
            "SET session_replication_role = replica;
             DELETE FROM spine.audit_entry WHERE id = (SELECT entry_id FROM audit.leaf WHERE index = 42)",
        )
        .await
        .unwrap();
    let report = examine(&world, Some(&blobs)).await.unwrap();
    assert_eq!(report.problem.unwrap().index(), Some(42), "the copy does not hide what is missing here");
    std::fs::remove_dir_all(path.join("entries")).unwrap();
    assert!(matches!(delivery.look_around().await, Err(DeliveryError::Alarm(_))));
    assert_eq!(world.count("SELECT size FROM audit.delivery").await, 45, "and nothing begins again");
    assert!(matches!(examine(&world, Some(&blobs)).await, Err(ExportFailure::Lost(0))));
}

#[tokio::test]
async fn nobody_drops_what_is_young_or_was_not_compared() {
    let (world, _, blobs) = old_world().await;
    deliver_all(&delivery(&world, Replica::new(world.internal(), blobs))).await;
    let next =
        "date_trunc('month', now() + interval '1 month'), date_trunc('month', now() + interval '2 months')";
    let make = format!("SELECT spine.partition_make('audit_entry', 'at', {next}, 'young')");
    world.admin.batch_execute(&make).await.unwrap();
    let sealer = world.client(db::Login::Sealer).await;
    let drop = |month: i32, compared: u32, last: u32| {
        format!(
            "SELECT audit.partition_drop(name, lower_at, upper_at, {compared}, {last}, now()) FROM audit.entry_partition
             WHERE lower_at = date_trunc('month', now() - interval '{month} months')"
        )
    };
    for (sql, says) in [
        (drop(-1, 0, 0), "not old"),
        (drop(24, 19, 19), "were compared"),
        (drop(24, 20, 45), "not copied elsewhere"),
        (
            "SELECT audit.partition_drop('audit_entry_default', now(), now(), 0, 0, now())".to_owned(),
            "not a partition",
        ),
    ] {
        let error = sealer.query(&sql, &[]).await.unwrap_err();
        let said = error.as_db_error().unwrap().message().to_owned();
        assert!(said.contains(says), "{sql}: {said}");
    }
    for login in [db::Login::App, db::Login::Reader] {
        assert!(world.client(login).await.query(&drop(24, 20, 19), &[]).await.is_err());
    }
    assert_eq!(entries(&world).await, 45);
}
