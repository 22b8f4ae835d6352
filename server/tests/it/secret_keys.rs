//! The key that protects secrets: lost, and changed.

use std::os::unix::fs::PermissionsExt as _;

use testkit::{Gpuaasd, Scratch};

use crate::installation::{Installation, gpuaasd, text};

#[tokio::test]
async fn a_lost_key_stops_the_start_and_no_other_takes_its_place() {
    let directory = Scratch::new("lost-key");
    let first = Gpuaasd::up(directory.path()).await;
    assert!(first.child.terminate().await.success());
    let (key, aside) = (directory.path().join("data/secrets.key"), directory.path().join("aside"));
    std::fs::rename(&key, &aside).unwrap();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--node-listen", "127.0.0.1:0"];
    let refused = gpuaasd(&arguments, &[("--data-dir", &directory.path().join("data"))]);
    let said = text(&refused);
    assert!(
        !refused.status.success() && said.contains("is gone") && said.contains("Put the file back"),
        "{said}"
    );
    assert!(!key.exists(), "a new key was made in its place");
    std::fs::rename(&aside, &key).unwrap();
    let second = Gpuaasd::up(directory.path()).await;
    assert!(second.child.terminate().await.success());
}

#[tokio::test]
async fn a_larger_installation_changes_its_key_while_it_runs() {
    let installation = Installation::new("rewrap").await;
    let config = installation.config("sealer", &installation.secrets());
    // It makes the audit log's key, which is a secret.
    let first = installation.run("audit-sealer", &config).await;
    let key = installation.path().join("secrets.key");
    std::fs::rename(&key, key.with_added_extension("old")).unwrap();
    std::fs::write(&key, [8u8; 32]).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let rewrap = || gpuaasd(&["secrets", "rewrap"], &[("--config", &config.file)]);
    let done = rewrap();
    assert!(done.status.success() && text(&done).contains("1 data keys"), "{}", text(&done));
    assert!(first.child.terminate().await.success());
    std::fs::remove_file(key.with_added_extension("old")).unwrap();
    let second = installation.run("audit-sealer", &config).await;
    assert!(second.child.terminate().await.success());
    // A key that was never used, without the one that was: nothing is touched.
    std::fs::write(&key, [9u8; 32]).unwrap();
    let refused = rewrap();
    assert!(!refused.status.success() && text(&refused).contains("is not here"), "{}", text(&refused));
}
