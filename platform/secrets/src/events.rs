//! What others can learn about secrets: that they exist, change and are handed out. Never a value.

use db::{Event, event};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{Delivery, SecretId, SecretInfo};

event!(SecretCreated { secret: SecretInfo }, "gpuaas.secrets.secret.created", "A secret was stored");
event!(SecretRotated { secret: SecretInfo }, "gpuaas.secrets.secret.rotated", "A secret got a new value");
event!(
    SecretRetired { secret: SecretInfo },
    "gpuaas.secrets.secret.retired",
    "A secret was ended and destroyed"
);
event!(
    SecretDelivered { delivery: Delivery },
    "gpuaas.secrets.secret.delivered",
    "A secret's value was handed to someone"
);

#[derive(Serialize, JsonSchema)]
pub struct SecretVersionDestroyed {
    pub secret_id: SecretId,
    pub version: i32,
}
impl Event for SecretVersionDestroyed {
    const TYPE: &'static str = "gpuaas.secrets.secret.version_destroyed";
    const TITLE: &'static str = "A version of a secret that had ended was destroyed";
}

#[derive(Serialize, JsonSchema)]
pub struct SecretRewrapped<'a> {
    pub secret_id: SecretId,
    pub version: i32,
    /// The key encryption key before and after, by id.
    pub from_key: &'a str,
    pub to_key: &'a str,
}
impl Event for SecretRewrapped<'_> {
    const TYPE: &'static str = "gpuaas.secrets.secret.rewrapped";
    const TITLE: &'static str = "A data key was wrapped with another key encryption key";
}
