//! The roles of `gpuaasd`, one file each. A role starts its tasks on a process and returns; any number of replicas of
//! any role may run.

pub mod api;
pub mod audit_sealer;
pub mod outbox_relay;
pub mod platform_worker;

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

    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::AuditSealer => "audit-sealer",
            Self::OutboxRelay => "outbox-relay",
            Self::PlatformWorker => "platform-worker",
        }
    }
}
