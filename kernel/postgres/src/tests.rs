//! Real servers, real signals: each test has a directory of its own and leaves nothing running.
//!
//! Every test of a server runs with each server there is: the installed one, and the packaged one if
//! `GPUAAS_POSTGRES_DIR` names it. They run as root and as an ordinary user (then there is no account to change to).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testkit::eventually;

use crate::random::random_hex;
use crate::*;

/// Names the data directory to the process that [`start_victim`] starts.
const VICTIM_DIR: &str = "GPUAAS_TEST_VICTIM_DIR";
const VICTIM_BINARIES: &str = "GPUAAS_TEST_VICTIM_BINARIES";

/// A directory of one test, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("pgtest-{}", random_hex::<6>()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o711)).unwrap();
        Self(path)
    }

    fn data_dir(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::set_permissions(&self.0, Permissions::from_mode(0o711));
        fs::remove_dir_all(&self.0).unwrap();
    }
}

async fn servers() -> Vec<Binaries> {
    let mut all = Binaries::installed().await;
    if let Some(packaged) = std::env::var_os("GPUAAS_POSTGRES_DIR") {
        all.push(Binaries::at(Path::new(&packaged)).await.unwrap());
    }
    assert!(!all.is_empty(), "install a server: apt install postgresql, or set GPUAAS_POSTGRES_DIR");
    all
}

fn throwaway(binaries: &Binaries) -> Options {
    Options { binaries: binaries.clone(), settings: Vec::new(), durable: false }
}

async fn start(data_dir: &Path, binaries: &Binaries) -> Result<Server> {
    Server::start(&DataDirLock::acquire(data_dir)?, throwaway(binaries)).await
}

/// Runs SQL as the superuser and returns what psql prints.
async fn sql(server: &Server, binaries: &Binaries, statement: &str) -> String {
    let mut psql = tokio::process::Command::new(binaries.directory().join("psql"));
    psql.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement])
        .arg(server.connection_string(SUPERUSER, "postgres"))
        .env("PGPASSWORD", server.password().expose());
    let output = psql.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Whether a process runs; one that has ended and waits for its parent to notice works nowhere.
fn runs(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok()
}

/// Every process that works in the directory or below it, whatever it is.
fn working_below(directory: &Path) -> Vec<PathBuf> {
    let cwd = |entry: &fs::DirEntry| fs::read_link(entry.path().join("cwd")).ok();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| cwd(entry).is_some_and(|cwd| cwd.starts_with(directory)))
        .map(|e| e.path())
        .collect()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[tokio::test]
async fn a_fresh_start_is_private_and_stop_leaves_no_process() {
    for binaries in servers().await {
        let scratch = Scratch::new();
        let server = start(&scratch.data_dir(), &binaries).await.unwrap();
        assert_eq!(
            sql(&server, &binaries, "SHOW server_version_num").await[..2],
            binaries.version().major.to_string()
        );
        assert_eq!(sql(&server, &binaries, "SHOW listen_addresses").await, "");
        assert_eq!(sql(&server, &binaries, "SHOW data_checksums").await, "on");
        assert_eq!(sql(&server, &binaries, "SHOW fsync").await, "off");
        let locale =
            "SELECT pg_encoding_to_char(encoding), datcollate FROM pg_database WHERE datname = 'postgres'";
        assert_eq!(sql(&server, &binaries, locale).await, "UTF8|C");

        let home = scratch.data_dir().join("postgres");
        assert_eq!(mode(&home.join("cluster")), 0o700);
        assert_eq!(mode(&home.join("password")), 0o600);
        assert_eq!(mode(server.socket_dir()), 0o700);
        let cluster_owner = fs::metadata(home.join("cluster")).unwrap().uid();
        assert_eq!(cluster_owner != rustix::process::geteuid().as_raw(), is_root());
        assert_eq!(fs::metadata(format!("/proc/{}", server.pid())).unwrap().uid(), cluster_owner);
        assert!(!home.join("initdb.password").exists());
        check_password_is_kept(&server, &home);

        let pid = server.pid();
        server.stop().await.unwrap();
        assert!(!runs(pid));
        assert_eq!(working_below(&scratch.0), Vec::<PathBuf>::new());
    }
}

