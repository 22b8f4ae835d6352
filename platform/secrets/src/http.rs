//! Routes and wire types of the secrets domain.
//!
//! Two types keep values out of sight on their way through: [`ValueBody`] reads one without ever quoting it in an
//! error (a parse error is logged and answered), and [`ShownOnce`] is the only thing in the product that writes one.

use axum::http::StatusCode;
use iam::{ARCHIVED, NAME_TAKEN, ProjectId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use types::{Name, Secret};
use web::{
    Call, Endpoint, Nothing, Operation, Page, PageLimit, Reply, SECRET_ALREADY_DELIVERED, on, page_limit,
};

use crate::Secrets;
use crate::manage::{NewSecret, SecretFilter};
use crate::model::*;
use crate::policy::*;

pub const TAGS: &[(&str, &str)] =
    &[("secrets", "Values a project keeps sealed and hands to its workloads for one purpose.")];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProjectPath {
    /// The project.
    project_id: ProjectId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecretPath {
    /// The project.
    project_id: ProjectId,
    /// The secret.
    secret_id: SecretId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecretCreateBody {
    name: Name,
    purpose: Purpose,
    value: ValueBody,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecretGenerateBody {
    name: Name,
    purpose: Purpose,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecretRotateBody {
    value: ValueBody,
}

/// A value on its way in.
struct ValueBody(Secret);

impl<'de> Deserialize<'de> for ValueBody {
    /// Through a JSON value, because serde's own "invalid type" error quotes what it found.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What goes wrong before there is a value (it is missing, or no JSON) is described by kind and place only.
        match Value::deserialize(deserializer)? {
            Value::String(text) if !text.is_empty() => Ok(Self(Secret::new(text))),
            Value::String(_) => Err(D::Error::custom("the value is empty")),
            _ => Err(D::Error::custom("the value has to be a string")),
        }
    }
}

impl JsonSchema for ValueBody {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SecretValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The secret text. It is sealed at once and never returned.",
            "minLength": 1,
            "writeOnly": true,
            "examples": ["correct horse battery staple"],
        })
    }
}

/// A value on its way out, in the one reply that shows it.
struct ShownOnce(Secret);

impl Serialize for ShownOnce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl JsonSchema for ShownOnce {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SecretValueShownOnce".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The generated text. This reply is the only one that shows it.",
            "readOnly": true,
        })
    }
}

