//! Routes of API keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use types::{Name, Result, Text, Timestamp};
use web::{Call, Endpoint, Nothing, Operation, PageLimit, Reply, on, page_limit};

use crate::Iam;
use crate::keys::NewKey;
use crate::model::*;
use crate::policy::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyPath {
    /// The API key, by id.
    key_id: KeyId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyListQuery {
    /// Most items to return.
    limit: Option<PageLimit>,
    /// Where to go on, from `next_cursor`.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyCreateBody {
    name: Name,
    /// The only organization it shall reach. Without it, all you can reach.
    org_id: Option<OrganizationId>,
    /// The only project it shall reach; wants `org_id` as well.
    project_id: Option<ProjectId>,
    /// The only actions it shall be good for, by name (`iam.project.read`). Without it, all you may do.
    #[schemars(length(min = 1, max = 100))]
    actions: Option<Vec<Text<100>>>,
    /// When it ends. At most `iam.api_key_seconds_max` from now, which is also what you get without it.
    expires_at: Option<Timestamp>,
}

/// A new API key, with the key itself.
#[derive(Serialize, JsonSchema)]
struct KeyMade {
    #[serde(flatten)]
    key: ApiKey,
    /// Send it as `Authorization: Bearer …`. It is shown this once.
    secret: String,
}

pub fn endpoints(iam: &Iam) -> Vec<Endpoint> {
    vec![
        Operation::<Nothing, Nothing, KeyCreateBody>::post("/api/v1/keys", "keys.create")
            .about(
                "Make an API key",
                "It gives what you hold, as far as you let it. The reply has the key itself, which is shown this once.",
            )
            .permission::<KeyCreate>()
            .errors([&KEY_TOO_WIDE, &KEY_INVALID, &web::SECRET_ALREADY_DELIVERED])
            .etag()
            .cli("key create")
            .example(|| (json!({"name": "build server"}), key_example(true)))
            .handler(on!(iam, |call: Call<Nothing, Nothing, KeyCreateBody>| key_create(&iam, call).await)),
        Operation::<Nothing, KeyListQuery>::get("/api/v1/keys", "keys.list")
            .about("List your API keys", "With what each reaches; never the keys themselves.")
            .permission::<KeyList>()
            .errors([&events::INVALID_CURSOR])
            .cli("key list")
            .handler(on!(iam, |call: Call<Nothing, KeyListQuery>| {
                let limit = page_limit(call.query.limit, &iam.settings);
                let person = caller(&call.context)?;
                iam.key_list(&call.context, person, limit, call.query.cursor.as_deref()).await.map(Reply::new)
            })),
        Operation::<KeyPath>::post_empty("/api/v1/keys/{key_id}/revoke", "keys.revoke")
            .about("Revoke one of your API keys", "It stops working within a second, everywhere.")
            .permission::<KeyRevoke>()
            .etag()
            .cli("key revoke")
            .example(|| (json!(null), key_example(false)))
            .handler(on!(iam, |call: Call<KeyPath>| {
                let person = caller(&call.context)?;
                let key = iam.key_revoke(&call.context, person, call.path.key_id).await?;
                let generation = key.generation;
                Ok(Reply::new(key).with_generation(generation))
            })),
    ]
}

async fn key_create(iam: &Iam, call: Call<Nothing, Nothing, KeyCreateBody>) -> Result<Reply<KeyMade>> {
    let body = call.body;
    let new = NewKey {
        person_id: caller(&call.context)?,
        name: body.name,
        org_id: body.org_id,
        project_id: body.project_id,
        actions: body.actions.map(|actions| actions.into_iter().map(Text::into_string).collect()),
        expires_at: body.expires_at,
    };
    // A key made with a key ends no later than that; one made in a session outlives it.
    let made_with_key = call.context.actor.credential.as_ref().is_some_and(|id| id.parse::<KeyId>().is_ok());
    let until = call.expires_at.filter(|_| made_with_key);
    let (key, secret) = iam.key_create(&call.context, new, until).await?;
    let generation = key.generation;
    Ok(Reply::new(KeyMade { key, secret: secret.expose().to_owned() }).with_generation(generation))
}

/// The person who is calling.
fn caller(context: &authz::Context) -> Result<PersonId> {
    let id = context.actor.subject.id.parse();
    id.map_err(|_| authz::FORBIDDEN.error("only people have keys of their own"))
}

fn key_example(with_secret: bool) -> serde_json::Value {
    let mut example = json!({
        "id": "key_01jcqz5h2me8s0a6d4w9y3t7kc", "name": "build server", "person_id": "usr_01jcqz3k8vf4t9x2m7n5p6r8sd",
        "generation": 1, "created_at": "2026-11-15T08:00:00Z", "expires_at": "2027-11-15T08:00:00Z",
    });
    if with_secret {
        example["secret"] = json!("gpuaas_key_…");
    }
    example
}
