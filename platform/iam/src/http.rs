//! Routes and wire types of the identity domain.

mod access;
mod people;

use authz::Resource;
use axum::http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use types::{Name, Result, Timestamp};
use web::{
    Call, Endpoint, Nothing, Operation, Page, PageLimit, RateClass, Reply, WaitSeconds, on, page_limit,
};

use crate::Iam;
use crate::model::*;
use crate::organizations::OrganizationFilter;
use crate::policy::*;
use crate::projects::ProjectFilter;

pub const TAGS: &[(&str, &str)] = &[
    ("organizations", "Tenants: who owns projects, people, keys and money."),
    ("projects", "Where an organization's work lives."),
    ("people", "Who can sign in."),
    ("members", "Who belongs to an organization."),
    ("owners", "Who an organization belongs to."),
    ("grants", "Who holds which role in an organization and its projects."),
    ("platform_grants", "Who holds which role on the platform itself."),
    ("invitations", "Offers of a role to people who do not belong to the organization yet."),
    ("keys", "Credentials for programs, which reach as far as you let them."),
    ("sessions", "Signing in."),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OrganizationPath {
    /// The organization.
    org_id: OrganizationId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProjectPath {
    /// The project.
    project_id: ProjectId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OrganizationCreateBody {
    name: Name,
    /// Free-form key/value pairs.
    #[serde(default)]
    labels: LabelsBody,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProjectCreateBody {
    name: Name,
    /// Free-form key/value pairs.
    #[serde(default)]
    labels: LabelsBody,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RenameBody {
    name: Name,
}

/// Labels as callers may set them: few, short, and outside our own `gpuaas.` prefix.
#[derive(Default, Deserialize)]
#[serde(try_from = "Labels")]
struct LabelsBody(Labels);

impl JsonSchema for LabelsBody {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Labels".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "Free-form key/value pairs. Keys that begin with `gpuaas.` are the platform's.",
            "maxProperties": LABELS_MAX,
            "propertyNames": {"minLength": 1, "maxLength": LABEL_CHARS_MAX},
            "additionalProperties": {"type": "string", "maxLength": LABEL_CHARS_MAX},
        })
    }
}

const LABELS_MAX: usize = 32; // fixed: part of the wire format
const LABEL_CHARS_MAX: usize = 63; // fixed: part of the wire format

impl TryFrom<Labels> for LabelsBody {
    type Error = String;

    fn try_from(labels: Labels) -> Result<Self, String> {
        if labels.len() > LABELS_MAX {
            return Err(format!("at most {LABELS_MAX} labels"));
        }
        for (key, value) in &labels {
            if key.is_empty()
                || key.chars().count() > LABEL_CHARS_MAX
                || value.chars().count() > LABEL_CHARS_MAX
            {
                return Err(format!(
                    "label keys have 1 to {LABEL_CHARS_MAX} characters, values at most {LABEL_CHARS_MAX}"
                ));
            }
            if key.starts_with("gpuaas.") {
                return Err("labels that begin with 'gpuaas.' are set by the platform".to_owned());
            }
            if key.chars().chain(value.chars()).any(types::text::is_forbidden) {
                return Err("labels cannot contain control, direction or invisible characters".to_owned());
            }
        }
        Ok(Self(labels))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OrganizationListQuery {
    /// Only organizations in this state.
    state: Option<OrganizationState>,
    /// Only the organization with this name.
    name: Option<Name>,
    /// Most items to return.
    limit: Option<PageLimit>,
    /// Where to go on, from `next_cursor`.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProjectListQuery {
    /// Only projects in this state.
    state: Option<ProjectState>,
    /// Only the project with this name.
    name: Option<Name>,
    /// Most items to return.
    limit: Option<PageLimit>,
    /// Where to go on, from `next_cursor`.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OrganizationGetQuery {
    /// Answer when the organization reaches this state, or when the time is up.
    wait: Option<OrganizationState>,
    /// How long to wait, in seconds.
    wait_seconds: Option<WaitSeconds>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SessionCreateBody {
    /// The one-time code from the sign-in link.
    #[schemars(length(min = 1, max = 200))]
    code: String,
}

/// Who is signed in.
#[derive(Serialize, JsonSchema)]
struct Session {
    /// The person or program that is calling.
    actor: authz::Actor,
    /// When the session ends; absent for API keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    /// The organization of the credential, if it belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    org_id: Option<OrganizationId>,
}

pub fn endpoints(iam: &Iam) -> Vec<Endpoint> {
    let mut all = organization_endpoints(iam);
    all.extend(project_endpoints(iam));
    all.extend(session_endpoints(iam));
    all.extend(people::endpoints(iam));
    all.extend(access::endpoints(iam));
    all
}

fn organization_reply(organization: Organization) -> Reply<Organization> {
    let generation = organization.generation;
    Reply::new(organization).with_generation(generation)
}

fn project_reply(project: Project) -> Reply<Project> {
    let generation = project.generation;
    Reply::new(project).with_generation(generation)
}

fn organization_endpoints(iam: &Iam) -> Vec<Endpoint> {
    vec![
        Operation::<Nothing, Nothing, OrganizationCreateBody>::post("/api/v1/orgs", "organizations.create")
            .about("Create an organization", "Makes a tenant. Its name must be unique among organizations that are not archived.")
            .permission::<OrganizationCreate>()
            .errors([&NAME_TAKEN])
            .etag()
            .cli("org create")
            .example(|| (json!({"name": "Acme Research"}), organization_example("active")))
            .handler(on!(iam, |call: Call<Nothing, Nothing, OrganizationCreateBody>| {
                iam.organization_create(&call.context, call.body.name, call.body.labels.0).await.map(organization_reply)
            })),
        Operation::<Nothing, OrganizationListQuery>::get("/api/v1/orgs", "organizations.list")
            .about("List organizations", "In order of creation. Tenants see their own, operators see all.")
            .permission::<OrganizationList>()
            .errors([&events::INVALID_CURSOR])
            .cli("org list")
            .mcp()
            .handler(on!(iam, |call: Call<Nothing, OrganizationListQuery>| {
                let filter = OrganizationFilter {
                    state: call.query.state,
                    name: call.query.name,
                    limit: page_limit(call.query.limit, &iam.settings),
                    cursor: call.query.cursor,
                };
                iam.organization_list(&call.context, call.home, &filter).await.map(Reply::new)
            })),
        Operation::<OrganizationPath, OrganizationGetQuery>::get("/api/v1/orgs/{org_id}", "organizations.get")
            .about("Read an organization", "With `wait`, answers when it reaches that state or the time is up, whichever is first.")
            .permission::<OrganizationRead>()
            .etag()
            .cli("org get")
            .mcp()
            .example(|| (json!(null), organization_example("active")))
            .handler(on!(iam, |call: Call<OrganizationPath, OrganizationGetQuery>| organization_get(&iam, call).await)),
        Operation::<OrganizationPath>::get("/api/v1/orgs/{org_id}/summary", "organizations.summary")
            .about("Read an organization in numbers", "Counted from events; `as_of` tells how fresh the numbers are.")
            .permission::<OrganizationRead>()
            .cli("org summary")
            .mcp()
            .handler(on!(iam, |call: Call<OrganizationPath>| {
                iam.organization_summary(&call.context, call.path.org_id).await.map(Reply::new)
            })),
        Operation::<OrganizationPath, Nothing, RenameBody>::patch("/api/v1/orgs/{org_id}", "organizations.rename")
            .about("Rename an organization", "Send the ETag you read as `If-Match` to be sure that nobody changed it since.")
            .permission::<OrganizationRename>()
            .errors([&NAME_TAKEN, &ARCHIVED])
            .etag()
            .cli("org rename")
            .example(|| (json!({"name": "Acme Research"}), organization_example("active")))
            .handler(on!(iam, |call: Call<OrganizationPath, Nothing, RenameBody>| {
                iam.organization_rename(&call.context, call.path.org_id, call.body.name, call.if_match)
                    .await
                    .map(organization_reply)
            })),
        Operation::<OrganizationPath>::post_empty("/api/v1/orgs/{org_id}/archive", "organizations.archive")
            .about(
                "Archive an organization",
                "Ends it for good: its projects are archived, then itself; its name becomes free. Nothing is deleted. \
                 Follow it with `GET …?wait=archived`.",
            )
            .permission::<OrganizationArchive>()
            .etag()
            .success(StatusCode::ACCEPTED)
            .cli("org archive")
            .example(|| (json!(null), organization_example("archiving")))
            .handler(on!(iam, |call: Call<OrganizationPath>| {
                iam.organization_archive(&call.context, call.path.org_id, call.if_match).await.map(organization_reply)
            })),
    ]
}

async fn organization_get(
    iam: &Iam,
    call: Call<OrganizationPath, OrganizationGetQuery>,
) -> Result<Reply<Organization>> {
    let id = call.path.org_id;
    let Some(wanted) = call.query.wait else {
        return iam.organization_get(&call.context, id).await.map(organization_reply);
    };
    let patience = web::patience(call.query.wait_seconds, &iam.settings);
    let subject = id.to_string();
    let is_reached = |organization: &Organization| organization.state == wanted;
    // Boxed: large, and not there while the request only waits.
    let look = || Box::pin(call.seat.look(iam.organization_get(&call.context, id), is_reached));
    let organization = ::events::wait_until(&iam.feed, &subject, patience, look, is_reached).await?;
    Ok(organization_reply(organization))
}

fn project_endpoints(iam: &Iam) -> Vec<Endpoint> {
    vec![
        Operation::<OrganizationPath, Nothing, ProjectCreateBody>::post(
            "/api/v1/orgs/{org_id}/projects",
            "projects.create",
        )
        .about(
            "Create a project",
            "Its name must be unique among the organization's projects that are not archived.",
        )
        .permission::<ProjectCreate>()
        .errors([&NAME_TAKEN, &ARCHIVED])
        .etag()
        .cli("project create")
        .mcp()
        .example(|| (json!({"name": "training"}), project_example("active")))
        .handler(on!(iam, |call: Call<OrganizationPath, Nothing, ProjectCreateBody>| {
            iam.project_create(&call.context, call.path.org_id, call.body.name, call.body.labels.0)
                .await
                .map(project_reply)
        })),
        Operation::<OrganizationPath, ProjectListQuery>::get(
            "/api/v1/orgs/{org_id}/projects",
            "projects.list",
        )
        .about("List an organization's projects", "In order of creation.")
        .permission::<ProjectList>()
        .errors([&events::INVALID_CURSOR])
        .cli("project list")
        .mcp()
        .handler(on!(iam, |call: Call<OrganizationPath, ProjectListQuery>| {
            let filter = ProjectFilter {
                state: call.query.state,
                name: call.query.name,
                limit: page_limit(call.query.limit, &iam.settings),
                cursor: call.query.cursor,
            };
            let page: Page<Project> = iam.project_list(&call.context, call.path.org_id, &filter).await?;
            Ok(Reply::new(page))
        })),
        Operation::<ProjectPath>::get("/api/v1/projects/{project_id}", "projects.get")
            .about("Read a project", "Archived projects stay readable.")
            .permission::<ProjectRead>()
            .etag()
            .cli("project get")
            .mcp()
            .example(|| (json!(null), project_example("active")))
            .handler(on!(iam, |call: Call<ProjectPath>| {
                iam.project_get(&call.context, call.path.project_id).await.map(project_reply)
            })),
        Operation::<ProjectPath, Nothing, RenameBody>::patch(
            "/api/v1/projects/{project_id}",
            "projects.rename",
        )
        .about(
            "Rename a project",
            "Send the ETag you read as `If-Match` to be sure that nobody changed it since.",
        )
        .permission::<ProjectRename>()
        .errors([&NAME_TAKEN, &ARCHIVED])
        .etag()
        .cli("project rename")
        .example(|| (json!({"name": "training"}), project_example("active")))
        .handler(on!(iam, |call: Call<ProjectPath, Nothing, RenameBody>| {
            iam.project_rename(&call.context, call.path.project_id, call.body.name, call.if_match)
                .await
                .map(project_reply)
        })),
        Operation::<ProjectPath>::post_empty("/api/v1/projects/{project_id}/archive", "projects.archive")
            .about("Archive a project", "Ends it for good and frees its name. Nothing is deleted.")
            .permission::<ProjectArchive>()
            .etag()
            .cli("project archive")
            .example(|| (json!(null), project_example("archived")))
            .handler(on!(iam, |call: Call<ProjectPath>| {
                iam.project_archive(&call.context, call.path.project_id, call.if_match)
                    .await
                    .map(project_reply)
            })),
    ]
}

fn session_endpoints(iam: &Iam) -> Vec<Endpoint> {
    vec![
        Operation::<Nothing, Nothing, SessionCreateBody>::post("/api/v1/sessions", "sessions.create")
            .about(
                "Sign in with a one-time link",
                "Trades the code of a sign-in link for a browser session, given as a cookie.",
            )
            .rate(RateClass::Guess)
            .errors([&SIGN_IN_LINK_INVALID, &web::SECRET_ALREADY_DELIVERED])
            .example(|| {
                let person = json!({"kind": "user", "id": "usr_01jcqz3k8vf4t9x2m7n5p6r8sd"});
                (
                    json!({"code": "gpuaas_sic_…"}),
                    json!({"actor": person, "expires_at": "2026-11-15T20:00:00Z"}),
                )
            })
            .handler(on!(iam, |call: Call<Nothing, Nothing, SessionCreateBody>| Box::pin(session_create(
                &iam, call
            ))
            .await)),
        Operation::<Nothing>::get("/api/v1/session", "sessions.current")
            .about("Who am I?", "The caller as the server sees it.")
            .permission::<SelfRead>()
            .cli("whoami")
            .mcp()
            .handler(on!(iam, |call: Call| {
                authz::authorize::<SelfRead>(&*iam.decider, &call.context, Resource::platform("self"))?;
                let org_id = call.home.map(OrganizationId::from_uuid);
                Ok(Reply::new(Session { actor: call.context.actor, expires_at: call.expires_at, org_id }))
            })),
    ]
}

async fn session_create(
    iam: &Iam,
    call: Call<Nothing, Nothing, SessionCreateBody>,
) -> Result<Reply<Session>> {
    let (signed_in, token) = iam.sign_in(&call.context, &call.body.code).await?;
    let mut actor = authz::Actor::new(authz::ActorKind::User, signed_in.person_id.to_string());
    actor.credential = Some(signed_in.session_id.to_string());
    let session = Session { actor, expires_at: Some(signed_in.expires_at), org_id: None };
    let cookie = HeaderValue::try_from(iam.session_cookie(&token))
        .map_err(|error| types::Error::from(db::DbError::Unexpected(error.to_string())))?;
    Ok(Reply::new(session).with_header(header::SET_COOKIE, cookie))
}

fn organization_example(state: &str) -> serde_json::Value {
    json!({
        "id": "org_01jcqz3k8vf4t9x2m7n5p6r8sd", "name": "Acme Research", "labels": {}, "state": state,
        "state_since": "2026-11-15T08:00:00Z", "generation": 1,
        "created_at": "2026-11-15T08:00:00Z", "updated_at": "2026-11-15T08:00:00Z",
    })
}

fn project_example(state: &str) -> serde_json::Value {
    json!({
        "id": "prj_01jcqz5h2me8s0a6d4w9y3t7kc", "org_id": "org_01jcqz3k8vf4t9x2m7n5p6r8sd", "name": "training", "labels": {},
        "state": state, "state_since": "2026-11-15T08:05:00Z", "generation": 1,
        "created_at": "2026-11-15T08:05:00Z", "updated_at": "2026-11-15T08:05:00Z",
    })
}
