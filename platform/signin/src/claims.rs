//! What a provider says about a person beyond who they are: groups, name, e-mail address.

use serde_json::{Map, Value};

/// Where in the claims the groups are: `groups`, `realm_access.roles`, `https://example.com/groups`.
///
/// A claim of exactly this name comes first, because names with dots are common; else each dot goes one object deeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimPath(String);

impl ClaimPath {
    pub fn new(path: &str) -> Option<Self> {
        let well_formed = !path.is_empty() && path.split('.').all(|part| !part.is_empty());
        well_formed.then(|| Self(path.to_owned()))
    }

    pub fn find<'a>(&self, claims: &'a Map<String, Value>) -> Option<&'a Value> {
        if let Some(value) = claims.get(&self.0) {
            return Some(value);
        }
        let mut parts = self.0.split('.');
        let first = claims.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.as_object()?.get(part))
    }
}

/// Groups that cannot be read; nobody should lose or gain rights by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GroupsFault {
    #[error("the groups are neither a text nor a list of texts")]
    Form,
    #[error("there are too many groups")]
    TooMany,
}

/// The groups: one text, or several. `None` if the provider says nothing, which is not the same as "in none".
pub fn groups(
    claims: &Map<String, Value>,
    path: &ClaimPath,
    groups_max: usize,
) -> Result<Option<Vec<String>>, GroupsFault> {
    match path.find(claims) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(one)) => Ok(Some(vec![one.clone()])),
        Some(Value::Array(several)) if several.len() > groups_max => Err(GroupsFault::TooMany),
        Some(Value::Array(several)) => {
            let texts = several.iter().map(|one| one.as_str().map(str::to_owned).ok_or(GroupsFault::Form));
            texts.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(GroupsFault::Form),
    }
}

/// How the provider calls a person. For showing only: people are told apart by issuer and subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    pub name: Option<String>,
    pub email: Option<String>,
    pub email_verified: bool,
}

impl Profile {
    pub fn read(claims: &Map<String, Value>) -> Self {
        let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        // Some write the word where a truth value belongs.
        let email_verified =
            claims.get("email_verified").is_some_and(|value| *value == Value::Bool(true) || value == "true");
        let name = text("name").or_else(|| text("preferred_username"));
        Self { name: name.map(str::to_owned), email: text("email").map(str::to_owned), email_verified }
    }
}
