//! What others can learn about secrets: that they exist, change and are handed out. Never a value.

use db::Event;
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{Delivery, SecretId, SecretInfo};

/// Declares an event that carries the resource as it is after the change.
macro_rules! event {
    ($type:ident { $field:ident : $payload:ty }, $name:literal, $title:literal) => {
        #[derive(Serialize, JsonSchema)]
        pub struct $type<'a> {
            pub $field: &'a $payload,
        }
        impl Event for $type<'_> {
            const TYPE: &'static str = $name;
            const TITLE: &'static str = $title;
        }
    };
}

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
