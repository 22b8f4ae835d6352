//! What every store must do, whatever is behind it.

#![allow(clippy::unwrap_used)]

use blob::*;
use bytes::Bytes;

pub fn path(text: &str) -> BlobPath {
    BlobPath::parse(text).unwrap()
}

pub fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

pub async fn names(blobs: &Blobs, prefix: Option<&str>, after: Option<&str>, limit: usize) -> Vec<String> {
    let (prefix, after) = (prefix.map(path), after.map(path));
    let found = blobs.list(prefix.as_ref(), after.as_ref(), limit).await.unwrap();
    found.into_iter().map(|info| info.path.to_string()).collect()
}

/// What every store must do, whatever is behind it.
pub async fn check_store(blobs: &Blobs) {
    let (a, b) = (path("log/a"), path("log/b"));
    assert_eq!(blobs.get(&a).await.unwrap(), None);
    assert!(!blobs.exists(&a).await.unwrap());

    assert_eq!(blobs.put_new(&a, bytes("one")).await.unwrap(), PutNew::Written);
    assert_eq!(blobs.put_new(&a, bytes("one")).await.unwrap(), PutNew::AlreadyThere { same: true });
    assert_eq!(blobs.put_new(&a, bytes("two")).await.unwrap(), PutNew::AlreadyThere { same: false });
    assert_eq!(blobs.get(&a).await.unwrap(), Some(bytes("one")), "put_new never replaces");
    for _ in 0..2 {
        blobs.check_write_once(&path("probe")).await.unwrap();
    }
    blobs.delete(&path("probe")).await.unwrap();

    blobs.put(&b, bytes("one")).await.unwrap();
    blobs.put(&b, bytes("three")).await.unwrap();
    assert_eq!(blobs.get(&b).await.unwrap(), Some(bytes("three")));
    blobs.put(&path("log/empty"), Bytes::new()).await.unwrap();
    assert_eq!(blobs.get(&path("log/empty")).await.unwrap(), Some(Bytes::new()));

    for name in ["logs/x", "log/c/10", "log/c/9", "log/c-d"] {
        blobs.put(&path(name), bytes("x")).await.unwrap();
    }
    let below_log = ["log/a", "log/b", "log/c-d", "log/c/10", "log/c/9", "log/empty"];
    assert_eq!(names(blobs, Some("log"), None, 100).await, below_log, "whole segments, ordered by bytes");
    assert_eq!(names(blobs, Some("log"), None, 2).await, below_log[..2]);
    assert_eq!(names(blobs, Some("log"), Some("log/b"), 3).await, below_log[2..5]);
    assert_eq!(names(blobs, None, Some("log/empty"), 100).await, ["logs/x"]);
    assert_eq!(names(blobs, Some("nothing"), None, 100).await, [""; 0]);
    let sizes = blobs.list(Some(&path("log")), None, 2).await.unwrap();
    assert_eq!(sizes.iter().map(|info| info.bytes).collect::<Vec<_>>(), [3, 5]);

    blobs.delete(&a).await.unwrap();
    blobs.delete(&a).await.unwrap();
    assert_eq!(blobs.get(&a).await.unwrap(), None);
    assert_eq!(blobs.put_new(&a, bytes("two")).await.unwrap(), PutNew::Written, "the path is free again");
}

/// Of many writers with different bytes exactly one wins, and all others are told.
pub async fn check_race(blobs: &Blobs) {
    let writers = (0..16).map(|number| {
        let blobs = blobs.clone();
        tokio::spawn(async move { blobs.put_new(&path("race/one"), format!("writer {number}").into()).await })
    });
    let outcomes: Vec<PutNew> = futures::future::join_all(writers)
        .await
        .into_iter()
        .map(|outcome| outcome.unwrap().unwrap())
        .collect();
    let count = |wanted: PutNew| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    assert_eq!((count(PutNew::Written), count(PutNew::AlreadyThere { same: false })), (1, 15));
}
