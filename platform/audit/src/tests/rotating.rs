//! The log's key is changed while everything goes on, and what was kept from before still verifies.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use merkle::{Outside, SignerKey, VerifierKey, verify_export};
use testkit::eventually;
use tokio_util::sync::CancellationToken;

use super::delivering::{deliver_all, delivery, joined, place};
use super::fixture::{World, crash_after};
use crate::sealer::{KeySource, SealError, SealKeys};
use crate::{EntryFilter, Replica, TenantError, export, trusted_keys, verify_growth, verify_page};

fn key(seed: u8) -> Arc<SignerKey> {
    Arc::new(SignerKey::from_seed("audit.test", &[seed; 32]).unwrap())
}

/// The fixture's own key has the seed 7.
const FIRST: u8 = 7;

fn rotated(former: u8, current: u8) -> SealKeys {
    SealKeys { current: key(current), former: Some(key(former)) }
}

/// Changes the key with the next entries.
async fn rotate(world: &World, former: u8, current: u8) {
    world.changes(world.organization(), 2).await;
    world.seal_all_with(rotated(former, current)).await;
}

/// Exports, and verifies with one key that was kept.
async fn examine(world: &World, kept: &VerifierKey) -> merkle::Report {
    let home = world.directory("exports");
    let directory = home.join(format!("out{}", std::fs::read_dir(&home).unwrap().count()));
    export(&world.internal(), None, &directory).await.unwrap();
    let file = world.directory("kept").join("audit.vkey");
    std::fs::write(&file, format!("{kept}\n")).unwrap();
    verify_export(&directory, &Outside { key: Some(file), checkpoint: None }).unwrap()
}

#[tokio::test]
async fn a_log_whose_key_changed_twice_verifies_with_any_of_its_keys() {
    let world = World::new().await;
    world.changes(world.organization(), 3).await;
    world.seal_all().await;
    rotate(&world, FIRST, 8).await;
    world.changes(world.organization(), 3).await;
    world.seal_all_with(rotated(FIRST, 8)).await;
    rotate(&world, 8, 9).await;
    world.check_tree().await;
    for seed in [FIRST, 8, 9] {
        let report = examine(&world, key(seed).verifier()).await;
        assert!(report.is_clean() && report.intact == 10, "{seed}: {report}");
    }
    assert!(!examine(&world, key(99).verifier()).await.is_clean());
    // The old key is refused from then on, and so is one that nobody handed over to.
    world.change(world.organization()).await;
    for keys in [world.seal_keys(), rotated(FIRST, 8), rotated(8, 10), rotated(FIRST, 10)] {
        let refused = world.sealer_with(keys).step().await;
        assert!(matches!(refused, Err(SealError::OtherKey { .. })), "{refused:?}");
    }
    assert_eq!(world.count("SELECT count(*) FROM audit.signing_key").await, 3);
}

#[tokio::test]
async fn a_crash_at_any_point_of_a_handover_leaves_one_key() {
    for polls in 0..25 {
        let world = World::new().await;
        world.change(world.organization()).await;
        world.seal_all().await;
        world.change(world.organization()).await;
        let sealer = world.sealer_with(rotated(FIRST, 8));
        crash_after(polls, Box::pin(sealer.step())).await;
        eventually("the hand-over is done", async || {
            sealer.step().await.unwrap();
            world.unsealed().await == 0
        })
        .await;
        assert_eq!(world.count("SELECT count(*) FROM audit.signing_key").await, 2);
        let report = examine(&world, key(FIRST).verifier()).await;
        assert!(report.is_clean() && report.intact == 2, "{report}");
    }
}

