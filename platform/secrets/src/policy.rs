//! What can be done here, and who may do it.
//!
//! People store, rotate and retire; only our own workers take delivery. So a stolen operator session can destroy
//! secrets, which is loud, but cannot read one.

use authz::{ActionInfo, action};
use iam::RoleDecider;

action!(SecretCreate, "secrets.secret.create", "Store a secret");
action!(SecretRead, "secrets.secret.read", "Read what is known about a secret, without its value");
action!(SecretList, "secrets.secret.list", "List secrets, without their values");
action!(SecretRotate, "secrets.secret.rotate", "Give a secret a new value");
action!(SecretRetire, "secrets.secret.retire", "End a secret and destroy its value");
action!(SecretDeliver, "secrets.secret.deliver", "Take a secret's value for its purpose");
action!(DeliveryList, "secrets.delivery.list", "See who was given a secret");
action!(VersionDestroy, "secrets.version.destroy", "Destroy versions that have ended");
action!(KeysRewrap, "secrets.key.rewrap", "Wrap data keys with a new key encryption key");

/// Under which name ended versions are destroyed.
pub const SWEEPER: &str = "secrets.sweeper";

pub fn actions() -> Vec<ActionInfo> {
    vec![
        ActionInfo::of::<SecretCreate>(),
        ActionInfo::of::<SecretRead>(),
        ActionInfo::of::<SecretList>(),
        ActionInfo::of::<SecretRotate>(),
        ActionInfo::of::<SecretRetire>(),
        ActionInfo::of::<SecretDeliver>(),
        ActionInfo::of::<DeliveryList>(),
        ActionInfo::of::<VersionDestroy>(),
        ActionInfo::of::<KeysRewrap>(),
    ]
}

/// Adds this domain's rules. `workers` are the system actors that keep signing keys and take deliveries, by name.
#[must_use]
pub fn rules(decider: RoleDecider, workers: &'static [&'static str]) -> RoleDecider {
    decider
        .also::<SecretCreate>(true)
        .also::<SecretRead>(true)
        .also::<SecretList>(true)
        .also::<SecretRotate>(true)
        .also::<SecretRetire>(true)
        .also::<DeliveryList>(true)
        .also::<KeysRewrap>(false)
        .also_worker::<SecretCreate>(workers)
        .also_worker::<SecretRotate>(workers)
        .also_worker::<SecretDeliver>(workers)
        .also_worker::<KeysRewrap>(workers)
        .also_worker::<VersionDestroy>(&[SWEEPER])
}
