//! What others can learn about organizations, projects and credentials. No names of people, no secrets.

use db::{Event, event};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{KeyId, OperatorId, Organization, OrganizationId, Project, SessionId};

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

#[derive(Serialize, JsonSchema)]
pub struct KeyCreated {
    pub key_id: KeyId,
    pub org_id: Option<OrganizationId>,
    pub role: String,
}
impl Event for KeyCreated {
    const TYPE: &'static str = "gpuaas.iam.api_key.created";
    const TITLE: &'static str = "An API key was made";
}

#[derive(Serialize, JsonSchema)]
pub struct OperatorCreated {
    pub operator_id: OperatorId,
}
impl Event for OperatorCreated {
    const TYPE: &'static str = "gpuaas.iam.operator.created";
    const TITLE: &'static str = "An operator of the platform was made";
}

#[derive(Serialize, JsonSchema)]
pub struct SignInLinkCreated {
    pub operator_id: OperatorId,
}
impl Event for SignInLinkCreated {
    const TYPE: &'static str = "gpuaas.iam.sign_in_link.created";
    const TITLE: &'static str = "A one-time sign-in link was made";
}

#[derive(Serialize, JsonSchema)]
pub struct SessionCreated {
    pub session_id: SessionId,
    pub operator_id: OperatorId,
}
impl Event for SessionCreated {
    const TYPE: &'static str = "gpuaas.iam.session.created";
    const TITLE: &'static str = "Someone signed in";
}