/// A secret that was just made, with its value.
#[derive(Serialize, JsonSchema)]
struct GeneratedSecret {
    secret: SecretInfo,
    value: ShownOnce,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SecretListQuery {
    /// Only secrets in this state.
    state: Option<SecretState>,
    /// Only the secret with this name.
    name: Option<Name>,
    /// Only secrets for this purpose.
    purpose: Option<Purpose>,
    /// Most items to return.
    limit: Option<PageLimit>,
    /// Where to go on, from `next_cursor`.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeliveryListQuery {
    /// Most items to return.
    limit: Option<PageLimit>,
    /// Where to go on, from `next_cursor`.
    cursor: Option<String>,
}

fn secret_reply(info: SecretInfo) -> Reply<SecretInfo> {
    let generation = info.generation;
    Reply::new(info).with_generation(generation)
}

pub fn endpoints(secrets: &Secrets) -> Vec<Endpoint> {
    let mut all = storing_endpoints(secrets);
    all.extend(reading_endpoints(secrets));
    all.extend(ending_endpoints(secrets));
    all
}

fn storing_endpoints(secrets: &Secrets) -> Vec<Endpoint> {
    vec![
        Operation::<ProjectPath, Nothing, SecretCreateBody>::post("/api/v1/projects/{project_id}/secrets", "secrets.create")
            .about(
                "Store a secret",
                "The value is sealed at once and never returned: workloads are given it for the purpose named here. \
                 The name must be unique among the project's secrets that are not retired.",
            )
            .permission::<SecretCreate>()
            .errors([&NAME_TAKEN, &ARCHIVED, &SECRET_VALUE_SIZE, &KEY_ENCRYPTION_UNAVAILABLE])
            .etag()
            .cli("secret create")
            .example(|| {
                let body = json!({"name": "registry password", "purpose": "registry_pull", "value": "correct horse battery staple"});
                (body, secret_example("active", 1))
            })
            .handler(on!(secrets, |call: Call<ProjectPath, Nothing, SecretCreateBody>| {
                let (holder, body) = (Holder::Project(call.path.project_id), call.body);
                let new = NewSecret { holder, name: body.name, purpose: body.purpose, value: body.value.0 };
                secrets.create(&call.context, new).await.map(secret_reply)
            })),
        Operation::<ProjectPath, Nothing, SecretGenerateBody>::post(
            "/api/v1/projects/{project_id}/secrets/generate",
            "secrets.generate",
        )
        .about(
            "Generate a secret",
            "The server makes a random value and shows it in this reply only. A repeated request with the same \
             Idempotency-Key gets 409 `secret_already_delivered` with the secret's id.",
        )
        .permission::<SecretCreate>()
        .errors([&NAME_TAKEN, &ARCHIVED, &SECRET_ALREADY_DELIVERED, &KEY_ENCRYPTION_UNAVAILABLE])
        .cli("secret generate")
        .example(|| {
            let reply = json!({"secret": secret_example("active", 1), "value": "q2V1Yk9mZXJ0b2xkZXhhbXBsZXZhbHVlbm90cmVhbA"});
            (json!({"name": "registry password", "purpose": "registry_pull"}), reply)
        })
        .handler(on!(secrets, |call: Call<ProjectPath, Nothing, SecretGenerateBody>| {
            let (holder, body) = (Holder::Project(call.path.project_id), call.body);
            let made = secrets.generate(&call.context, holder, body.name, body.purpose).await?;
            Ok(Reply::new(GeneratedSecret { secret: made.info, value: ShownOnce(made.value) }))
        })),
    ]
}

fn reading_endpoints(secrets: &Secrets) -> Vec<Endpoint> {
    vec![
        Operation::<ProjectPath, SecretListQuery>::get(
            "/api/v1/projects/{project_id}/secrets",
            "secrets.list",
        )
        .about("List a project's secrets", "Without their values, in order of creation.")
        .permission::<SecretList>()
        .errors([&::events::INVALID_CURSOR])
        .cli("secret list")
        .mcp()
        .handler(on!(secrets, |call: Call<ProjectPath, SecretListQuery>| {
            let filter = SecretFilter {
                state: call.query.state,
                name: call.query.name,
                purpose: call.query.purpose,
                limit: page_limit(call.query.limit, &secrets.settings),
                cursor: call.query.cursor,
            };
            let holder = Holder::Project(call.path.project_id);
            let page: Page<SecretInfo> = secrets.list(&call.context, holder, &filter).await?;
            Ok(Reply::new(page))
        })),
        Operation::<SecretPath>::get("/api/v1/projects/{project_id}/secrets/{secret_id}", "secrets.get")
            .about("Read a secret's metadata", "Everything but its value. Retired secrets stay readable.")
            .permission::<SecretRead>()
            .etag()
            .cli("secret get")
            .mcp()
            .example(|| (json!(null), secret_example("active", 1)))
            .handler(on!(secrets, |call: Call<SecretPath>| {
                let holder = Holder::Project(call.path.project_id);
                secrets.get(&call.context, holder, call.path.secret_id).await.map(secret_reply)
            })),
        Operation::<SecretPath, DeliveryListQuery>::get(
            "/api/v1/projects/{project_id}/secrets/{secret_id}/deliveries",
            "secrets.deliveries",
        )
        .about("List a secret's deliveries", "Who was given which version, for what, and when; in order.")
        .permission::<DeliveryList>()
        .errors([&::events::INVALID_CURSOR])
        .cli("secret deliveries")
        .mcp()
        .handler(on!(secrets, |call: Call<SecretPath, DeliveryListQuery>| {
            let (holder, id) = (Holder::Project(call.path.project_id), call.path.secret_id);
            let limit = page_limit(call.query.limit, &secrets.settings);
            let cursor = call.query.cursor.as_deref();
            let page: Page<Delivery> =
                secrets.delivery_list(&call.context, holder, id, limit, cursor).await?;
            Ok(Reply::new(page))
        })),
    ]
}

fn ending_endpoints(secrets: &Secrets) -> Vec<Endpoint> {
    vec![
        Operation::<SecretPath, Nothing, SecretRotateBody>::post(
            "/api/v1/projects/{project_id}/secrets/{secret_id}/rotate",
            "secrets.rotate",
        )
        .about(
            "Rotate a secret",
            "Stores a new value as the next version. The version before can still be delivered for the overlap \
             (setting `secrets.rotation_overlap_seconds`), then it is destroyed.",
        )
        .permission::<SecretRotate>()
        .success(StatusCode::OK)
        .errors([&SECRET_RETIRED, &SECRET_VALUE_SIZE, &KEY_ENCRYPTION_UNAVAILABLE])
        .etag()
        .cli("secret rotate")
        .example(|| (json!({"value": "another horse"}), secret_example("active", 2)))
        .handler(on!(secrets, |call: Call<SecretPath, Nothing, SecretRotateBody>| {
            let (holder, id) = (Holder::Project(call.path.project_id), call.path.secret_id);
            let value = call.body.value.0;
            secrets.rotate(&call.context, holder, id, &value, call.if_match).await.map(secret_reply)
        })),
        Operation::<SecretPath>::post_empty(
            "/api/v1/projects/{project_id}/secrets/{secret_id}/retire",
            "secrets.retire",
        )
        .about("Retire a secret", "Ends it for good: its value is destroyed and its name becomes free.")
        .permission::<SecretRetire>()
        .etag()
        .cli("secret retire")
        .example(|| (json!(null), secret_example("retired", 1)))
        .handler(on!(secrets, |call: Call<SecretPath>| {
            let (holder, id) = (Holder::Project(call.path.project_id), call.path.secret_id);
            secrets.retire(&call.context, holder, id, call.if_match).await.map(secret_reply)
        })),
    ]
}

fn secret_example(state: &str, version: i32) -> Value {
    json!({
        "id": "sec_01jcqz7d4rw1v5b8g3k0n6x2fe", "org_id": "org_01jcqz3k8vf4t9x2m7n5p6r8sd",
        "project_id": "prj_01jcqz5h2me8s0a6d4w9y3t7kc", "name": "registry password", "material": "value",
        "purpose": "registry_pull", "owner": {"kind": "service_account", "id": "key_01jcqz6a0pd9t3r5m8w2v7y4hc"},
        "version": version, "state": state, "state_since": "2026-11-15T08:10:00Z", "generation": version,
        "created_at": "2026-11-15T08:10:00Z", "updated_at": "2026-11-15T08:10:00Z",
    })
}
