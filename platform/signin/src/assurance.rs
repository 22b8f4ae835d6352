//! How well somebody proved who they are, and when.
//!
//! Judged by what the id token says, never by what was asked for: providers answer a wish for a strong login (`acr_values`)
//! with an ordinary one and success, and re-use an old login although a fresh one (`max_age`) was demanded.

use std::time::Duration;

use serde_json::Value;
use types::Timestamp;

use crate::jose::{Claims, Refusal};

/// What counts as strong at one provider: a level it vouches for, or a method it says was used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StrongRule {
    pub acr: Vec<String>,
    pub amr: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assurance {
    pub acr: Option<String>,
    pub amr: Vec<String>,
    /// When the person last proved something, not when the token was made.
    pub auth_time: Option<Timestamp>,
    pub strong: bool,
}

impl Assurance {
    pub fn judge(claims: &Claims, rule: &StrongRule) -> Result<Self, Refusal> {
        let acr = claims.text("acr")?.map(str::to_owned);
        let amr: Vec<String> = match claims.map().get("amr") {
            None => Vec::new(),
            Some(Value::Array(methods)) => methods
                .iter()
                .map(|method| method.as_str().map(str::to_owned).ok_or(Refusal::Malformed("amr")))
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(Refusal::Malformed("amr")),
        };
        let strong = acr.as_ref().is_some_and(|acr| rule.acr.contains(acr))
            || amr.iter().any(|method| rule.amr.contains(method));
        Ok(Self { acr, amr, auth_time: claims.time("auth_time")?, strong })
    }

    /// Did they prove it within `max_age`? Without a time nobody knows, so no.
    pub fn is_fresh(&self, max_age: Duration, now: Timestamp, skew: Duration) -> bool {
        let oldest = now.saturating_sub(max_age.saturating_add(skew)).unwrap_or(Timestamp::MIN);
        self.auth_time.is_some_and(|at| at >= oldest)
    }
}
