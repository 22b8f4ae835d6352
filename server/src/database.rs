//! The way to PostgreSQL for every login, and `gpuaasd db`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use db::{DbError, Login, Pool, PoolOptions, Target, TlsFault, login, migrate};

use crate::passwords::Passwords;
use crate::{Failure, assemble, terminal};

/// An installation's database: where it is, and how its logins are called.
#[derive(Clone)]
pub struct Database {
    target: Target,
    /// The authority that the server's certificate must come from, for PostgreSQL's own programs.
    tls_ca: Option<PathBuf>,
    prefix: String,
    passwords: Passwords,
}

// fixed: how long a database host may take to answer a connection attempt
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
// fixed: how long a database host may be silent before its connections are given up
const SILENCE: Duration = Duration::from_secs(20);
// fixed: how long a request may queue for a connection before it is told to come back
const WAIT_TIMEOUT: Duration = Duration::from_secs(2);

impl Database {
    /// `target` names host and database; user and password are set per login.
    pub fn new(target: Target, prefix: impl Into<String>, passwords: Passwords) -> Self {
        Self { target, tls_ca: None, prefix: prefix.into(), passwords }
    }

    /// The same, reached over TLS: `target` trusts the authority in this file, and so should others.
    #[must_use]
    pub fn trusting(mut self, tls_ca: Option<PathBuf>) -> Self {
        self.tls_ca = tls_ca;
        self
    }

    /// Another database of the same server and logins.
    #[must_use]
    pub fn beside(&self, name: &str) -> Self {
        let mut other = self.clone();
        other.target.config.dbname(name);
        other
    }

    /// The database's own name.
    pub fn name(&self) -> &str {
        self.target.config.get_dbname().unwrap_or("gpuaas")
    }

    pub fn tls_ca(&self) -> Option<&Path> {
        self.tls_ca.as_deref()
    }

    pub fn target(&self, login: Login) -> Result<Target, Failure> {
        let mut target = self.target.clone();
        target.config.user(login.role_name(&self.prefix)).password(self.passwords.of(login)?.expose());
        // A host that vanishes without a word is given up in seconds, not in the quarter of an hour the kernel would take.
        target.config.connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(SILENCE);
        target.config.keepalives_idle(SILENCE).keepalives_interval(CONNECT_TIMEOUT).keepalives_retries(3);
        target.config.application_name(format!("gpuaasd {}", login.suffix()));
        Ok(target)
    }

    /// A pool whose queue is sixteen callers per connection: more would only wait to time out.
    pub fn pool(&self, login: Login, connections_max: usize) -> Result<Pool, Failure> {
        let options =
            PoolOptions { connections_max, waiting_max: connections_max * 16, wait_timeout: WAIT_TIMEOUT };
        Ok(Pool::new(self.target(login)?, options)?)
    }

    /// Makes logins and database where they are missing.
    pub async fn init(&self, admin: &Target) -> Result<(), Failure> {
        let mut passwords = HashMap::new();
        for login in Login::ALL {
            passwords.insert(login, self.passwords.of(login)?);
        }
        let client = admin.connect().await?;
        Ok(login::init(&client, &self.prefix, self.name(), |login| passwords[&login].clone()).await?)
    }

    /// Refuses a server whose logins have other passwords than ours: another installation connects with those, and `init`
    /// would lock it out. Changes nothing.
    pub async fn refuse_anothers(&self, admin: &Target) -> Result<(), Failure> {
        let client = admin.connect().await?;
        for login in login::existing(&client, &self.prefix).await? {
            if !self.admits(admin, login).await? {
                return Err(Failure::new(format!(
                    "this PostgreSQL belongs to another installation: it has the login {}, and the data directory does not \
                     hold its password. Nothing was changed. Name the data directory that the installation was made with, \
                     or a PostgreSQL that has no GPUaaS yet",
                    login.role_name(&self.prefix)
                )));
            }
        }
        Ok(())
    }

