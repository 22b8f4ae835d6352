//! What a setting is to its readers, and the rules that need no database.

use authz::{Level, Place, Subject};
use db::{Freedom, Resolved, SettingInfo, Source, StoredSetting};
use iam::{OrganizationId, ProjectId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use types::{Error, ErrorCode, ErrorKind, Timestamp};

/// The name of a setting's kind in audit entries and questions.
pub const SETTING: &str = "setting";

pub static SETTING_UNKNOWN: ErrorCode = ErrorCode::new(
    "setting_unknown",
    ErrorKind::NotFound,
    "There is no such setting here",
    "Look for its key in the list of settings.",
);
pub static SETTING_INVALID: ErrorCode = ErrorCode::new(
    "setting_invalid",
    ErrorKind::Invalid,
    "The setting does not take this value",
    "Send a value that fits the schema in the details.",
);
pub static SETTING_NEEDS_EVIDENCE: ErrorCode = ErrorCode::new(
    "setting_needs_evidence",
    ErrorKind::Conflict,
    "Something has to be shown before this can be set",
    "Do what the message names, then set it again.",
);

pub fn errors() -> Vec<&'static ErrorCode> {
    vec![&SETTING_UNKNOWN, &SETTING_INVALID, &SETTING_NEEDS_EVIDENCE]
}

/// Whose settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Platform,
    Organization(OrganizationId),
    Project(ProjectId),
}

/// A setting as it holds at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EffectiveSetting {
    pub key: String,
    pub about: String,
    /// JSON Schema of a value.
    pub schema: Value,
    pub default: Value,
    /// Where it can be set.
    pub scopes: Vec<Level>,
    /// How an organization's or a project's value may differ from the one outside.
    pub freedom: Freedom,
    /// What has to be shown before it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The value that holds here.
    pub value: Value,
    /// Where that value comes from.
    pub source: Source,
    /// What is set, from the platform inward to this place.
    pub layers: Vec<Layer>,
    /// Counts changes at this place, 0 before the first; also the ETag.
    pub generation: i64,
}

/// What is set at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    pub scope: Level,
    pub value: Value,
    /// Why the value does not count, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
    /// Who set it. Tenants are not told who of the platform did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_by: Option<Subject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_at: Option<Timestamp>,
}

/// A setting as it was left by a change, for audit entries and events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingState {
    pub key: String,
    pub scope: Level,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org_id: Option<OrganizationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// Absent if nothing is set there, so that the value outside holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Counts changes at this place.
    pub generation: i64,
}

impl SettingState {
    pub fn of(stored: &StoredSetting) -> Self {
        let project = match stored.place {
            Place::Project { project, .. } => Some(ProjectId::from_uuid(project)),
            Place::Platform | Place::Organization(_) => None,
        };
        Self {
            key: stored.key.clone(),
            scope: stored.place.level(),
            org_id: stored.place.organization().map(OrganizationId::from_uuid),
            project_id: project,
            value: stored.value.clone(),
            generation: stored.generation,
        }
    }
}

/// Is the setting any business of whoever lives at this level? How the platform runs itself is not a tenant's.
pub fn is_shown(info: &SettingInfo, level: Level) -> bool {
    level == Level::Platform || info.scopes.contains(&Level::Organization)
}

/// What holds at a place, from the rows that were read there and the platform's value, if that is known otherwise.
pub fn effective(
    info: &SettingInfo,
    place: Place,
    rows: &[StoredSetting],
    platform: Option<Value>,
    resolved: Resolved<Value>,
) -> EffectiveSetting {
    let row = |at: Place| rows.iter().find(|row| row.key == info.key && row.place == at);
    let layer = |at: Place| {
        let ignored = resolved.ignored.iter().find(|(level, _)| *level == at.level());
        let (value, set_by, set_at) = match (row(at), at) {
            (Some(row), _) => (row.value.clone()?, row.set_by.clone(), Some(row.set_at)),
            (None, Place::Platform) => (platform.clone()?, None, None),
            (None, _) => return None,
        };
        let ignored = ignored.map(|(_, why)| why.clone());
        Some(Layer { scope: at.level(), value, ignored, set_by, set_at })
    };
    EffectiveSetting {
        key: info.key.to_owned(),
        about: info.about.to_owned(),
        schema: info.schema.clone(),
        default: info.default.clone(),
        scopes: info.scopes.clone(),
        freedom: info.freedom,
        evidence: info.evidence.map(str::to_owned),
        layers: place.from_outside().filter_map(layer).collect(),
        generation: row(place).map_or(0, |row| row.generation),
        value: resolved.value,
        source: resolved.source,
    }
}

pub fn unknown(key: &str, level: Level) -> Error {
    let whose = match level {
        Level::Platform => "",
        Level::Organization => " that an organization has",
        Level::Project => " that a project has",
    };
    SETTING_UNKNOWN.error(format!("there is no setting {key}{whose}"))
}

pub fn invalid(info: &SettingInfo, value: &Value, why: &str) -> Error {
    SETTING_INVALID
        .error(format!("{value} is no value for {}: {why}. {}", info.key, info.about))
        .with_details(
            json!({"key": info.key, "schema": info.schema, "default": info.default, "scopes": info.scopes}),
        )
}
