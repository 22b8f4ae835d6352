//! What can be done here, and which roles may do it.
//!
//! The rules are a table people can read; the golden file `contracts/permissions.txt` is its review copy. Richer policies
//! (memberships, custom roles) replace the decider, not the actions.

use authz::{Action, ActionInfo, ActorKind, Decider, Decision, Question, action};

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

/// The platform's operator, and an organization's owner.
pub const PLATFORM_OPERATOR: &str = "platform.operator";
pub const ORGANIZATION_OWNER: &str = "organization.owner";
/// Our own workers, by the name they act under.
pub const SYSTEM_BOOTSTRAP: &str = "bootstrap";
pub const SYSTEM_ARCHIVER: &str = "iam.archiver";

pub fn actions() -> Vec<ActionInfo> {
    RULES.iter().map(|rule| rule.action).collect()
}

struct Rule {
    action: ActionInfo,
    /// Roles that hold everywhere.
    platform: &'static [&'static str],
    /// Roles that hold in the resource's own organization.
    organization: &'static [&'static str],
    system: &'static [&'static str],
    /// Anyone who is signed in, about themselves.
    anyone: bool,
}

const fn rule<A: Action>(
    platform: &'static [&'static str],
    organization: &'static [&'static str],
    system: &'static [&'static str],
) -> Rule {
    Rule { action: ActionInfo::of::<A>(), platform, organization, system, anyone: false }
}

const OPERATOR: &[&str] = &[PLATFORM_OPERATOR];
const OWNER: &[&str] = &[ORGANIZATION_OWNER];
const BOOTSTRAP: &[&str] = &[SYSTEM_BOOTSTRAP];
const ARCHIVER: &[&str] = &[SYSTEM_ARCHIVER];

static RULES: &[Rule] = &[
    rule::<OrganizationCreate>(OPERATOR, &[], BOOTSTRAP),
    rule::<OrganizationRead>(OPERATOR, OWNER, &[]),
    rule::<OrganizationList>(OPERATOR, OWNER, BOOTSTRAP),
    rule::<OrganizationRename>(OPERATOR, OWNER, &[]),
    rule::<OrganizationArchive>(OPERATOR, &[], ARCHIVER),
    rule::<ProjectCreate>(OPERATOR, OWNER, BOOTSTRAP),
    rule::<ProjectRead>(OPERATOR, OWNER, &[]),
    rule::<ProjectList>(OPERATOR, OWNER, BOOTSTRAP),
    rule::<ProjectRename>(OPERATOR, OWNER, &[]),
    rule::<ProjectArchive>(OPERATOR, OWNER, ARCHIVER),
    rule::<KeyCreate>(&[], &[], BOOTSTRAP),
    rule::<OperatorCreate>(&[], &[], BOOTSTRAP),
    rule::<SignInLinkCreate>(&[], &[], BOOTSTRAP),
    Rule {
        action: ActionInfo::of::<SessionCreate>(),
        platform: &[],
        organization: &[],
        system: &[],
        anyone: true,
    },
    Rule {
        action: ActionInfo::of::<SelfRead>(),
        platform: &[],
        organization: &[],
        system: &[],
        anyone: true,
    },
];

/// Which version of the rules decided; written into every audit entry.
const RULES_VERSION: u64 = 1;

/// Decides by role. Actions of other domains are added with [`RoleDecider::also`].
#[derive(Default)]
pub struct RoleDecider {
    /// Actions of other domains: operators may do them everywhere, owners in their organization if `true`.
    others: Vec<(&'static str, bool)>,
    /// Actions of other domains that our own workers may do, with the workers' names.
    workers: Vec<(&'static str, &'static [&'static str])>,
}

impl RoleDecider {
    /// Lets operators do `action`, and owners in their own organization if `owners` says so.
    #[must_use]
    pub fn also<A: Action>(mut self, owners: bool) -> Self {
        self.others.push((A::NAME, owners));
        self
    }

    /// Lets our own workers of these names do `action`.
    #[must_use]
    pub fn also_worker<A: Action>(mut self, names: &'static [&'static str]) -> Self {
        self.workers.push((A::NAME, names));
        self
    }

    /// (action, who may), for the golden matrix.
    pub fn matrix(&self) -> Vec<(&'static str, Vec<&'static str>)> {
        let own = RULES.iter().map(|rule| {
            let mut who: Vec<&str> = [rule.platform, rule.organization, rule.system].concat();
            if rule.anyone {
                who.push("anyone signed in");
            }
            (rule.action.name, who)
        });
        let others = self.others.iter().map(|(name, owners)| {
            (
                *name,
                if *owners { vec![PLATFORM_OPERATOR, ORGANIZATION_OWNER] } else { vec![PLATFORM_OPERATOR] },
            )
        });
        own.chain(others).chain(self.workers.iter().map(|(name, who)| (*name, who.to_vec()))).collect()
    }

    fn allows(&self, question: &Question<'_>) -> bool {
        if question.actor.kind() == ActorKind::System {
            let name = question.actor.subject.id.as_str();
            let own = RULES.iter().map(|rule| (rule.action.name, rule.system));
            return own
                .chain(self.workers.iter().copied())
                .any(|(action, names)| action == question.action && names.contains(&name));
        }
        let operator = question.standing.platform_roles.iter().any(|role| role == PLATFORM_OPERATOR);
        let owner = has_organization_role(question, OWNER);
        if let Some((_, owners)) = self.others.iter().find(|(name, _)| *name == question.action) {
            return operator || (*owners && owner);
        }
        RULES.iter().filter(|rule| rule.action.name == question.action).any(|rule| {
            rule.anyone
                || question.standing.platform_roles.iter().any(|role| rule.platform.contains(&role.as_str()))
                || has_organization_role(question, rule.organization)
        })
    }
}

fn has_organization_role(question: &Question<'_>, wanted: &[&str]) -> bool {
    let Some(organization) = question.resource.organization else { return false };
    question
        .standing
        .organization_roles
        .iter()
        .any(|(id, role)| *id == organization && wanted.contains(&role.as_str()))
}

/// May the caller know that the resource's organization exists?
fn may_see(question: &Question<'_>) -> bool {
    match question.resource.organization {
        None => true,
        Some(organization) => {
            !question.standing.platform_roles.is_empty()
                || question.standing.organization_roles.iter().any(|(id, _)| *id == organization)
        }
    }
}

impl Decider for RoleDecider {
    fn decide(&self, question: &Question<'_>) -> Decision {
        if self.allows(question) {
            Decision::Allow { policy_version: RULES_VERSION }
        } else if may_see(question) {
            Decision::Deny
        } else {
            Decision::Conceal
        }
    }
}
