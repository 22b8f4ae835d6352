//! Copies elsewhere: complete, verifiable on their own, resumed after any crash, never overwritten.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use blob::{BlobConfig, Blobs};
use merkle::{Outside, verify_export};
use types::SystemClock;

use super::fixture::{World, crash_after};
use crate::{Channel, Delivery, DeliveryError, Destination, Replica, Witness};

pub fn delivery(world: &World, destination: impl Destination) -> Delivery {
    Delivery::new(world.internal(), Arc::new(SystemClock), world.settings.clone(), Arc::new(destination))
}

pub fn place(world: &World) -> (PathBuf, Blobs) {
    let path = world.directory("replica");
    let blobs = Blobs::open(&BlobConfig::directory(&path)).unwrap();
    (path, blobs)
}

pub async fn deliver_all(delivery: &Delivery) {
    while delivery.step().await.unwrap().is_some() {}
}

/// Joins a copy into an export, as the guide says, and verifies it.
pub fn joined(replica: &Path, world: &World) -> merkle::Report {
    let export = world.directory("joined");
    let sorted = |directory: &str| {
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(replica.join(directory)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    for (directory, file) in [("entries", "entries.jsonl"), ("leaves", "leaves")] {
        let bytes: Vec<u8> = sorted(directory).iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
        std::fs::write(export.join(file), bytes).unwrap();
    }
    std::fs::copy(sorted("checkpoints").last().unwrap(), export.join("checkpoint")).unwrap();
    let key = export.with_extension("vkey");
    std::fs::write(&key, format!("{}\n", world.key.verifier())).unwrap();
    for (directory, file) in [("keys", "key"), ("handovers", "handovers")] {
        if replica.join(directory).exists() {
            let bytes: Vec<u8> =
                sorted(directory).iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
            std::fs::write(export.join(file), bytes).unwrap();
        }
    }
    verify_export(&export, &Outside { key: Some(key), checkpoint: None }).unwrap()
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_no_tampering() {
    let world = World::new().await;
    let (_, blobs) = place(&world);
    let delivery = delivery(&world, Replica::new(world.internal(), blobs));
    world.change(world.organization()).await;
    world.seal_all().await;
    for table in ["audit.signing_key", "audit.leaf", "audit.checkpoint"] {
        world.admin.batch_execute(&format!("REVOKE SELECT ON {table} FROM test_sealer")).await.unwrap();
        let failed = delivery.step().await;
        assert!(matches!(failed, Err(DeliveryError::Db(_))), "{table}: {failed:?}");
        world.admin.batch_execute(&format!("GRANT SELECT ON {table} TO test_sealer")).await.unwrap();
    }
    assert_eq!(delivery.step().await.unwrap(), Some(1));
}

#[tokio::test]
async fn the_copy_joined_is_an_export_that_verifies() {
    let world = World::new().await;
    let org = world.organization();
    let (path, blobs) = place(&world);
    let delivery = delivery(&world, Replica::new(world.internal(), blobs));
    assert_eq!(delivery.step().await.unwrap(), None);
    for count in [3, 1, 4] {
        world.changes(org, count).await;
        world.seal_all().await;
        deliver_all(&delivery).await;
    }
    assert_eq!(delivery.step().await.unwrap(), None);
    let report = joined(&path, &world);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.entries, 8);
}

#[tokio::test]
async fn a_crash_at_any_point_of_a_copy_is_resumed_with_the_same_bytes() {
    let world = World::new().await;
    let org = world.organization();
    let (path, blobs) = place(&world);
    let first = delivery(&world, Replica::new(world.internal(), blobs.clone()));
    for polls in 0..40 {
        world.changes(org, 2).await;
        world.seal_all().await;
        crash_after(polls, Box::pin(first.step())).await;
    }
    let second = delivery(&world, Replica::new(world.internal(), blobs));
    deliver_all(&second).await;
    let report = joined(&path, &world);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.entries, 80);
}

#[tokio::test]
async fn a_parcel_larger_than_an_object_is_cut_and_joins_again() {
    let world = World::new().await;
    // Forty entries of almost a megabyte each, sealed one by one and copied as one parcel.
    world.admin.batch_execute(
        "INSERT INTO spine.audit_entry (id, at, actor_kind, actor_id, action, resource_kind, resource_id, generation, after,
             correlation_id, policy_version)
         SELECT gen_random_uuid(), now(), 'user', 'u', 'test.thing.change', 'thing', 'thg_' || n, 1,
             json_build_object('name', repeat('x', 900000)), gen_random_uuid(), 1 FROM generate_series(1, 40) n",
    ).await.unwrap();
    world.seal_all().await;
    let (path, blobs) = place(&world);
    let first = delivery(&world, Replica::new(world.internal(), blobs.clone()));
    crash_after(30, Box::pin(first.step())).await;
    deliver_all(&delivery(&world, Replica::new(world.internal(), blobs))).await;
    let objects: Vec<u64> = std::fs::read_dir(path.join("entries"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .collect();
    assert!(objects.len() >= 3 && objects.iter().all(|bytes| *bytes <= 16 << 20), "{objects:?}");
    let report = joined(&path, &world);
    assert!(report.is_clean() && report.entries == 40, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_at_once_make_one_copy() {
    let world = World::new().await;
    let org = world.organization();
    let (path, blobs) = place(&world);
    let one = delivery(&world, Replica::new(world.internal(), blobs.clone()));
    let two = delivery(&world, Replica::new(world.internal(), blobs));
    for _ in 0..10 {
        world.changes(org, 2).await;
        world.seal_all().await;
        let (left, right) = futures::join!(one.step(), two.step());
        left.unwrap();
        right.unwrap();
    }
    deliver_all(&one).await;
    assert!(joined(&path, &world).is_clean());
}

#[tokio::test]
async fn other_bytes_in_the_second_place_are_an_alarm_and_stay() {
    let world = World::new().await;
    let (path, blobs) = place(&world);
    world.changes(world.organization(), 2).await;
    world.seal_all().await;
    std::fs::create_dir_all(path.join("entries")).unwrap();
    let object = path.join(format!("entries/{:020}-{:020}.jsonl", 0, 2));
    std::fs::write(&object, "something else").unwrap();
    let delivery = delivery(&world, Replica::new(world.internal(), blobs));
    assert!(matches!(delivery.step().await, Err(DeliveryError::Alarm(_))));
    assert_eq!(std::fs::read_to_string(&object).unwrap(), "something else");
    assert_eq!(world.count("SELECT size FROM audit.delivery").await, 0);
}

#[tokio::test]
async fn altered_and_missing_entries_do_not_reach_the_copy() {
    for damage in [
        "UPDATE spine.audit_entry SET actor_id = 'someone else'",
        "DELETE FROM spine.audit_entry",
        "DELETE FROM audit.leaf WHERE index = 0",
    ] {
        let world = World::new().await;
        let (path, blobs) = place(&world);
        world.changes(world.organization(), 2).await;
        world.seal_all().await;
        world
            .admin
            .batch_execute(&format!("SET session_replication_role = replica; {damage}"))
            .await
            .unwrap();
        let delivery = delivery(&world, Replica::new(world.internal(), blobs));
        assert!(matches!(delivery.step().await, Err(DeliveryError::Alarm(_))), "{damage}");
        assert!(!path.join("checkpoints").exists());
    }
}

#[tokio::test]
async fn a_new_place_gets_everything_from_the_beginning_and_a_known_one_goes_on() {
    let world = World::new().await;
    let (path, blobs) = place(&world);
    world.changes(world.organization(), 3).await;
    world.seal_all().await;
    let first = delivery(&world, Replica::new(world.internal(), blobs.clone()));
    first.look_around().await.unwrap();
    deliver_all(&first).await;
    let known = delivery(&world, Replica::new(world.internal(), blobs));
    known.look_around().await.unwrap();
    assert_eq!(known.step().await.unwrap(), None);
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let (path, blobs) = place(&world);
    let fresh = delivery(&world, Replica::new(world.internal(), blobs));
    fresh.look_around().await.unwrap();
    deliver_all(&fresh).await;
    let report = joined(&path, &world);
    assert!(report.is_clean() && report.entries == 3, "{report}");
}

/// Every object with its bytes.
fn objects(place: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for directory in ["entries", "leaves", "checkpoints"] {
        for entry in std::fs::read_dir(place.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            all.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn a_restored_log_writes_nothing_beside_the_history_it_lost() {
    let world = World::new().await;
    let org = world.organization();
    let (path, blobs) = place(&world);
    world.changes(org, 2).await;
    world.seal_all().await;
    let before = delivery(&world, Replica::new(world.internal(), blobs.clone()));
    deliver_all(&before).await;
    // As after a restore: what the place got later, this database has never heard of.
    let lost = path.join(format!("entries/{:020}-{:020}.jsonl", 2, 3));
    std::fs::write(&lost, "lost\n").unwrap();
    for newer in [lost, path.join(format!("checkpoints/{:020}", 3))] {
        std::fs::write(&newer, "lost\n").unwrap();
        world.changes(org, 2).await;
        world.seal_all().await;
        let there = objects(&path);
        let restored = delivery(&world, Replica::new(world.internal(), blobs.clone()));
        let refused = restored.look_around().await.unwrap_err();
        assert!(matches!(refused, DeliveryError::Alarm(_)), "{refused}");
        assert!(refused.to_string().contains("a new, empty place"), "{refused}");
        let trouble = restored.trouble();
        let stop = tokio_util::sync::CancellationToken::new();
        let watching = async {
            testkit::eventually("it says so", async || trouble.borrow().is_some()).await;
            stop.cancel();
        };
        futures::join!(restored.run(stop.clone()), watching);
        assert_eq!(objects(&path), there, "nothing was written");
        std::fs::remove_file(&newer).unwrap();
    }
    // Another checkpoint where ours was, and none at all.
    let checkpoint = path.join(format!("checkpoints/{:020}", 2));
    std::fs::write(&checkpoint, "another").unwrap();
    let replaced = delivery(&world, Replica::new(world.internal(), blobs.clone())).look_around().await;
    assert!(matches!(replaced, Err(DeliveryError::Alarm(_))), "{replaced:?}");
    std::fs::remove_file(&checkpoint).unwrap();
    let gone = delivery(&world, Replica::new(world.internal(), blobs)).look_around().await;
    assert!(matches!(gone, Err(DeliveryError::Alarm(_))), "{gone:?}");
}

/// A witness that counts, and answers what it is told to.
async fn http_witness(status: u16) -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/checkpoint", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let router = axum::Router::new().fallback(async move |body: String| {
        assert!(body.starts_with("audit.test\n"), "{body}");
        counted.fetch_add(1, Ordering::SeqCst);
        axum::http::StatusCode::from_u16(status).unwrap()
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, count)
}

#[tokio::test]
async fn a_witness_gets_the_newest_checkpoint_once() {
    let world = World::new().await;
    let (url, count) = http_witness(200).await;
    let delivery = delivery(&world, Witness::new(Channel::Http(url), world.settings.clone()));
    for _ in 0..3 {
        world.change(world.organization()).await;
        world.seal_all().await;
    }
    assert_eq!(delivery.step().await.unwrap(), Some(3));
    assert_eq!(delivery.step().await.unwrap(), None);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_witness_that_contradicts_is_an_alarm_and_one_that_is_away_is_not() {
    let world = World::new().await;
    world.change(world.organization()).await;
    world.seal_all().await;
    let cases = [(409, true), (422, true), (500, false), (404, false)];
    for (status, alarm) in cases {
        let (url, _) = http_witness(status).await;
        let delivery = delivery(&world, Witness::new(Channel::Http(url), world.settings.clone()));
        let error = delivery.step().await.unwrap_err();
        assert_eq!(matches!(error, DeliveryError::Alarm(_)), alarm, "{status}: {error}");
    }
    let nobody = Channel::Http("http://127.0.0.1:9/".to_owned());
    let delivery = delivery(&world, Witness::new(nobody, world.settings.clone()));
    assert!(matches!(delivery.step().await, Err(DeliveryError::Unavailable(_))));
}

#[tokio::test]
async fn a_git_witness_keeps_history_and_refuses_to_go_back() {
    let world = World::new().await;
    let clone = world.directory("witness");
    let git = |arguments: &[&str]| {
        let output =
            std::process::Command::new("git").arg("-C").arg(&clone).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    let witness = || Witness::new(Channel::Git(clone.clone()), world.settings.clone());
    let delivery = delivery(&world, witness());
    for expected in 1..=3 {
        world.change(world.organization()).await;
        world.seal_all().await;
        assert_eq!(delivery.step().await.unwrap(), Some(expected));
    }
    assert_eq!(git(&["log", "--format=%s"]).lines().count(), 3);
    // Crashed after the commit: the same parcel again changes nothing.
    let newest = world.audit.checkpoint(None).await.unwrap().checkpoint;
    let again = crate::Parcel { from: 2, to: 3, note: newest.note };
    witness().deliver(&again).await.unwrap();
    assert_eq!(git(&["log", "--format=%s"]).lines().count(), 3);
    let older = crate::Parcel { from: 0, to: 1, note: "another history".to_owned() };
    assert!(matches!(witness().deliver(&older).await, Err(DeliveryError::Alarm(_))));
}