/// The password is in its own file and nowhere else that we write, nor in the server's command line.
fn check_password_is_kept(server: &Server, home: &Path) {
    let password = server.password().expose();
    assert_eq!(&fs::read_to_string(server.password_file()).unwrap(), password);
    for name in ["log", "initdb.log", "postgresql.conf", "pg_hba.conf"] {
        assert!(!fs::read_to_string(home.join(name)).unwrap().contains(password), "{name}");
    }
    for name in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{}/{name}", server.pid())).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains(password), "{name}");
    }
}

#[tokio::test]
async fn a_password_is_asked_for() {
    let binaries = servers().await.remove(0);
    let scratch = Scratch::new();
    let server = start(&scratch.data_dir(), &binaries).await.unwrap();
    let mut psql = Command::new(binaries.directory().join("psql"));
    psql.arg(server.connection_string(SUPERUSER, "postgres")).arg("-w").args(["-c", "SELECT 1"]);
    let output = psql.env("PGPASSWORD", "guessed").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("password authentication failed"));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_second_start_reuses_the_cluster_and_takes_new_settings() {
    for binaries in servers().await {
        let scratch = Scratch::new();
        let server = start(&scratch.data_dir(), &binaries).await.unwrap();
        sql(&server, &binaries, "CREATE TABLE kept (value text); INSERT INTO kept VALUES ('here')").await;
        // What ALTER SYSTEM says must not close our way in.
        sql(&server, &binaries, "ALTER SYSTEM SET listen_addresses = '*'").await;
        server.stop().await.unwrap();

        let setting = ("gpuaas.name".to_owned(), "it's a \\ name".to_owned());
        let options = Options { settings: vec![setting], durable: true, ..throwaway(&binaries) };
        let lock = DataDirLock::acquire(&scratch.data_dir()).unwrap();
        let server = Server::start(&lock, options).await.unwrap();
        assert_eq!(sql(&server, &binaries, "SELECT value FROM kept").await, "here");
        assert_eq!(sql(&server, &binaries, "SHOW fsync").await, "on");
        assert_eq!(sql(&server, &binaries, "SHOW listen_addresses").await, "");
        assert_eq!(sql(&server, &binaries, "SHOW gpuaas.name").await, "it's a \\ name");
        server.stop().await.unwrap();
    }
}

/// Not a test of its own: the life of the process that the next test murders. Without its variable it is nothing.
#[tokio::test]
async fn victim() {
    let Some(data_dir) = std::env::var_os(VICTIM_DIR) else { return };
    let binaries = Binaries::at(Path::new(&std::env::var_os(VICTIM_BINARIES).unwrap())).await.unwrap();
    let data_dir = PathBuf::from(data_dir);
    let lock = DataDirLock::acquire(&data_dir).unwrap();
    let server = Server::start(&lock, Options { durable: true, ..throwaway(&binaries) }).await.unwrap();
    sql(&server, &binaries, "CREATE TABLE kept (value text); INSERT INTO kept VALUES ('here')").await;
    fs::write(data_dir.join("pid.unfinished"), server.pid().to_string()).unwrap();
    fs::rename(data_dir.join("pid.unfinished"), data_dir.join("pid")).unwrap();
    std::future::pending::<()>().await;
}

