//! What can be done here. Who may is written in `policy.cedar`; the golden file `contracts/permissions.txt` is the
//! review copy over all domains.

use authz::{ActionInfo, DomainPolicy, action};

action!(OrganizationCreate, "iam.organization.create", "Create an organization");
action!(OrganizationRead, "iam.organization.read", "Read an organization");
action!(OrganizationList, "iam.organization.list", "List organizations");
action!(OrganizationRename, "iam.organization.rename", "Rename an organization");
action!(OrganizationArchive, "iam.organization.archive", "Archive an organization");
action!(ProjectCreate, "iam.project.create", "Create a project");
action!(ProjectRead, "iam.project.read", "Read a project");
action!(ProjectList, "iam.project.list", "List an organization's projects");
action!(ProjectRename, "iam.project.rename", "Rename a project");
action!(ProjectArchive, "iam.project.archive", "Archive a project");
action!(KeyCreate, "iam.api_key.create", "Make an API key");
action!(OperatorCreate, "iam.operator.create", "Make an operator");
action!(SignInLinkCreate, "iam.sign_in_link.create", "Make a one-time sign-in link");
action!(SessionCreate, "iam.session.create", "Sign in");
action!(SelfRead, "iam.self.read", "Read who one is");

/// Our own workers, by the name they act under.
pub const SYSTEM_BOOTSTRAP: &str = "bootstrap";
pub const SYSTEM_ARCHIVER: &str = "iam.archiver";

/// Who may do what with organizations, projects and credentials.
pub const POLICY: DomainPolicy = DomainPolicy {
    schema: include_str!("policy.cedarschema"),
    policies: include_str!("policy.cedar"),
    actions,
};

fn actions() -> Vec<ActionInfo> {
    vec![
        ActionInfo::of::<OrganizationCreate>(),
        ActionInfo::of::<OrganizationRead>(),
        ActionInfo::of::<OrganizationList>(),
        ActionInfo::of::<OrganizationRename>(),
        ActionInfo::of::<OrganizationArchive>(),
        ActionInfo::of::<ProjectCreate>(),
        ActionInfo::of::<ProjectRead>(),
        ActionInfo::of::<ProjectList>(),
        ActionInfo::of::<ProjectRename>(),
        ActionInfo::of::<ProjectArchive>(),
        ActionInfo::of::<KeyCreate>(),
        ActionInfo::of::<OperatorCreate>(),
        ActionInfo::of::<SignInLinkCreate>(),
        ActionInfo::of::<SessionCreate>(),
        ActionInfo::of::<SelfRead>(),
    ]
}
