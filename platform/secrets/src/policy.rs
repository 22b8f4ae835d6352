//! What can be done here. Who may is written in `policy.cedar`.
//!
//! People store, rotate and retire; only our own workers take delivery. So a stolen operator session can destroy
//! secrets, which is loud, but cannot read one.

use authz::{ActionInfo, DomainPolicy, action};

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

/// Who may do what with secrets.
pub const POLICY: DomainPolicy = DomainPolicy {
    schema: include_str!("policy.cedarschema"),
    policies: include_str!("policy.cedar"),
    actions,
};

fn actions() -> Vec<ActionInfo> {
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