    /// Does our password open the login? A server that trusts everybody would say yes to any, but not to none.
    async fn admits(&self, admin: &Target, login: Login) -> Result<bool, Failure> {
        let Ok(password) = self.passwords.of(login) else { return Ok(false) };
        let mut target = admin.clone();
        target.config.user(login.role_name(&self.prefix)).password(password.expose());
        match target.connect().await {
            Ok(_) => Ok(true),
            Err(DbError::NotAdmitted(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Brings the schema up to this binary's version. Returns how many migrations were applied.
    pub async fn migrate(&self) -> Result<usize, Failure> {
        let client = self.target(Login::Owner)?.connect().await?;
        Ok(migrate::run(&client, &self.prefix, &assemble::migration_sets()?).await?)
    }

    /// Refuses to serve with a login that tenants' walls do not bind, or on a schema that does not fit.
    pub async fn check(&self, logins: &[Login]) -> Result<(), Failure> {
        for login in logins {
            self.check_as(*login).await?;
        }
        Ok(())
    }

    async fn check_as(&self, login: Login) -> Result<(), Failure> {
        let client = self.target(login)?.connect().await.map_err(|error| match error {
            DbError::NotAdmitted(_) => Failure::new(format!(
                "{error}. If this installation is new, run `gpuaasd db init --config FILE` first; it also gives the login \
                 \"{}\" the password that is in its file",
                login.suffix()
            )),
            error => error.into(),
        })?;
        login::assert_confined(&client).await?;
        match migrate::pending_side_by_side(&client, &assemble::migration_sets()?).await? {
            Some(0) => Ok(()),
            Some(missing) => Err(Failure::new(format!(
                "the database lacks {missing} migrations of this version. Run `gpuaasd db migrate --config FILE` first"
            ))),
            None => Err(Failure::new("the database is empty. Run `gpuaasd db init --config FILE` first")),
        }
    }
}

/// What the person who runs an installation can do about PostgreSQL's TLS.
pub fn tls_remedy(fault: &TlsFault) -> &'static str {
    match fault {
        TlsFault::NotOffered => {
            "Turn TLS on there (`ssl = on` in postgresql.conf), or leave database.tls_ca out where plaintext is allowed"
        }
        TlsFault::UnknownAuthority => {
            "Put the certificate of the authority that signed it into the file that database.tls_ca names. If that file is \
             right, somebody else may be answering: look before you trust"
        }
        TlsFault::AnotherName => {
            "Set database.host to a name that is in the certificate, or give PostgreSQL a certificate with this name \
             (as subjectAltName)"
        }
        TlsFault::Expired => "Renew it on PostgreSQL's side, and see that this machine's clock is right",
        TlsFault::NotYetValid => "See that the clocks of both machines are right",
        TlsFault::AuthorityItself => {
            "Let the authority sign a certificate for PostgreSQL (with CA:FALSE), and set database.tls_ca to the authority's"
        }
        TlsFault::Other(_) => {
            "PostgreSQL's log has its side of it; database.tls_ca is the authority we trust"
        }
    }
}

#[derive(Subcommand)]
pub enum DbCommand {
    /// Make the logins and the database, then apply all migrations
    ///
    /// The first step of a new installation. May be repeated: it makes what is missing, and gives each login the password
    /// that is in its file.
    #[command(
        after_help = "Example, with the URL in the environment so that others on this machine do not see it:\n  \
                            GPUAAS_ADMIN_URL=postgresql://admin@db.example/postgres gpuaasd db init --config gpuaas.toml"
    )]
    Init {
        /// Configuration file; `gpuaasd config reference` explains every key
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// A PostgreSQL URL of a user that may create roles and databases
        #[arg(long, env = "GPUAAS_ADMIN_URL", hide_env_values = true, value_name = "URL")]
        admin_url: String,
    },
    /// Apply this version's migrations; safe while the previous version runs
    ///
    /// The second step of an upgrade, after the backup and before the new version starts.
    #[command(after_help = "Example:\n  gpuaasd db migrate --config gpuaas.toml")]
    Migrate {
        /// Configuration file; `gpuaasd config reference` explains every key
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

pub async fn command(command: DbCommand) -> Result<(), Failure> {
    let (config, admin_url) = match command {
        DbCommand::Init { config, admin_url } => (config, Some(admin_url)),
        DbCommand::Migrate { config } => (config, None),
    };
    let config = crate::config::load(&config)?;
    let database = config.database()?;
    if let Some(url) = admin_url {
        database.init(&config.admin(&url)?).await?;
    }
    let applied = database.migrate().await?;
    terminal::say(&format!("The database is ready; {applied} migrations were applied."));
    Ok(())
}
