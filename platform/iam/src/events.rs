//! What others can learn about organizations, projects and credentials. No names or addresses of people, no secrets.

use db::{Event, event};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{ApiKey, Grant, Invitation, Organization, PersonFacts, PersonId, Project, SessionId};

event!(
    OrganizationCreated { organization: Organization },
    "gpuaas.iam.organization.created",
    "An organization was created"
);
event!(
    OrganizationRenamed { organization: Organization },
    "gpuaas.iam.organization.renamed",
    "An organization was renamed"
);
event!(
    OrganizationArchiving { organization: Organization },
    "gpuaas.iam.organization.archiving",
    "An organization is being archived"
);
event!(
    OrganizationArchived { organization: Organization },
    "gpuaas.iam.organization.archived",
    "An organization was archived"
);
event!(ProjectCreated { project: Project }, "gpuaas.iam.project.created", "A project was created");
event!(ProjectRenamed { project: Project }, "gpuaas.iam.project.renamed", "A project was renamed");
event!(ProjectArchived { project: Project }, "gpuaas.iam.project.archived", "A project was archived");

event!(PersonCreated { person: PersonFacts }, "gpuaas.iam.person.created", "Somebody can sign in");
event!(GrantCreated { grant: Grant }, "gpuaas.iam.grant.created", "Somebody was given a role");
event!(GrantEnded { grant: Grant }, "gpuaas.iam.grant.ended", "Somebody no longer has a role");
event!(InvitationCreated { invitation: Invitation }, "gpuaas.iam.invitation.created", "A role was offered");
event!(
    InvitationAccepted { invitation: Invitation },
    "gpuaas.iam.invitation.accepted",
    "An offered role was taken"
);
event!(
    InvitationWithdrawn { invitation: Invitation },
    "gpuaas.iam.invitation.withdrawn",
    "An offered role is no longer to be had"
);
event!(KeyCreated { key: ApiKey }, "gpuaas.iam.api_key.created", "An API key was made");
event!(KeyRevoked { key: ApiKey }, "gpuaas.iam.api_key.revoked", "An API key was revoked");

#[derive(Serialize, JsonSchema)]
pub struct SignInLinkCreated {
    pub person_id: PersonId,
}
impl Event for SignInLinkCreated {
    const TYPE: &'static str = "gpuaas.iam.sign_in_link.created";
    const TITLE: &'static str = "A one-time sign-in link was made";
}

#[derive(Serialize, JsonSchema)]
pub struct SessionCreated {
    pub session_id: SessionId,
    pub person_id: PersonId,
}
impl Event for SessionCreated {
    const TYPE: &'static str = "gpuaas.iam.session.created";
    const TITLE: &'static str = "Someone signed in";
}
