//! The platform's signing keys.

use super::fixture::*;
use crate::*;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use types::Name;

fn signer() -> (Name, Purpose) {
    (Name::parse("Checkpoint signer").unwrap(), Purpose::parse("audit.checkpoint").unwrap())
}

fn verifies(key: &SigningKey, public_key: &[u8]) -> bool {
    let pair = Ed25519KeyPair::from_seed_unchecked(key.seed.expose()).unwrap();
    UnparsedPublicKey::new(&ED25519, public_key).verify(b"message", pair.sign(b"message").as_ref()).is_ok()
}

#[tokio::test]
async fn a_key_is_made_once_however_many_replicas_ask() {
    let world = World::new().await;
    let (name, purpose) = signer();
    let worker = world.worker();
    let asked = (0..4).map(|_| world.secrets.ensure_signing_key(&worker, &name, &purpose));
    let ids: Vec<SecretId> =
        futures::future::join_all(asked).await.into_iter().map(|made| made.unwrap().id).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(world.count("SELECT count(*) FROM secrets.secret").await, 1);
    let key = world.secrets.signing_key(&worker, &name, &purpose).await.unwrap();
    let public = world.secrets.public_keys(&name).await.unwrap();
    assert_eq!((public.len(), &public[0].key_id, public[0].signs_until), (1, &key.key_id, None));
    assert!(verifies(&key, &public[0].public_key));
    assert_eq!(
        world.count("SELECT count(*) FROM secrets.delivery WHERE recipient_id = 'audit.sealer'").await,
        1
    );
}

#[tokio::test]
async fn rotation_signs_with_a_new_key_and_keeps_the_old_ones_verifiable() {
    let world = World::new().await;
    let (name, purpose) = signer();
    let worker = world.worker();
    world.secrets.ensure_signing_key(&worker, &name, &purpose).await.unwrap();
    let old = world.secrets.signing_key(&worker, &name, &purpose).await.unwrap();
    let info = world.secrets.signing_key_rotate(&worker, &name).await.unwrap();
    let new = world.secrets.signing_key(&worker, &name, &purpose).await.unwrap();
    assert_eq!(info.version, 2);
    assert!(old.key_id != new.key_id && old.public_key != new.public_key);
    let public = world.secrets.public_keys(&name).await.unwrap();
    assert!(verifies(&new, &public[0].public_key) && verifies(&old, &public[1].public_key));
    assert!(public[1].signs_until.is_some());
    let mut operator = world.acme.context.clone();
    operator.standing = std::sync::Arc::new(crate::tests::fixture::operator());
    world.secrets.retire(&operator, Holder::Platform, info.id, None).await.unwrap();
    assert_eq!(code(world.secrets.signing_key(&worker, &name, &purpose).await), "not_found");
    assert_eq!(world.secrets.public_keys(&name).await.unwrap().len(), 2, "signatures stay verifiable");
}

#[tokio::test]
async fn purpose_tenants_and_forged_public_keys_are_refused() {
    let world = World::new().await;
    let (name, purpose) = signer();
    let worker = world.worker();
    world.secrets.ensure_signing_key(&worker, &name, &purpose).await.unwrap();
    let other = Purpose::parse("node.task").unwrap();
    assert_eq!(
        code(world.secrets.ensure_signing_key(&worker, &name, &other).await),
        "secret_purpose_mismatch"
    );
    assert_eq!(code(world.secrets.signing_key(&worker, &name, &other).await), "secret_purpose_mismatch");
    let tenant = &world.acme.context;
    assert_eq!(code(world.secrets.signing_key(tenant, &name, &purpose).await), "forbidden");
    let list =
        world.secrets.list(tenant, Holder::Platform, &SecretFilter { limit: 9, ..Default::default() }).await;
    assert_eq!(code(list), "forbidden");
    world.run("UPDATE secrets.secret_version SET public_key = set_byte(public_key, 0, get_byte(public_key, 0) # 1)").await;
    assert_eq!(code(world.secrets.signing_key(&worker, &name, &purpose).await), "secret_unreadable");
}
