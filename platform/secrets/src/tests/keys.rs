//! The key encryption key: wrong, lost, unreachable, rotated; and its file.

use super::fixture::*;
use crate::*;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use types::SystemEntropy;

/// A key service that is down.
struct Down;

impl KeyEncryption for Down {
    fn key_id(&self) -> &str {
        "vault:down"
    }

    fn wrap<'a>(&'a self, _: &'a DataKey) -> KeyFuture<'a, Vec<u8>> {
        Box::pin(async { Err(KeyError::Unavailable("connection refused".to_owned())) })
    }

    fn unwrap<'a>(&'a self, _: &'a [u8]) -> KeyFuture<'a, DataKey> {
        Box::pin(async { Err(KeyError::Unavailable("connection refused".to_owned())) })
    }
}

#[tokio::test]
async fn a_wrong_key_is_named_at_the_start_and_opens_nothing() {
    let world = World::new().await;
    let info = world.store("kept", "value").await;
    world.secrets.check_keys().await.unwrap();
    let (right, wrong) = (key(1), key(2));
    let other = world.with_keys(Keyring::new(Arc::new(key(2)), Vec::new()));
    let error = other.check_keys().await.unwrap_err();
    assert_eq!(error.code().code, "key_encryption_unavailable");
    let cause = error.cause().unwrap().to_string();
    assert!(
        cause.contains(right.key_id()) && cause.contains(wrong.key_id()) && cause.contains(".old"),
        "{cause}"
    );
    assert_eq!(code(world.deliver_from(&other, info.id, None).await), "key_encryption_unavailable");
    assert_eq!(world.count("SELECT count(*) FROM secrets.delivery").await, 0);
}

/// Even a key that claims the right id does not open what another key wrapped.
#[tokio::test]
async fn a_key_under_a_false_name_opens_nothing() {
    struct Impostor(FileKey, String);
    impl KeyEncryption for Impostor {
        fn key_id(&self) -> &str {
            &self.1
        }
        fn wrap<'a>(&'a self, data_key: &'a DataKey) -> KeyFuture<'a, Vec<u8>> {
            self.0.wrap(data_key)
        }
        fn unwrap<'a>(&'a self, wrapped: &'a [u8]) -> KeyFuture<'a, DataKey> {
            self.0.unwrap(wrapped)
        }
    }
    let world = World::new().await;
    let info = world.store("kept", "value").await;
    let impostor = Impostor(key(2), key(1).key_id().to_owned());
    let other = world.with_keys(Keyring::new(Arc::new(impostor), Vec::new()));
    assert_eq!(code(world.deliver_from(&other, info.id, None).await), "secret_unreadable");
}

#[tokio::test]
async fn a_key_service_that_is_down_changes_nothing() {
    let world = World::new().await;
    let before = world.count("SELECT count(*) FROM spine.audit_entry").await;
    for keys in [Keyring::new(Arc::new(Down), Vec::new()), Keyring::empty()] {
        let secrets = world.with_keys(keys);
        let new = NewSecret {
            holder: world.acme.holder(),
            name: types::Name::parse("late").unwrap(),
            purpose: Purpose::parse("test").unwrap(),
            value: types::Secret::new("value".to_owned()),
        };
        assert_eq!(code(secrets.create(&world.acme.context, new).await), "key_encryption_unavailable");
    }
    assert_eq!(world.count("SELECT count(*) FROM secrets.secret").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM spine.audit_entry").await, before);
}

#[tokio::test]
async fn a_new_key_takes_over_without_touching_ciphertexts() {
    let world = World::new().await;
    world.set("secrets.rewrap_batch_max", 2).await;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(world.store(&format!("secret {number}"), &format!("value {number}")).await.id);
    }
    world.rotate(ids[0], "newer").await.unwrap();
    let name = types::Name::parse("signer").unwrap();
    let purpose = Purpose::parse("test").unwrap();
    world.secrets.ensure_signing_key(&world.worker(), &name, &purpose).await.unwrap();
    let ciphertexts = "SELECT sum(hashtext(sealed::text))::bigint FROM secrets.secret_version";
    let wrappings = "SELECT sum(hashtext(wrapped_key::text))::bigint FROM secrets.secret_version";
    let before = (world.count(ciphertexts).await, world.count(wrappings).await);

    let both = world.with_keys(Keyring::new(Arc::new(key(2)), vec![Arc::new(key(1))]));
    both.check_keys().await.unwrap();
    assert!(both.has_older_key() && !world.secrets.has_older_key());
    assert_eq!(
        world.deliver_from(&both, ids[1], None).await.unwrap().value.expose(),
        "value 1",
        "side by side"
    );
    let done = both.rewrap(&world.worker()).await.unwrap();
    assert_eq!(done, Rewrapped { rewrapped: 7, unreadable: Vec::new() });
    assert_eq!(both.rewrap(&world.worker()).await.unwrap(), Rewrapped::default(), "again: nothing left");

    assert_eq!(world.count(ciphertexts).await, before.0, "no ciphertext was touched");
    assert_ne!(world.count(wrappings).await, before.1);
    let new_only = world.with_keys(Keyring::new(Arc::new(key(2)), Vec::new()));
    new_only.check_keys().await.unwrap();
    assert_eq!(world.deliver_from(&new_only, ids[0], Some(1)).await.unwrap().value.expose(), "value 0");
    assert_eq!(world.deliver_from(&new_only, ids[0], None).await.unwrap().value.expose(), "newer");
    new_only.signing_key(&world.worker(), &name, &purpose).await.unwrap();
    assert_eq!(
        code(world.deliver(ids[1], None).await),
        "key_encryption_unavailable",
        "the old key is worthless"
    );
    let audited = "SELECT count(*) FROM spine.audit_entry WHERE action = 'secrets.key.rewrap'";
    assert_eq!(world.count(audited).await, 7);
}

