//! The roles of `gpuaasd`, one file each. A role starts its tasks on a process and returns; any number of replicas of
//! any role may run.

pub mod api;
pub mod audit_sealer;
pub mod outbox_relay;
pub mod platform_worker;

use db::Login;

/// Whom a process with these roles connects as.
pub fn logins(roles: &[Role]) -> Vec<Login> {
    let used = |login: &Login| roles.iter().any(|role| role.logins().contains(login));
    Login::ALL.into_iter().filter(used).collect()
}

/// A role by name, as in `--role api,outbox-relay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Role {
    /// Answers requests
    Api,
    /// Seals audit entries into the signed log and copies it elsewhere
    AuditSealer,
    /// Gives events their positions and passes them on
    OutboxRelay,
    /// Runs the platform's flows and read models, keeps partitions
    PlatformWorker,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Api, Self::AuditSealer, Self::OutboxRelay, Self::PlatformWorker];

    /// Whom it connects as: a process needs the passwords of these, and opens pools for no others.
    pub const fn logins(self) -> &'static [Login] {
        match self {
            Self::Api | Self::PlatformWorker => &[Login::App],
            // The log's signing key comes from the secrets domain, which records that it handed it out.
            Self::AuditSealer => &[Login::App, Login::Sealer],
            Self::OutboxRelay => &[Login::Relay],
        }
    }

    /// What it needs of a configuration beside the database, and what for.
    pub const fn sections(self) -> &'static [(Section, &'static str)] {
        match self {
            Self::Api => &[
                (Section::Public, "set at least `listen`, the address to answer on"),
                (Section::Secrets, "set `key_file`, the key that protects what tenants store"),
            ],
            Self::AuditSealer => {
                &[(Section::Secrets, "set `key_file`; the log's signing key is protected with it")]
            }
            Self::OutboxRelay | Self::PlatformWorker => &[],
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::AuditSealer => "audit-sealer",
            Self::OutboxRelay => "outbox-relay",
            Self::PlatformWorker => "platform-worker",
        }
    }
}

/// A section of the configuration that may be left out where no role needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Public,
    Secrets,
}

impl Section {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Secrets => "secrets",
        }
    }
}
