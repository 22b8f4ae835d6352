//! Routes of people, their roles and invitations.

use authz::RoleInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use types::{Name, Result, Text, Timestamp};
use web::{Call, Endpoint, Nothing, Operation, Page, PageLimit, RateClass, Reply, on, page_limit};

use super::OrganizationPath;
use crate::Iam;
use crate::grants::{GrantFilter, NewGrant};
use crate::model::*;
use crate::policy::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PersonPath {
    /// The person.
    person_id: PersonId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrantPath {
    /// The grant, of the platform.
    grant_id: GrantId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OrganizationGrantPath {
    /// The organization.
    org_id: OrganizationId,
    /// The grant.
    grant_id: GrantId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InvitationPath {
    /// The organization.
    org_id: OrganizationId,
    /// The invitation.
    invitation_id: InvitationId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Most items to return.
    limit: Option<PageLimit>,
    /// Where to go on, from `next_cursor`.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrantListQuery {
    /// Only grants in this project.
    project_id: Option<ProjectId>,
    /// Only grants of this person.
    person_id: Option<PersonId>,
    /// Only this role.
    role: Option<RoleName>,
    /// Most items to return.
    limit: Option<PageLimit>,
    /// Where to go on, from `next_cursor`.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PersonCreateBody {
    name: Name,
    /// Where to write to them. Not used to sign in.
    email: Option<Text<254>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnerAppointBody {
    /// Who is to own the organization.
    person_id: PersonId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GrantCreateBody {
    /// Who gets the role. Must belong to the organization already; others are invited.
    person_id: PersonId,
    role: RoleName,
    /// The project it is for; only with roles that begin with `project.`.
    project_id: Option<ProjectId>,
    /// When it ends by itself.
    expires_at: Option<Timestamp>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlatformGrantCreateBody {
    /// Who gets the role.
    person_id: PersonId,
    /// A role that begins with `platform.`.
    role: RoleName,
    /// When it ends by itself.
    expires_at: Option<Timestamp>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InvitationCreateBody {
    role: RoleName,
    /// The project it is for; only with roles that begin with `project.`.
    project_id: Option<ProjectId>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InvitationAcceptBody {
    /// The code of the invitation.
    #[schemars(length(min = 1, max = 200))]
    code: String,
}

/// An invitation, and the code that accepts it.
#[derive(Serialize, JsonSchema)]
struct InvitationMade {
    #[serde(flatten)]
    invitation: Invitation,
    /// Hand it to whom you invite. It is shown this once.
    code: String,
}

/// One of the product's own roles, by name.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct RoleName(&'static RoleInfo);

impl TryFrom<String> for RoleName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        crate::role(&name).map(Self).ok_or_else(|| "there is no such role".to_owned())
    }
}

impl JsonSchema for RoleName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RoleName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = crate::ROLES.iter().map(|role| role.name).collect();
        schemars::json_schema!({
            "type": "string",
            "description": "One of the product's own roles. The first part says where it can be held.",
            "enum": names,
        })
    }
}

pub fn endpoints(iam: &Iam) -> Vec<Endpoint> {
    let mut all = people(iam);
    all.extend(grants(iam));
    all.extend(invitations(iam));
    all
}

fn people(iam: &Iam) -> Vec<Endpoint> {
    vec![
        Operation::<Nothing, Nothing, PersonCreateBody>::post("/api/v1/people", "people.create")
            .about("Make a person", "Somebody who can sign in and holds nothing yet. The machine's owner makes their sign-in link.")
            .permission::<PersonCreate>()
            .etag()
            .cli("person create")
            .example(|| (json!({"name": "Ada Lovelace", "email": "ada@example.com"}), person_example()))
            .handler(on!(iam, |call: Call<Nothing, Nothing, PersonCreateBody>| {
                let email = call.body.email.map(Text::into_string);
                iam.person_create(&call.context, call.body.name, email).await.map(person_reply)
            })),
        Operation::<Nothing, ListQuery>::get("/api/v1/people", "people.list")
            .about("List people", "Everybody who can sign in, in the order in which they were made.")
            .permission::<PersonList>()
            .errors([&events::INVALID_CURSOR])
            .cli("person list")
            .handler(on!(iam, |call: Call<Nothing, ListQuery>| {
                let limit = page_limit(call.query.limit, &iam.settings);
                iam.person_list(&call.context, limit, call.query.cursor.as_deref()).await.map(Reply::new)
            })),
        Operation::<PersonPath>::get("/api/v1/people/{person_id}", "people.get")
            .about("Read about a person", "Who can sign in under this id.")
            .permission::<PersonRead>()
            .etag()
            .cli("person get")
            .example(|| (json!(null), person_example()))
            .handler(on!(iam, |call: Call<PersonPath>| {
                iam.person_get(&call.context, call.path.person_id).await.map(person_reply)
            })),
        Operation::<OrganizationPath, ListQuery>::get("/api/v1/orgs/{org_id}/members", "members.list")
            .about("List an organization's members", "Everybody who holds a role in it or in one of its projects.")
            .permission::<MemberList>()
            .errors([&events::INVALID_CURSOR])
            .cli("member list")
            .mcp()
            .handler(on!(iam, |call: Call<OrganizationPath, ListQuery>| {
                let limit = page_limit(call.query.limit, &iam.settings);
                let page: Page<Person> =
                    iam.member_list(&call.context, call.path.org_id, limit, call.query.cursor.as_deref()).await?;
                Ok(Reply::new(page))
            })),
    ]
}

fn grants(iam: &Iam) -> Vec<Endpoint> {
    vec![
        Operation::<OrganizationPath, Nothing, OwnerAppointBody>::post(
            "/api/v1/orgs/{org_id}/owners",
            "owners.appoint",
        )
        .about(
            "Make the first owner",
            "Of an organization that has none. Owners make further ones by giving the role.",
        )
        .permission::<OwnerAppoint>()
        .errors([&OWNER_EXISTS])
        .etag()
        .cli("org appoint-owner")
        .example(|| (json!({"person_id": PERSON}), grant_example()))
        .handler(on!(iam, |call: Call<OrganizationPath, Nothing, OwnerAppointBody>| {
            iam.owner_appoint(&call.context, call.path.org_id, call.body.person_id).await.map(grant_reply)
        })),
        Operation::<OrganizationPath, Nothing, GrantCreateBody>::post(
            "/api/v1/orgs/{org_id}/grants",
            "grants.create",
        )
        .about("Give a role", "In the organization, or in one of its projects. Only owners make owners.")
        .permission::<GrantCreate>()
        .errors([&ROLE_MISPLACED, &ALREADY_HELD])
        .etag()
        .cli("grant create")
        .example(|| (json!({"person_id": PERSON, "role": "organization.member"}), grant_example()))
        .handler(on!(iam, |call: Call<OrganizationPath, Nothing, GrantCreateBody>| {
            let new = NewGrant {
                person_id: call.body.person_id,
                role: call.body.role.0,
                org_id: Some(call.path.org_id),
                project_id: call.body.project_id,
                expires_at: call.body.expires_at,
            };
            iam.grant_create(&call.context, new).await.map(grant_reply)
        })),
        Operation::<OrganizationPath, GrantListQuery>::get("/api/v1/orgs/{org_id}/grants", "grants.list")
            .about("List who holds which role", "In the organization and its projects, as long as it holds.")
            .permission::<GrantList>()
            .errors([&events::INVALID_CURSOR])
            .cli("grant list")
            .mcp()
            .handler(on!(iam, |call: Call<OrganizationPath, GrantListQuery>| {
                let filter = filter(Some(call.path.org_id), call.query, &iam);
                iam.grant_list(&call.context, &filter).await.map(Reply::new)
            })),
        Operation::<OrganizationGrantPath>::post_empty(
            "/api/v1/orgs/{org_id}/grants/{grant_id}/end",
            "grants.end",
        )
        .about("End a role", "What somebody else holds, or what you hold yourself. The last owner stays.")
        .permission::<GrantEnd>()
        .errors([&LAST_OWNER])
        .etag()
        .cli("grant end")
        .example(|| (json!(null), grant_example()))
        .handler(on!(iam, |call: Call<OrganizationGrantPath>| {
            iam.grant_end(&call.context, Some(call.path.org_id), call.path.grant_id, call.if_match)
                .await
                .map(grant_reply)
        })),
        Operation::<Nothing, Nothing, PlatformGrantCreateBody>::post(
            "/api/v1/grants",
            "platform_grants.create",
        )
        .about(
            "Give a role on the platform",
            "To operators, auditors and others who look after the platform itself.",
        )
        .permission::<GrantCreate>()
        .errors([&ROLE_MISPLACED, &ALREADY_HELD])
        .etag()
        .cli("platform grant create")
        .example(|| (json!({"person_id": PERSON, "role": "platform.auditor"}), platform_grant_example()))
        .handler(on!(iam, |call: Call<Nothing, Nothing, PlatformGrantCreateBody>| {
            let new = NewGrant {
                person_id: call.body.person_id,
                role: call.body.role.0,
                org_id: None,
                project_id: None,
                expires_at: call.body.expires_at,
            };
            iam.grant_create(&call.context, new).await.map(grant_reply)
        })),
        Operation::<Nothing, GrantListQuery>::get("/api/v1/grants", "platform_grants.list")
            .about("List who holds which role on the platform", "As long as it holds.")
            .permission::<GrantList>()
            .errors([&events::INVALID_CURSOR])
            .cli("platform grant list")
            .handler(on!(iam, |call: Call<Nothing, GrantListQuery>| {
                let filter = filter(None, call.query, &iam);
                iam.grant_list(&call.context, &filter).await.map(Reply::new)
            })),
        Operation::<GrantPath>::post_empty("/api/v1/grants/{grant_id}/end", "platform_grants.end")
            .about("End a role on the platform", "The last operator stays.")
            .permission::<GrantEnd>()
            .errors([&LAST_OWNER])
            .etag()
            .cli("platform grant end")
            .example(|| (json!(null), platform_grant_example()))
            .handler(on!(iam, |call: Call<GrantPath>| {
                iam.grant_end(&call.context, None, call.path.grant_id, call.if_match).await.map(grant_reply)
            })),
    ]
}

fn filter(org_id: Option<OrganizationId>, query: GrantListQuery, iam: &Iam) -> GrantFilter {
    GrantFilter {
        org_id,
        project_id: query.project_id,
        person_id: query.person_id,
        role: query.role.map(|role| role.0.name.to_owned()),
        limit: page_limit(query.limit, &iam.settings),
        cursor: query.cursor,
    }
}

fn invitations(iam: &Iam) -> Vec<Endpoint> {
    vec![
        Operation::<OrganizationPath, Nothing, InvitationCreateBody>::post(
            "/api/v1/orgs/{org_id}/invitations",
            "invitations.create",
        )
        .about(
            "Invite somebody",
            "Offers a role. The reply has the code to hand on; it works once and for a time.",
        )
        .permission::<InvitationCreate>()
        .errors([&ROLE_MISPLACED, &ARCHIVED, &web::SECRET_ALREADY_DELIVERED])
        .etag()
        .cli("invitation create")
        .example(|| (json!({"role": "organization.member"}), invitation_example(true)))
        .handler(on!(iam, |call: Call<OrganizationPath, Nothing, InvitationCreateBody>| {
            let (org_id, body) = (call.path.org_id, call.body);
            let (invitation, code) =
                iam.invitation_create(&call.context, org_id, body.project_id, body.role.0).await?;
            let generation = invitation.generation;
            let made = InvitationMade { invitation, code: code.expose().to_owned() };
            Ok(Reply::new(made).with_generation(generation))
        })),
        Operation::<OrganizationPath, ListQuery>::get(
            "/api/v1/orgs/{org_id}/invitations",
            "invitations.list",
        )
        .about("List invitations", "Open ones, and what became of the others.")
        .permission::<InvitationList>()
        .errors([&events::INVALID_CURSOR])
        .cli("invitation list")
        .handler(on!(iam, |call: Call<OrganizationPath, ListQuery>| {
            let limit = page_limit(call.query.limit, &iam.settings);
            iam.invitation_list(&call.context, call.path.org_id, limit, call.query.cursor.as_deref())
                .await
                .map(Reply::new)
        })),
        Operation::<InvitationPath>::post_empty(
            "/api/v1/orgs/{org_id}/invitations/{invitation_id}/withdraw",
            "invitations.withdraw",
        )
        .about(
            "Withdraw an invitation",
            "Its code no longer works. One that was accepted is ended as a grant.",
        )
        .permission::<InvitationWithdraw>()
        .errors([&INVITATION_INVALID])
        .etag()
        .cli("invitation withdraw")
        .example(|| (json!(null), invitation_example(false)))
        .handler(on!(iam, |call: Call<InvitationPath>| {
            let (org_id, id) = (call.path.org_id, call.path.invitation_id);
            let invitation = iam.invitation_withdraw(&call.context, org_id, id, call.if_match).await?;
            let generation = invitation.generation;
            Ok(Reply::new(invitation).with_generation(generation))
        })),
        Operation::<Nothing, Nothing, InvitationAcceptBody>::post(
            "/api/v1/invitations/accept",
            "invitations.accept",
        )
        .about("Accept an invitation", "The caller gets the role that the code offers.")
        .permission::<InvitationAccept>()
        .rate(RateClass::Guess)
        .errors([&INVITATION_INVALID, &ALREADY_HELD, &KEY_TOO_WIDE])
        .etag()
        .cli("invitation accept")
        .example(|| (json!({"code": "gpuaas_inv_…"}), grant_example()))
        .handler(on!(iam, |call: Call<Nothing, Nothing, InvitationAcceptBody>| {
            iam.invitation_accept(&call.context, &call.body.code).await.map(grant_reply)
        })),
    ]
}

fn person_reply(person: Person) -> Reply<Person> {
    let generation = person.generation;
    Reply::new(person).with_generation(generation)
}

fn grant_reply(grant: Grant) -> Reply<Grant> {
    let generation = grant.generation;
    Reply::new(grant).with_generation(generation)
}

const PERSON: &str = "usr_01jcqz3k8vf4t9x2m7n5p6r8sd";

fn person_example() -> serde_json::Value {
    json!({
        "id": PERSON, "name": "Ada Lovelace", "email": "ada@example.com", "state": "active",
        "state_since": "2026-11-15T08:00:00Z", "generation": 1,
        "created_at": "2026-11-15T08:00:00Z", "updated_at": "2026-11-15T08:00:00Z",
    })
}

fn grant_example() -> serde_json::Value {
    json!({
        "id": "grt_01jcqz5h2me8s0a6d4w9y3t7kc", "person_id": PERSON, "role": "organization.member",
        "org_id": "org_01jcqz3k8vf4t9x2m7n5p6r8sd", "generation": 1,
        "created_at": "2026-11-15T08:00:00Z", "created_by": "usr_01jcqz5h2me8s0a6d4w9y3t7kc",
    })
}

fn platform_grant_example() -> serde_json::Value {
    json!({
        "id": "grt_01jcqz5h2me8s0a6d4w9y3t7kc", "person_id": PERSON, "role": "platform.auditor", "generation": 1,
        "created_at": "2026-11-15T08:00:00Z", "created_by": "usr_01jcqz5h2me8s0a6d4w9y3t7kc",
    })
}

fn invitation_example(with_code: bool) -> serde_json::Value {
    let mut example = json!({
        "id": "inv_01jcqz5h2me8s0a6d4w9y3t7kc", "org_id": "org_01jcqz3k8vf4t9x2m7n5p6r8sd",
        "role": "organization.member", "generation": 1, "created_at": "2026-11-15T08:00:00Z",
        "created_by": PERSON, "expires_at": "2026-11-22T08:00:00Z",
    });
    if with_code {
        example["code"] = json!("gpuaas_inv_…");
    }
    example
}
