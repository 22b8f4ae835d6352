//! An installation for `gpuaasd run`: a PostgreSQL of the test's own, passwords, and a configuration per process.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::db::{Login, Target};
use testkit::{Gpuaasd, PrivatePostgres, Scratch, binary, free_port};
use tokio_postgres::Client;
use tokio_postgres::config::Host;

pub struct Installation {
    directory: Scratch,
    pub postgres: PrivatePostgres,
}

/// The configuration of one process.
pub struct Config {
    pub file: PathBuf,
    internal_url: String,
}

impl Installation {
    /// With logins, database and schema.
    pub async fn new(name: &str) -> Self {
        let installation = Self::bare(name).await;
        let made = gpuaasd(
            &["db", "init", "--admin-url", &installation.postgres.connection()],
            &[("--config", &installation.config("init", "").file)],
        );
        assert!(made.status.success(), "{}", text(&made));
        installation
    }

    /// Only a server and passwords.
    pub async fn bare(name: &str) -> Self {
        let installation = Self { directory: Scratch::new(name), postgres: PrivatePostgres::start().await };
        installation.passwords("all", &Login::ALL);
        installation
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A directory with the passwords of these logins and no others.
    pub fn passwords(&self, name: &str, logins: &[Login]) -> PathBuf {
        let directory = self.path().join(format!("passwords-{name}"));
        std::fs::create_dir_all(&directory).unwrap();
        for login in logins {
            std::fs::write(directory.join(format!("{}.password", login.suffix())), password(*login)).unwrap();
        }
        directory
    }

    /// A configuration with every password; `further` are more sections.
    pub fn config(&self, name: &str, further: &str) -> Config {
        self.config_with(name, &self.path().join("passwords-all"), further)
    }

    pub fn config_with(&self, name: &str, passwords: &Path, further: &str) -> Config {
        let (config, internal) = (self.connection(), format!("127.0.0.1:{}", free_port()));
        let Some(Host::Unix(host)) = config.get_hosts().first() else {
            panic!("the test server listens on a socket")
        };
        let text = format!(
            "mode = \"development\"\ndrain_seconds = 0\n[database]\nhost = {host:?}\npassword_dir = {passwords:?}\n\
             [internal]\nlisten = \"{internal}\"\n{further}"
        );
        let file = self.path().join(format!("{name}.toml"));
        std::fs::write(&file, text).unwrap();
        Config { file, internal_url: format!("http://{internal}") }
    }

    /// The section `[secrets]`, with one key for all processes.
    pub fn secrets(&self) -> String {
        let key = self.path().join("secrets.key");
        if !key.exists() {
            std::fs::write(&key, [7u8; 32]).unwrap();
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        format!("[secrets]\nkey_file = {key:?}\n")
    }

    /// Returns when it is ready.
    pub async fn run(&self, roles: &str, config: &Config) -> Gpuaasd {
        Gpuaasd::run(roles, &config.file, &config.internal_url).await
    }

    /// The superuser, in the installation's database.
    pub async fn superuser(&self) -> Client {
        let mut config = self.connection();
        config.dbname("gpuaas");
        Target::plain(config).connect().await.unwrap()
    }

    /// The superuser, in no database of ours.
    pub async fn administrator(&self) -> Client {
        Target::plain(self.connection()).connect().await.unwrap()
    }

    /// As a login, with its own password and nothing else.
    pub async fn client(&self, login: Login) -> Client {
        let mut config = self.connection();
        config.dbname("gpuaas").user(login.role_name("gpuaas")).password(password(login));
        Target::plain(config).connect().await.unwrap()
    }

    fn connection(&self) -> tokio_postgres::Config {
        self.postgres.connection().parse().unwrap()
    }
}

fn password(login: Login) -> String {
    format!("of the login {}", login.suffix())
}

/// Runs the program to its end.
pub fn gpuaasd(arguments: &[&str], paths: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(binary());
    command.args(arguments);
    for (flag, path) in paths {
        command.arg(flag).arg(path);
    }
    command.output().unwrap()
}

/// All it said.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
