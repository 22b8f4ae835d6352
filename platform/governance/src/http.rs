//! Routes and wire types of the governance domain.

use iam::{OrganizationId, ProjectId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use types::Text;
use web::{Call, Endpoint, Nothing, Operation, Page, Reply, on};

use crate::Governance;
use crate::model::{EffectiveSetting, Holder, SETTING_INVALID, SETTING_NEEDS_EVIDENCE, SETTING_UNKNOWN};
use crate::policy::{SettingClear, SettingRead, SettingSet};

pub const TAGS: &[(&str, &str)] = &[
    ("settings", "Limits, rates and retentions of the platform."),
    ("organization_settings", "What an organization may set for itself."),
    ("project_settings", "What a project may set for itself."),
];

/// Whose settings a path is about.
trait OfHolder: serde::de::DeserializeOwned + JsonSchema + Send + 'static {
    fn holder(&self) -> Holder;
}

#[derive(Deserialize, JsonSchema)]
struct PlatformPath {}

#[derive(Deserialize, JsonSchema)]
struct OrganizationPath {
    /// The organization.
    org_id: OrganizationId,
}

#[derive(Deserialize, JsonSchema)]
struct ProjectPath {
    /// The project.
    project_id: ProjectId,
}

impl OfHolder for PlatformPath {
    fn holder(&self) -> Holder {
        Holder::Platform
    }
}

impl OfHolder for OrganizationPath {
    fn holder(&self) -> Holder {
        Holder::Organization(self.org_id)
    }
}

impl OfHolder for ProjectPath {
    fn holder(&self) -> Holder {
        Holder::Project(self.project_id)
    }
}