/// Starts the victim and returns it with the pid of its server.
async fn start_victim(data_dir: &Path, binaries: &Binaries) -> (std::process::Child, u32) {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["tests::victim", "--exact"])
        .env(VICTIM_DIR, data_dir)
        .env(VICTIM_BINARIES, binaries.directory())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let note = data_dir.join("pid");
    eventually("the victim's server is ready", async || {
        assert!(victim.try_wait().unwrap().is_none(), "the victim ended by itself");
        note.exists()
    })
    .await;
    (victim, fs::read_to_string(note).unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_server_ends_with_its_murdered_parent_and_the_data_survives() {
    for binaries in servers().await {
        let scratch = Scratch::new();
        let (mut victim, orphan) = start_victim(&scratch.data_dir(), &binaries).await;
        let refusal = DataDirLock::acquire(&scratch.data_dir()).unwrap_err();
        assert!(matches!(refusal, PostgresError::AlreadyRunning { pid, .. } if pid == Some(victim.id())));

        victim.kill().unwrap();
        assert_eq!(victim.wait().unwrap().signal(), Some(9));
        eventually("the orphan has ended by itself", async || !runs(orphan)).await;

        let server = start(&scratch.data_dir(), &binaries).await.unwrap();
        assert_eq!(sql(&server, &binaries, "SELECT value FROM kept").await, "here");
        let log = fs::read_to_string(server.log_file()).unwrap();
        assert!(!log.contains("was not properly shut down"), "{log}");
        server.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_start_right_after_the_murder_ends_the_orphan() {
    for binaries in servers().await {
        let scratch = Scratch::new();
        let (mut victim, orphan) = start_victim(&scratch.data_dir(), &binaries).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
        let server = start(&scratch.data_dir(), &binaries).await.unwrap();
        assert!(!runs(orphan));
        assert_eq!(sql(&server, &binaries, "SELECT value FROM kept").await, "here");
        server.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_does_not_heed_its_parents_death_is_stopped_at_the_next_start() {
    for binaries in servers().await {
        let scratch = Scratch::new();
        let server = start(&scratch.data_dir(), &binaries).await.unwrap();
        sql(&server, &binaries, "CREATE TABLE kept (value text); INSERT INTO kept VALUES ('here')").await;
        server.stop().await.unwrap();
        let orphan = start_without_us(&scratch.data_dir(), &binaries).await;

        let server = start(&scratch.data_dir(), &binaries).await.unwrap();
        assert!(!runs(orphan));
        assert_eq!(sql(&server, &binaries, "SELECT value FROM kept").await, "here");
        server.stop().await.unwrap();
    }
}

/// A server on the cluster that is nobody's child, as on a machine without setpriv: by pg_ctl, which daemonises.
async fn start_without_us(data_dir: &Path, binaries: &Binaries) -> u32 {
    let cluster = data_dir.join("postgres/cluster");
    let owner = fs::metadata(&cluster).unwrap();
    let options = format!(
        "-c listen_addresses= -c unix_socket_directories={}",
        data_dir.join("postgres/socket").display()
    );
    let mut pg_ctl = Command::new(binaries.directory().join("pg_ctl"));
    if is_root() {
        use std::os::unix::process::CommandExt;
        pg_ctl.uid(owner.uid()).gid(owner.gid());
    }
    let status = pg_ctl
        .args(["-s", "-w", "-o", &options, "-l", "/dev/null", "start", "-D"])
        .arg(&cluster)
        .current_dir("/")
        .status();
    assert!(status.unwrap().success());
    let text = fs::read_to_string(cluster.join("postmaster.pid")).unwrap();
    text.lines().next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn children_of_a_murdered_server_do_not_keep_the_next_from_starting() {
    for binaries in servers().await {
        let scratch = Scratch::new();
        let server = start(&scratch.data_dir(), &binaries).await.unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let failure = server.failure().await;
        assert!(
            matches!(&failure, PostgresError::Died { status, .. } if status.contains("signal: 9")),
            "{failure}"
        );
        drop(server);
        start(&scratch.data_dir(), &binaries).await.unwrap().stop().await.unwrap();
    }
}

#[tokio::test]
async fn an_unrelated_process_named_by_stale_lock_files_is_left_alone() {
    for binaries in servers().await {
        let scratch = Scratch::new();
        start(&scratch.data_dir(), &binaries).await.unwrap().stop().await.unwrap();
        let home = scratch.data_dir().join("postgres");
        // It runs as the server's account: any other one PostgreSQL itself would tell from a server.
        let owner = fs::metadata(home.join("cluster")).unwrap();
        let mut bystander = Command::new("sleep");
        if is_root() {
            use std::os::unix::process::CommandExt;
            bystander.uid(owner.uid()).gid(owner.gid());
        }
        let mut bystander = bystander.arg("1000").spawn().unwrap();
        let text = format!("{}\n{}\n1\n5432\n\n\n\nready\n", bystander.id(), home.join("cluster").display());
        for path in ["cluster/postmaster.pid", "socket/.s.PGSQL.5432.lock"] {
            fs::write(home.join(path), &text).unwrap();
        }

        let server = start(&scratch.data_dir(), &binaries).await.unwrap();
        assert_eq!(bystander.try_wait().unwrap(), None);
        server.stop().await.unwrap();
        assert_eq!(bystander.try_wait().unwrap(), None);
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}

#[tokio::test]
async fn the_cluster_picks_the_binary() {
    let candidates = servers().await;
    let scratch = Scratch::new();
    let cluster = scratch.data_dir().join("postgres/cluster");
    assert_eq!(Binaries::for_cluster(&scratch.data_dir(), &candidates).unwrap(), candidates[0]);
    fs::create_dir_all(&cluster).unwrap();
    for binaries in &candidates {
        fs::write(cluster.join("PG_VERSION"), format!("{}\n", binaries.version().major)).unwrap();
        let chosen = Binaries::for_cluster(&scratch.data_dir(), &candidates).unwrap();
        assert_eq!(chosen.version().major, binaries.version().major);
    }
    fs::write(cluster.join("PG_VERSION"), "99\n").unwrap();
    let error = Binaries::for_cluster(&scratch.data_dir(), &candidates).unwrap_err().to_string();
    assert!(error.contains("made by PostgreSQL 99"), "{error}");
    assert!(error.contains(&candidates[0].version().to_string()), "{error}");
    fs::remove_file(cluster.join("PG_VERSION")).unwrap();
    let error = Binaries::for_cluster(&scratch.data_dir(), &candidates).unwrap_err();
    assert!(matches!(error, PostgresError::NotACluster { .. }), "{error}");
}

#[tokio::test]
async fn a_start_refuses_the_cluster_of_another_version() {
    let binaries = servers().await.remove(0);
    let scratch = Scratch::new();
    start(&scratch.data_dir(), &binaries).await.unwrap().stop().await.unwrap();
    fs::write(scratch.data_dir().join("postgres/cluster/PG_VERSION"), "99\n").unwrap();
    let error = start(&scratch.data_dir(), &binaries).await.unwrap_err();
    assert!(matches!(error, PostgresError::WrongVersion { made_by: 99, .. }), "{error}");
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_gets_a_short_one() {
    let binaries = servers().await.remove(0);
    let scratch = Scratch::new();
    let data_dir = scratch.data_dir().join("deep".repeat(20)).join("er");
    let mut before = None;
    for _ in 0..2 {
        let server = start(&data_dir, &binaries).await.unwrap();
        let elsewhere = server.socket_dir().to_owned();
        assert!(!elsewhere.starts_with(&scratch.0));
        assert_eq!(mode(&elsewhere), 0o700);
        assert_eq!(sql(&server, &binaries, "SELECT 1").await, "1");
        assert_ne!(before, Some(elsewhere.clone()));
        server.stop().await.unwrap();
        assert!(!elsewhere.exists());
        before = Some(elsewhere);
    }
}

#[tokio::test]
async fn odd_characters_in_the_path_do_not_matter() {
    let binaries = servers().await.remove(0);
    let scratch = Scratch::new();
    let server = start(&scratch.0.join("a, \"b\" 'c' \\d"), &binaries).await.unwrap();
    assert_eq!(sql(&server, &binaries, "SELECT 1").await, "1");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_directory_has_one_owner_for_as_long_as_its_server_runs() {
    let binaries = servers().await.remove(0);
    let scratch = Scratch::new();
    let server = start(&scratch.data_dir(), &binaries).await.unwrap();
    let error = start(&scratch.data_dir(), &binaries).await.unwrap_err();
    assert!(
        matches!(error, PostgresError::AlreadyRunning { pid, .. } if pid == Some(std::process::id())),
        "{error}"
    );
    assert_eq!(sql(&server, &binaries, "SELECT 1").await, "1");
    server.stop().await.unwrap();
    DataDirLock::acquire(&scratch.data_dir()).unwrap();
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_named() {
    let binaries = servers().await.remove(0);
    let scratch = Scratch::new();
    let below_a_file = scratch.0.join("file/data");
    fs::write(scratch.0.join("file"), "").unwrap();
    let error = start(&below_a_file, &binaries).await.unwrap_err().to_string();
    assert!(error.contains("make the directory") && error.contains("Not a directory"), "{error}");

    // Root may write everywhere, but the server's account may not pass; anybody else may not write.
    let closed = scratch.0.join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(if is_root() { 0o700 } else { 0o500 })).unwrap();
    let error = start(&closed.join("data"), &binaries).await.unwrap_err();
    let expected = match &error {
        PostgresError::ClosedDirectory { directory, .. } => is_root() && *directory == closed,
        PostgresError::Io { path, .. } => !is_root() && path.starts_with(&closed),
        _ => false,
    };
    assert!(expected, "{error}");
}

#[tokio::test]
async fn a_failed_start_quotes_the_log_and_says_what_to_do() {
    let binaries = servers().await.remove(0);
    let scratch = Scratch::new();
    let lock = DataDirLock::acquire(&scratch.data_dir()).unwrap();
    let setting = ("max_connections".to_owned(), "plenty".to_owned());
    let options = Options { settings: vec![setting], ..throwaway(&binaries) };
    let error = Server::start(&lock, options).await.unwrap_err().to_string();
    assert!(error.contains("invalid value for parameter \"max_connections\""), "{error}");
    assert!(error.contains("Correct that setting."), "{error}");
    // The same directory, put right, works, and the old words are not quoted again.
    let server = Server::start(&lock, throwaway(&binaries)).await.unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_failed_initialisation_quotes_initdb_and_leaves_no_cluster() {
    let real = servers().await.remove(0);
    let scratch = Scratch::new();
    let bin = scratch.0.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(real.directory().join("postgres"), bin.join("postgres")).unwrap();
    fs::write(bin.join("initdb"), "#!/bin/sh\necho 'could not write: No space left on device'\nexit 1\n")
        .unwrap();
    fs::set_permissions(bin.join("initdb"), Permissions::from_mode(0o755)).unwrap();
    let broken = Binaries::at(&bin).await.unwrap();
    let error = start(&scratch.data_dir(), &broken).await.unwrap_err().to_string();
    assert!(error.contains("The disk is full"), "{error}");
    let home = scratch.data_dir().join("postgres");
    assert!(!home.join("cluster").exists() && !home.join("initdb.password").exists());
    start(&scratch.data_dir(), &real).await.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn a_dropped_server_ends() {
    let binaries = servers().await.remove(0);
    let scratch = Scratch::new();
    let server = start(&scratch.data_dir(), &binaries).await.unwrap();
    let pid = server.pid();
    drop(server);
    eventually("the dropped server has ended", async || !runs(pid)).await;
    assert_eq!(working_below(&scratch.0), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_lost_password_is_reported_not_replaced() {
    let binaries = servers().await.remove(0);
    let scratch = Scratch::new();
    start(&scratch.data_dir(), &binaries).await.unwrap().stop().await.unwrap();
    fs::remove_file(scratch.data_dir().join("postgres/password")).unwrap();
    let error = start(&scratch.data_dir(), &binaries).await.unwrap_err();
    assert!(matches!(error, PostgresError::PasswordLost { .. }), "{error}");
}

#[tokio::test]
async fn a_directory_without_a_server_is_refused() {
    let scratch = Scratch::new();
    let error = Binaries::find(Some(&scratch.0)).await.unwrap_err();
    assert!(matches!(error, PostgresError::NotAServer { .. }), "{error}");
    let real = servers().await.remove(0);
    assert_eq!(Binaries::at(real.directory().parent().unwrap()).await.unwrap(), real);
}

#[test]
fn versions_are_read_as_packagers_write_them() {
    let check = |said: &str, expected: Option<(u16, u16)>| {
        assert_eq!(Version::parse(said).map(|version| (version.major, version.minor)), expected, "{said}");
    };
    check("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some((15, 18)));
    check("postgres (PostgreSQL) 18.6", Some((18, 6)));
    check("postgres (PostgreSQL) 19beta2", Some((19, 0)));
    check("postgres (PostgreSQL) 19devel", Some((19, 0)));
    check("postgres (PostgreSQL) devel", None);
    check("mysqld 8.0", None);
}

/// After `kill -9` and an immediate restart the former process may still be there for a moment.
#[test]
fn a_lock_whose_holder_is_just_dying_is_waited_for() {
    let scratch = Scratch::new();
    let mut dying = Some(DataDirLock::acquire(&scratch.data_dir()).unwrap());
    let mut pauses = 0;
    let taken = DataDirLock::acquire_patiently(&scratch.data_dir(), || {
        pauses += 1;
        if pauses == 3 {
            dying = None;
        }
    });
    assert_eq!((taken.is_ok(), pauses), (true, 3));
    let refused = DataDirLock::acquire_patiently(&scratch.data_dir(), || {}).unwrap_err().to_string();
    let us = format!("in use by process {}", std::process::id());
    assert!(refused.contains(&us), "{refused}");
}
