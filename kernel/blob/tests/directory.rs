//! Every promise of the crate, on a real directory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

mod promises;

use blob::*;
use promises::{bytes, check_race, check_store, names, path};

/// A directory of one test, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("blobtest-{}-{test}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn config(&self, object_bytes_max: u64) -> BlobConfig {
        let limits = BlobLimits { object_bytes_max, ..BlobLimits::default() };
        BlobConfig::Directory(DirectoryConfig { path: self.0.join("deep/objects"), limits })
    }

    fn open(&self) -> Blobs {
        Blobs::open(&self.config(1 << 20)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_directory_keeps_every_promise() {
    let scratch = Scratch::new("promises");
    check_store(&scratch.open()).await;
    check_race(&scratch.open()).await;
}

#[tokio::test]
async fn objects_outlive_the_process_that_wrote_them() {
    let scratch = Scratch::new("reopen");
    let _ = scratch.open().put_new(&path("kept"), bytes("bytes")).await.unwrap();
    assert_eq!(scratch.open().get(&path("kept")).await.unwrap(), Some(bytes("bytes")));
}

#[tokio::test]
async fn size_is_bounded_both_ways() {
    let scratch = Scratch::new("size");
    let large = scratch.open();
    large.put(&path("large"), vec![7; 11].into()).await.unwrap();
    let small = Blobs::open(&scratch.config(10)).unwrap();
    let written = small.put(&path("other"), vec![7; 11].into()).await;
    assert!(matches!(written, Err(BlobError::TooLarge { bytes: 11, bytes_max: 10, .. })));
    let written = small.put_new(&path("other"), vec![7; 11].into()).await;
    assert!(matches!(written, Err(BlobError::TooLarge { .. })));
    assert!(matches!(small.get(&path("large")).await, Err(BlobError::TooLarge { bytes: 11, .. })));
    small.put(&path("other"), vec![7; 10].into()).await.unwrap();
}

#[tokio::test]
async fn others_on_the_machine_cannot_enter_the_directory() {
    let scratch = Scratch::new("mode");
    drop(scratch.open());
    let mode = std::fs::metadata(scratch.0.join("deep/objects")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn unfinished_uploads_and_strange_files_are_not_listed() {
    let scratch = Scratch::new("strays");
    let blobs = scratch.open();
    blobs.put(&path("object"), bytes("x")).await.unwrap();
    let root = scratch.0.join("deep/objects");
    for stray in ["object#1", ".hidden", "white space"] {
        std::fs::write(root.join(stray), "x").unwrap();
    }
    assert_eq!(names(&blobs, None, None, 100).await, ["object"]);
}

#[test]
fn a_directory_that_cannot_be_says_what_to_do() {
    let scratch = Scratch::new("unusable");
    let file = scratch.0.join("file");
    std::fs::write(&file, "").unwrap();
    let config = DirectoryConfig { path: file.join("below"), limits: BlobLimits::default() };
    let error = Blobs::open(&BlobConfig::Directory(config)).err().unwrap();
    assert!(error.to_string().contains("Make it writable for the account"), "{error}");
    assert!(!error.is_transient());
}

#[test]
fn no_path_leads_out() {
    use BlobPathError::*;
    let long_segment = "a".repeat(201);
    let long_path = ["a".repeat(200).as_str(); 4].join("/");
    for (text, error) in [
        ("", Empty),
        ("/", EmptySegment),
        ("/etc/passwd", EmptySegment),
        ("a//b", EmptySegment),
        ("a/", EmptySegment),
        (".", DotSegment),
        ("..", DotSegment),
        ("a/../../b", DotSegment),
        ("a/.hidden", DotSegment),
        ("a\\..\\b", Forbidden('\\')),
        ("a%2e%2e", Forbidden('%')),
        ("a#1", Forbidden('#')),
        ("a b", Forbidden(' ')),
        ("a\0b", Forbidden('\0')),
        ("ä", Forbidden('ä')),
        ("a:b", Forbidden(':')),
        (long_segment.as_str(), TooLong),
        (long_path.as_str(), TooLong),
    ] {
        assert_eq!(BlobPath::parse(text), Err(error), "{text:?}");
    }
    for fine in ["a", "a/b", "tile/0/x001/067.p/5", "2026-11-15/part=3_b.jsonl", "a..b"] {
        assert_eq!(BlobPath::parse(fine).unwrap().as_str(), fine);
    }
    assert_eq!(path("a").join("b").unwrap().as_str(), "a/b");
    assert_eq!(path("a").join("../b"), Err(DotSegment));
}

#[test]
fn s3_is_refused_in_plaintext_and_with_half_a_credential() {
    let open = |json: serde_json::Value| Blobs::open(&serde_json::from_value(json).unwrap()).err();
    let refused = |json| open(json).expect("must be refused").to_string();
    let config = |endpoint: &str| serde_json::json!({"kind": "s3", "bucket": "b", "endpoint": endpoint});
    for endpoint in ["http://objects.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1:9000"] {
        assert!(refused(config(endpoint)).contains("plaintext"), "{endpoint}");
    }
    for endpoint in ["http://127.0.0.1:9000", "http://[::1]:9000/", "https://objects.example.com"] {
        assert!(open(config(endpoint)).is_none(), "{endpoint}");
    }
    let half = serde_json::json!({"kind": "s3", "bucket": "b", "access_key_id": "id"});
    assert!(refused(half).contains("belong together"));
    let prefix = serde_json::json!({"kind": "s3", "bucket": "b", "prefix": "../other"});
    assert!(refused(prefix).contains("prefix"));
    let unknown = serde_json::json!({"kind": "directory", "path": "p", "colour": "red"});
    assert!(serde_json::from_value::<BlobConfig>(unknown).is_err());
}
