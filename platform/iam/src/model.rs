//! What organizations and projects are, and the rules about them that need no database.

use std::collections::BTreeMap;

use authz::Place;
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

pub enum PersonKind {}
impl Kind for PersonKind {
    const PREFIX: &'static str = "usr";
    const NAME: &'static str = "person";
}
pub type PersonId = Id<PersonKind>;

pub enum GrantKind {}
impl Kind for GrantKind {
    const PREFIX: &'static str = "grt";
    const NAME: &'static str = "grant";
}
pub type GrantId = Id<GrantKind>;

pub enum InvitationKind {}
impl Kind for InvitationKind {
    const PREFIX: &'static str = "inv";
    const NAME: &'static str = "invitation";
}
pub type InvitationId = Id<InvitationKind>;

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
pub static LAST_OWNER: ErrorCode = ErrorCode::new(
    "last_owner",
    ErrorKind::Conflict,
    "Somebody has to remain",
    "Give the role to somebody else first, then end this grant.",
);
pub static OWNER_EXISTS: ErrorCode = ErrorCode::new(
    "owner_exists",
    ErrorKind::Conflict,
    "The organization has an owner already",
    "Ask an owner to make the person an owner too.",
);
pub static ALREADY_HELD: ErrorCode = ErrorCode::new(
    "already_held",
    ErrorKind::Conflict,
    "The person holds this role here already",
    "Nothing needs to be done. To change when it ends, end the grant and make a new one.",
);
pub static ROLE_MISPLACED: ErrorCode = ErrorCode::new(
    "role_misplaced",
    ErrorKind::Invalid,
    "This role cannot be held there",
    "Roles that begin with 'project.' want a project_id; those that begin with 'organization.' must not have one.",
);
pub static INVITATION_INVALID: ErrorCode = ErrorCode::new(
    "invitation_invalid",
    ErrorKind::NotFound,
    "This invitation is used up, expired, withdrawn or wrong",
    "Ask whoever invited you for a new one.",
);
pub static KEY_INVALID: ErrorCode = ErrorCode::new(
    "key_invalid",
    ErrorKind::Invalid,
    "Such a key makes no sense",
    "Name the project's organization beside the project, actions that exist, and an end that lies ahead.",
);
pub static KEY_TOO_WIDE: ErrorCode = ErrorCode::new(
    "key_too_wide",
    ErrorKind::Forbidden,
    "A key cannot make one that reaches further than itself",
    "Sign in and make it there, or ask for no more than the key you use has.",
);
pub static CROSS_SITE_REQUEST: ErrorCode = ErrorCode::new(
    "cross_site_request",
    ErrorKind::Forbidden,
    "A change with a browser session must come from this site's own pages",
    "Use the console, or an API key instead of the session cookie.",
);

pub fn errors() -> Vec<&'static ErrorCode> {
    vec![
        &NAME_TAKEN,
        &ARCHIVED,
        &SIGN_IN_LINK_INVALID,
        &LAST_OWNER,
        &OWNER_EXISTS,
        &ALREADY_HELD,
        &ROLE_MISPLACED,
        &INVITATION_INVALID,
        &KEY_INVALID,
        &KEY_TOO_WIDE,
        &CROSS_SITE_REQUEST,
    ]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PersonState {
    Active,
    Archived,
}

/// Somebody who can sign in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Person {
    pub id: PersonId,
    pub name: Name,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    pub state: PersonState,
    /// Since when it is in this state.
    pub state_since: Timestamp,
    /// Counts changes; also the ETag.
    pub generation: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What is written down about a person for ever: no name, no address, so that both can be erased.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PersonFacts {
    pub id: PersonId,
    pub state: PersonState,
}

impl From<&Person> for PersonFacts {
    fn from(person: &Person) -> Self {
        Self { id: person.id, state: person.state }
    }
}

/// A role that somebody holds at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    pub id: GrantId,
    pub person_id: PersonId,
    /// One of `platform.…`, `organization.…` and `project.…`.
    pub role: String,
    /// The organization it is held in; absent for roles on the platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<OrganizationId>,
    /// The project it is held in; absent for roles in the whole organization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// Counts changes; also the ETag.
    pub generation: i64,
    pub created_at: Timestamp,
    /// Who gave it.
    pub created_by: String,
    /// When it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

impl Grant {
    pub fn place(&self) -> Place {
        Place::new(self.org_id.map(|id| *id.as_uuid()), self.project_id.map(|id| *id.as_uuid()))
    }
}

/// An offer of a role, for whoever has its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Invitation {
    pub id: InvitationId,
    pub org_id: OrganizationId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    pub role: String,
    /// Counts changes; also the ETag.
    pub generation: i64,
    pub created_at: Timestamp,
    pub created_by: String,
    pub expires_at: Timestamp,
    /// When somebody accepted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    /// Who accepted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_by: Option<PersonId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn_at: Option<Timestamp>,
}

/// An API key, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiKey {
    pub id: KeyId,
    pub name: Name,
    /// Whose it is: it gives what they hold.
    pub person_id: PersonId,
    /// The only organization it reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<OrganizationId>,
    /// The only project it reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// The only actions it can be used for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<String>>,
    /// Counts changes; also the ETag.
    pub generation: i64,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
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
