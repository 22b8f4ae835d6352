//! What organizations and projects are, and the rules about them that need no database.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{Error, ErrorCode, ErrorKind, Id, Kind, Name, Timestamp};

pub enum OrganizationKind {}
impl Kind for OrganizationKind {
    const PREFIX: &'static str = "org";
    const NAME: &'static str = "organization";
}
pub type OrganizationId = Id<OrganizationKind>;

pub enum ProjectKind {}
impl Kind for ProjectKind {
    const PREFIX: &'static str = "prj";
    const NAME: &'static str = "project";
}
pub type ProjectId = Id<ProjectKind>;

pub enum OperatorKind {}
impl Kind for OperatorKind {
    const PREFIX: &'static str = "opr";
    const NAME: &'static str = "operator";
}
pub type OperatorId = Id<OperatorKind>;

pub enum KeyKind {}
impl Kind for KeyKind {
    const PREFIX: &'static str = "key";
    const NAME: &'static str = "api_key";
}
pub type KeyId = Id<KeyKind>;

pub enum SessionKind {}
impl Kind for SessionKind {
    const PREFIX: &'static str = "ses";
    const NAME: &'static str = "session";
}
pub type SessionId = Id<SessionKind>;

pub static NAME_TAKEN: ErrorCode = ErrorCode::new(
    "name_taken",
    ErrorKind::Conflict,
    "Something else has this name",
    "Choose another name, or archive the one that has it.",
);
pub static ARCHIVED: ErrorCode = ErrorCode::new(
    "archived",
    ErrorKind::Conflict,
    "It is archived and can no longer be changed",
    "Make a new one; what is archived stays readable.",
);
pub static SIGN_IN_LINK_INVALID: ErrorCode = ErrorCode::new(
    "sign_in_link_invalid",
    ErrorKind::Unauthenticated,
    "This sign-in link is used up, expired or wrong",
    "Make a new one on the server's machine: gpuaasd operator sign-in-link.",
);
pub static CROSS_SITE_REQUEST: ErrorCode = ErrorCode::new(
    "cross_site_request",
    ErrorKind::Forbidden,
    "A change with a browser session must come from this site's own pages",
    "Use the console, or an API key instead of the session cookie.",
);

pub fn errors() -> Vec<&'static ErrorCode> {
    vec![&NAME_TAKEN, &ARCHIVED, &SIGN_IN_LINK_INVALID, &CROSS_SITE_REQUEST]
}

/// Free-form key/value pairs, for people and programs.
pub type Labels = BTreeMap<String, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrganizationState {
    Active,
    /// Its projects are being archived.
    Archiving,
    Archived,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectState {
    Active,
    Archived,
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Organization {
    pub id: OrganizationId,
    pub name: Name,
    pub labels: Labels,
    pub state: OrganizationState,
    /// Since when it is in this state.
    pub state_since: Timestamp,
    /// Counts changes; also the ETag.
    pub generation: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// An organization in numbers: a read model, so it says how fresh it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrganizationSummary {
    pub org_id: OrganizationId,
    pub projects_active: i64,
    pub projects_archived: i64,
    /// The last event counted.
    pub as_of_position: i64,
    /// When that event got its position.
    pub as_of: Timestamp,
}

/// Where a tenant's work lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    pub id: ProjectId,
    pub org_id: OrganizationId,
    pub name: Name,
    pub labels: Labels,
    pub state: ProjectState,
    /// Since when it is in this state.
    pub state_since: Timestamp,
    /// Counts changes; also the ETag.
    pub generation: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What makes two names the same.
pub fn name_key(name: &Name) -> String {
    name.as_str().to_lowercase()
}

pub fn not_found(kind: &str) -> Error {
    authz::NOT_FOUND.error(authz::not_found_message(kind))
}

pub fn name_taken(what: &str) -> Error {
    NAME_TAKEN.error(format!("another {what} has this name"))
}
