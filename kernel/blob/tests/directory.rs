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
fn one_line_says_where_objects_are_kept() {
    let limits = BlobLimits::default();
    for line in ["/srv/audit", "file:///srv/audit"] {
        let directory = DirectoryConfig { path: "/srv/audit".into(), limits };
        assert_eq!(line.parse(), Ok(BlobConfig::Directory(directory)));
    }
    let plain = S3Config {
        endpoint: None,
        bucket: "b".to_owned(),
        region: "us-east-1".to_owned(),
        prefix: None,
        access_key_id: None,
        secret_access_key_file: None,
        limits,
    };
    assert_eq!("s3://b".parse(), Ok(BlobConfig::S3(plain.clone())));
    let full = "s3://b/below/here/?endpoint=https://s3.example:3900&region=eu&access_key_id=id\
                &secret_access_key_file=/etc/key&object_bytes_max=17&request_timeout_ms=18&retries_max=19";
    let expected = S3Config {
        endpoint: Some("https://s3.example:3900".to_owned()),
        region: "eu".to_owned(),
        prefix: Some("below/here".to_owned()),
        access_key_id: Some("id".to_owned()),
        secret_access_key_file: Some("/etc/key".into()),
        limits: BlobLimits { object_bytes_max: 17, request_timeout_ms: 18, retries_max: 19 },
        ..plain
    };
    assert_eq!(full.parse(), Ok(BlobConfig::S3(expected)));
    for (wrong, says) in [
        ("", "directory"),
        ("relative/path", "directory"),
        ("ftp://host/path", "directory"),
        ("s3://", "bucket"),
        ("s3://id:key@bucket", "bucket"),
        ("s3://b?colour=red", "colour"),
        ("s3://b?secret_access_key=abc", "name its file"),
        ("s3://b?retries_max=many", "retries_max"),
        ("s3://b?endpoint", "endpoint"),
        ("/srv/audit?region=eu", "region"),
    ] {
        let error = wrong.parse::<BlobConfig>().unwrap_err().to_string();
        assert!(error.contains(says), "{wrong}: {error}");
    }
}

#[test]
fn s3_is_refused_in_plaintext_and_with_half_a_credential() {
    let open = |line: &str| Blobs::open(&line.parse().unwrap()).err();
    let refused = |line: &str| open(line).expect("must be refused").to_string();
    for endpoint in ["http://objects.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1:9000"] {
        assert!(refused(&format!("s3://b?endpoint={endpoint}")).contains("plaintext"), "{endpoint}");
    }
    for endpoint in ["http://127.0.0.1:9000", "http://[::1]:9000/", "https://objects.example.com"] {
        assert!(open(&format!("s3://b?endpoint={endpoint}")).is_none(), "{endpoint}");
    }
    assert!(refused("s3://b?access_key_id=id").contains("belong together"));
    assert!(refused("s3://b/../other").contains("prefix"));
}

/// An S3 server that says yes to everything, as Garage does to a condition on a write.
async fn overwriting_server() -> String {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let (mut line, mut body) = (String::new(), 0);
            while stream.read_line(&mut line).await.unwrap() > 2 {
                if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
                    body = length.trim().parse().unwrap();
                }
                line.clear();
            }
            stream.read_exact(&mut vec![0; body]).await.unwrap();
            let answer = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_store_that_overwrites_is_found_out() {
    let scratch = Scratch::new("overwrites");
    let key = scratch.0.join("key");
    std::fs::write(&key, "secret").unwrap();
    let endpoint = overwriting_server().await;
    let line = format!(
        "s3://b?endpoint={endpoint}&access_key_id=id&secret_access_key_file={}&retries_max=0",
        key.display()
    );
    let blobs = Blobs::open(&line.parse().unwrap()).unwrap();
    let error = blobs.check_write_once(&path("probe")).await.unwrap_err();
    assert!(matches!(error, BlobError::Overwrites { .. }), "{error}");
}