#[derive(Deserialize, JsonSchema)]
struct SettingPath<H> {
    #[serde(flatten)]
    of: H,
    /// The setting's key.
    #[schemars(example = "secrets.rotation_overlap_seconds")]
    setting: Text<100>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SettingBody {
    /// The value, of the type that the setting's schema says.
    value: Value,
}

/// What the four operations on one holder's settings are called, and where they are.
struct Names {
    list: Name,
    get: Name,
    set: Name,
    clear: Name,
}

/// Path, id, command and title of an operation.
type Name = (&'static str, &'static str, &'static str, &'static str);

const PLATFORM: Names = Names {
    list: ("/api/v1/settings", "settings.list", "settings list", "List the platform's settings"),
    get: ("/api/v1/settings/{setting}", "settings.get", "settings get", "Read a setting of the platform"),
    set: ("/api/v1/settings/{setting}", "settings.set", "settings set", "Set a setting of the platform"),
    clear: (
        "/api/v1/settings/{setting}/clear",
        "settings.clear",
        "settings clear",
        "Take a setting of the platform back",
    ),
};

const ORGANIZATION: Names = Names {
    list: (
        "/api/v1/orgs/{org_id}/settings",
        "organization_settings.list",
        "org settings list",
        "List an organization's settings",
    ),
    get: (
        "/api/v1/orgs/{org_id}/settings/{setting}",
        "organization_settings.get",
        "org settings get",
        "Read a setting of an organization",
    ),
    set: (
        "/api/v1/orgs/{org_id}/settings/{setting}",
        "organization_settings.set",
        "org settings set",
        "Set a setting of an organization",
    ),
    clear: (
        "/api/v1/orgs/{org_id}/settings/{setting}/clear",
        "organization_settings.clear",
        "org settings clear",
        "Take a setting of an organization back",
    ),
};

const PROJECT: Names = Names {
    list: (
        "/api/v1/projects/{project_id}/settings",
        "project_settings.list",
        "project settings list",
        "List a project's settings",
    ),
    get: (
        "/api/v1/projects/{project_id}/settings/{setting}",
        "project_settings.get",
        "project settings get",
        "Read a setting of a project",
    ),
    set: (
        "/api/v1/projects/{project_id}/settings/{setting}",
        "project_settings.set",
        "project settings set",
        "Set a setting of a project",
    ),
    clear: (
        "/api/v1/projects/{project_id}/settings/{setting}/clear",
        "project_settings.clear",
        "project settings clear",
        "Take a setting of a project back",
    ),
};

pub fn endpoints(governance: &Governance) -> Vec<Endpoint> {
    let mut all = holder_endpoints::<PlatformPath>(governance, PLATFORM);
    all.extend(holder_endpoints::<OrganizationPath>(governance, ORGANIZATION));
    all.extend(holder_endpoints::<ProjectPath>(governance, PROJECT));
    all
}

fn holder_endpoints<H: OfHolder>(governance: &Governance, names: Names) -> Vec<Endpoint> {
    vec![
        list_endpoint::<H>(governance, names.list),
        get_endpoint::<H>(governance, names.get),
        set_endpoint::<H>(governance, names.set),
        clear_endpoint::<H>(governance, names.clear),
    ]
}

fn list_endpoint<H: OfHolder>(governance: &Governance, (path, id, cli, title): Name) -> Endpoint {
    Operation::<H>::get(path, id)
        .about(
            title,
            "All that can be set there, by key, each with its type, bounds and default, the value in force and where \
             that comes from. `layers` shows what is set, from the platform inward.",
        )
        .permission::<SettingRead>()
        .cli(cli)
        .mcp()
        .handler(on!(governance, |call: Call<H>| {
            let items = governance.setting_list(&call.context, call.path.holder()).await?;
            Ok(Reply::new(Page { items, next_cursor: None }))
        }))
}

fn get_endpoint<H: OfHolder>(governance: &Governance, (path, id, cli, title): Name) -> Endpoint {
    Operation::<SettingPath<H>>::get(path, id)
        .about(title, "The value in force, where it comes from, and what is set around it.")
        .permission::<SettingRead>()
        .errors([&SETTING_UNKNOWN])
        .etag()
        .cli(cli)
        .mcp()
        .example(|| (json!(null), example()))
        .handler(on!(governance, |call: Call<SettingPath<H>>| {
            let (holder, key) = (call.path.of.holder(), call.path.setting.into_string());
            governance.setting_get(&call.context, holder, &key).await.map(reply)
        }))
}

fn set_endpoint<H: OfHolder>(governance: &Governance, (path, id, cli, title): Name) -> Endpoint {
    Operation::<SettingPath<H>, Nothing, SettingBody>::put(path, id)
        .about(
            title,
            "Takes effect on every replica without a restart. Send the ETag you read as `If-Match` to be sure that \
             nobody changed it since; `\"0\"` means that it was never set here.",
        )
        .permission::<SettingSet>()
        .errors([&SETTING_UNKNOWN, &SETTING_INVALID, &SETTING_NEEDS_EVIDENCE, &iam::ARCHIVED])
        .etag()
        .cli(cli)
        .example(|| (json!({"value": 3600}), example()))
        .handler(on!(governance, |call: Call<SettingPath<H>, Nothing, SettingBody>| {
            let (holder, key) = (call.path.of.holder(), call.path.setting.into_string());
            let set = governance.setting_set(&call.context, holder, &key, call.body.value, call.if_match);
            Box::pin(set).await.map(reply)
        }))
}

fn clear_endpoint<H: OfHolder>(governance: &Governance, (path, id, cli, title): Name) -> Endpoint {
    Operation::<SettingPath<H>>::post_empty(path, id)
        .about(title, "The value outside, or the default, holds again. Nothing is lost: the audit log has what was set.")
        .permission::<SettingClear>()
        .errors([&SETTING_UNKNOWN, &iam::ARCHIVED])
        .etag()
        .cli(cli)
        .example(|| (json!(null), example()))
        .handler(on!(governance, |call: Call<SettingPath<H>>| {
            let (holder, key) = (call.path.of.holder(), call.path.setting.into_string());
            let cleared = governance.setting_clear(&call.context, holder, &key, call.if_match);
            Box::pin(cleared).await.map(reply)
        }))
}

fn reply(setting: EffectiveSetting) -> Reply<EffectiveSetting> {
    let generation = setting.generation;
    Reply::new(setting).with_generation(generation)
}

fn example() -> Value {
    json!({
        "key": "secrets.rotation_overlap_seconds",
        "about": "How long the version before a rotation can still be delivered, in seconds.",
        "schema": {"type": "integer", "format": "uint64", "minimum": 0, "maximum": 3_153_600_000_u64},
        "default": 86_400,
        "scopes": ["platform", "organization", "project"],
        "freedom": "any",
        "value": 3600,
        "source": "organization",
        "layers": [{
            "scope": "organization",
            "value": 3600,
            "set_by": {"kind": "user", "id": "usr_01jcqz3k8vf4t9x2m7n5p6r8sd"},
            "set_at": "2026-11-15T20:00:00Z",
        }],
        "generation": 1,
    })
}