#[tokio::test]
async fn the_copy_carries_the_handover_even_where_it_leaves_its_checkpoint_out() {
    let world = World::new().await;
    world.change(world.organization()).await;
    world.seal_all().await;
    rotate(&world, FIRST, 8).await;
    world.changes(world.organization(), 2).await;
    world.seal_all_with(rotated(FIRST, 8)).await;
    let (path, blobs) = place(&world);
    deliver_all(&delivery(&world, Replica::new(world.internal(), blobs))).await;
    let size = world.count("SELECT max(from_size) FROM audit.signing_key").await;
    assert!(!path.join(format!("checkpoints/{size:020}")).exists());
    let report = joined(&path, &world);
    assert!(report.is_clean() && report.intact == 5, "{report}");
}

#[tokio::test]
async fn a_tenant_follows_the_keys_from_the_one_it_kept() {
    let world = World::new().await;
    let org = world.organization();
    world.changes(org, 2).await;
    world.seal_all().await;
    let old = world.audit.checkpoint(None).await.unwrap().checkpoint;
    world.changes(org, 2).await;
    world.seal_all_with(rotated(FIRST, 8)).await;
    let shown = world.audit.keys().await.unwrap();
    let chain = trusted_keys(key(FIRST).verifier().clone(), &shown).unwrap();
    let filter = EntryFilter { limit: 10, proofs: true, ..EntryFilter::default() };
    let page = world.audit.entry_list(&world.owner(org), org, &filter).await.unwrap();
    assert_eq!(verify_page(&page, &chain).unwrap().proven, 4);
    let reply = world.audit.checkpoint(Some(2)).await.unwrap();
    verify_growth(&old.note, &reply.checkpoint.note, &reply.consistency.unwrap(), &chain).unwrap();
    // A server that shows a key without its hand-over, or with somebody else's, convinces nobody.
    let mut bare = shown.clone();
    bare.keys[1].handover = None;
    let chain = trusted_keys(key(FIRST).verifier().clone(), &bare).unwrap();
    world.change(org).await;
    world.seal_all_with(rotated(FIRST, 8)).await;
    let page = world.audit.entry_list(&world.owner(org), org, &filter).await.unwrap();
    assert!(matches!(verify_page(&page, &chain), Err(TenantError::Checkpoint(_))));
    let stranger = trusted_keys(key(99).verifier().clone(), &shown);
    assert!(matches!(stranger, Err(TenantError::Key { .. })));
}

/// Keys that are kept elsewhere and replaced there.
#[derive(Clone)]
struct Kept {
    at_hand: Arc<Mutex<SealKeys>>,
    newest: Arc<Mutex<SealKeys>>,
}

impl KeySource for Kept {
    fn keys(&self) -> SealKeys {
        self.at_hand.lock().unwrap().clone()
    }

    fn renew(&self) -> BoxFuture<'_, Result<(), String>> {
        let newest = self.newest.lock().unwrap().clone();
        *self.at_hand.lock().unwrap() = newest;
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sealer_that_was_overtaken_by_a_handover_goes_on_with_the_new_key() {
    let world = World::new().await;
    world.change(world.organization()).await;
    world.seal_all().await;
    let newest = Arc::new(Mutex::new(world.seal_keys()));
    let kept = Kept { at_hand: Arc::new(Mutex::new(world.seal_keys())), newest: Arc::clone(&newest) };
    let (sealer, stop) = (world.sealer_with(kept), CancellationToken::new());
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { sealer.run(stop).await }
    });
    // Elsewhere the key is replaced, and another sealer hands over with the next entry it gets hold of.
    *newest.lock().unwrap() = rotated(FIRST, 8);
    let other = world.sealer_with(rotated(FIRST, 8));
    eventually("the log has its new key", async || {
        world.change(world.organization()).await;
        let _ = other.step().await.unwrap();
        world.count("SELECT count(*) FROM audit.signing_key").await == 2
    })
    .await;
    world.change(world.organization()).await;
    eventually("the running sealer goes on", async || world.unsealed().await == 0).await;
    stop.cancel();
    running.await.unwrap();
    let report = examine(&world, key(FIRST).verifier()).await;
    assert!(report.is_clean(), "{report}");
}