#[tokio::test]
async fn an_altered_data_key_does_not_stop_the_others_from_moving() {
    let world = World::new().await;
    let broken = world.store("broken", "value").await;
    world.store("fine", "value").await;
    let spoil = "UPDATE secrets.secret_version SET wrapped_key = set_byte(wrapped_key, 20, get_byte(wrapped_key, 20) # 1) WHERE secret_id = ";
    world.run(&format!("{spoil} '{}'", broken.id.as_uuid())).await;
    let both = world.with_keys(Keyring::new(Arc::new(key(2)), vec![Arc::new(key(1))]));
    let done = both.rewrap(&world.worker()).await.unwrap();
    assert_eq!(done, Rewrapped { rewrapped: 1, unreadable: vec![(broken.id, 1)] });
    assert_eq!(code(both.rewrap(&world.acme.context).await), "forbidden", "not a tenant's business");
}

const MAKE: MissingKey<'static> = MissingKey::Make { in_use: &[] };

fn open(path: &std::path::Path, missing: MissingKey<'_>) -> std::result::Result<Keyring, KeyFileError> {
    Keyring::from_file(path, missing, Arc::new(SystemEntropy))
}

#[test]
fn a_key_file_is_made_once_closed_to_others() {
    let directory = scratch("made");
    let path = directory.join("secrets.key");
    assert!(matches!(open(&path, MissingKey::Refuse), Err(KeyFileError::Missing { .. })));
    std::fs::write(directory.join("secrets.key.unfinished"), "half a k").unwrap();
    let made = open(&path, MAKE).unwrap();
    let found = std::fs::metadata(&path).unwrap();
    assert_eq!((found.permissions().mode() & 0o7777, found.len()), (0o600, 32));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "nothing else is left");
    let again = open(&path, MAKE).unwrap();
    assert_eq!(made.current_id().unwrap(), again.current_id().unwrap(), "a key that is there stays");
    assert!(
        matches!(FileKey::make(&path, &SystemEntropy), Err(KeyFileError::Io { .. })),
        "never overwritten"
    );
    assert_eq!(open(&path, MissingKey::Refuse).unwrap().current_id().unwrap(), made.current_id().unwrap());
    std::fs::remove_dir_all(directory).unwrap();
}

/// A lost key is not replaced: the new one would open nothing, and hide that something is missing.
#[test]
fn a_lost_key_file_is_not_made_anew() {
    let directory = scratch("lost");
    let path = directory.join("secrets.key");
    let lost = open(&path, MAKE).unwrap().current_id().unwrap().to_owned();
    std::fs::remove_file(&path).unwrap();
    let in_use = [lost.clone()];
    let make = MissingKey::Make { in_use: &in_use };
    for beside in [None, Some([3u8; 32])] {
        if let Some(bytes) = beside {
            let old = directory.join("secrets.key.old");
            std::fs::write(&old, bytes).unwrap();
            std::fs::set_permissions(old, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        match open(&path, make) {
            Err(KeyFileError::Lost { key_id, .. }) => assert_eq!(key_id, lost),
            other => panic!("{:?}", other.err()),
        }
        assert!(!path.exists(), "a new key was made");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_renamed_key_file_becomes_the_older_key() {
    let directory = scratch("renamed");
    let path = directory.join("secrets.key");
    let first = open(&path, MAKE).unwrap().current_id().unwrap().to_owned();
    std::fs::rename(&path, directory.join("secrets.key.old")).unwrap();
    let in_use = [first.clone()];
    let second = open(&path, MissingKey::Make { in_use: &in_use }).unwrap();
    assert_ne!(second.current_id().unwrap(), first);
    assert!(second.has_older());
    second.require(&first).unwrap();
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_key_file_that_others_can_read_or_that_is_no_key_is_refused() {
    let directory = scratch("refused");
    let path = directory.join("secrets.key");
    open(&path, MAKE).unwrap();
    for mode in [0o640, 0o604, 0o660, 0o644, 0o601] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = open(&path, MAKE).err().expect("open to others");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    for length in [0, 31, 33, 4096] {
        std::fs::write(&path, vec![1; length]).unwrap();
        assert!(matches!(open(&path, MAKE), Err(KeyFileError::WrongLength { .. })), "{length}");
    }
    if rustix::process::geteuid().is_root() {
        std::fs::write(&path, [1; 32]).unwrap();
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        assert!(matches!(open(&path, MAKE), Err(KeyFileError::ForeignOwner { owner: 12345, .. })));
    }
    std::fs::remove_dir_all(directory).unwrap();
}
