//! A disk that a test may fill.
//!
//! A file system in memory, mounted in a mount namespace of its own: nobody else sees it, and it is gone with the
//! process that holds the namespace, which dies with the test. Who is not root mounts it in a user namespace; where the
//! kernel allows nobody such a thing, the test fails and says so: a disk that is not really full proves nothing.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::child::Child;
use crate::eventually::eventually;
use crate::scratch::Scratch;

pub struct SmallDisk {
    scratch: Scratch,
    keeper: Child,
}

const MOUNT: &str =
    r#"mount -t tmpfs -o size="$2"m,mode=711 tmpfs "$1" && echo mounted && exec sleep infinity"#;
const FILLER: &str = "filler";

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl SmallDisk {
    /// Mounted at `data` in a scratch directory, which is where [`Gpuaasd::up_on`](crate::Gpuaasd::up_on) keeps its data.
    pub async fn mount(name: &str, megabytes: u32) -> Self {
        let scratch = Scratch::new(name);
        let data = scratch.path().join("data");
        std::fs::create_dir(&data).expect("make a directory to mount on");
        let (data, size) = (data.to_string_lossy().into_owned(), megabytes.to_string());
        let mut arguments = vec!["--mount", "sh", "-c", MOUNT, "mount", &data, &size];
        if !is_root() {
            arguments.splice(0..0, ["--user", "--map-current-user", "--keep-caps"]);
        }
        let keeper = Child::spawn(Path::new("unshare"), &arguments, &[], &scratch.path().join("mount.log"));
        eventually("the small disk is mounted", async || {
            assert!(
                !keeper.has_ended(),
                "this test mounts a small file system to fill it, which is refused here (allow user namespaces, or run the \
                 tests as root):\n{}",
                keeper.said()
            );
            keeper.said().contains("mounted")
        })
        .await;
        Self { scratch, keeper }
    }

    /// The directory the disk is mounted in, which is not on it.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// A file on the disk, as this process reaches it.
    pub fn file(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.keeper.pid()));
        let data = self.scratch.path().join("data");
        root.join(data.strip_prefix("/").expect("scratch directories are absolute")).join(name)
    }

    /// Takes every byte that is left, or all but some megabytes.
    pub fn fill_but(&self, megabytes: u64) {
        let mut file = File::create(self.file(FILLER)).expect("make a file on the small disk");
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        let size = file.metadata().expect("measure what fills the small disk").len();
        file.set_len(size.saturating_sub(megabytes << 20)).expect("leave some room");
    }

    pub fn free(&self) {
        std::fs::remove_file(self.file(FILLER)).expect("remove what fills the small disk");
    }

    /// What to put before a command to run it where the disk is.
    pub fn enter(&self) -> Vec<String> {
        let namespaces = format!("/proc/{}/ns", self.keeper.pid());
        let mut command = vec!["nsenter".to_owned()];
        if !is_root() {
            command.extend([format!("--user={namespaces}/user"), "--preserve-credentials".to_owned()]);
        }
        command.extend([format!("--mount={namespaces}/mnt"), "--".to_owned()]);
        command
    }
}
