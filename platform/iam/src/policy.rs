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
action!(PersonCreate, "iam.person.create", "Make somebody who can sign in");
action!(PersonRead, "iam.person.read", "Read about a person");
action!(PersonList, "iam.person.list", "List people");
action!(MemberList, "iam.member.list", "See who belongs to an organization");
action!(GrantCreate, "iam.grant.create", "Give somebody a role");
action!(GrantList, "iam.grant.list", "See who holds which role");
action!(GrantEnd, "iam.grant.end", "End a role that somebody holds");
action!(OwnerAppoint, "iam.owner.appoint", "Make the first owner of an organization");
action!(OwnerChange, "iam.owner.change", "Make and unmake owners of an organization");
action!(InvitationCreate, "iam.invitation.create", "Invite somebody");
action!(InvitationList, "iam.invitation.list", "List invitations");
action!(InvitationWithdraw, "iam.invitation.withdraw", "Withdraw an invitation");
action!(InvitationAccept, "iam.invitation.accept", "Accept an invitation");
action!(KeyCreate, "iam.api_key.create", "Make an API key of one's own");
action!(KeyList, "iam.api_key.list", "List one's own API keys");
action!(KeyRevoke, "iam.api_key.revoke", "Revoke one's own API key");
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
        ActionInfo::of::<PersonCreate>(),
        ActionInfo::of::<PersonRead>(),
        ActionInfo::of::<PersonList>(),
        ActionInfo::of::<MemberList>(),
        ActionInfo::of::<GrantCreate>(),
        ActionInfo::of::<GrantList>(),
        ActionInfo::of::<GrantEnd>(),
        ActionInfo::of::<OwnerAppoint>(),
        ActionInfo::of::<OwnerChange>(),
        ActionInfo::of::<InvitationCreate>(),
        ActionInfo::of::<InvitationList>(),
        ActionInfo::of::<InvitationWithdraw>(),
        ActionInfo::of::<InvitationAccept>(),
        ActionInfo::of::<KeyCreate>(),
        ActionInfo::of::<KeyList>(),
        ActionInfo::of::<KeyRevoke>(),
        ActionInfo::of::<SignInLinkCreate>(),
        ActionInfo::of::<SessionCreate>(),
        ActionInfo::of::<SelfRead>(),
    ]
}
