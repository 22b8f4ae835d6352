//! From the domains' texts to policies that can be asked, or to a fault that says what is wrong with them.

use std::collections::{BTreeSet, HashMap, HashSet};

use authz::{ActionInfo, DomainPolicy, RoleInfo};
use cedar_policy::{
    ActionConstraint, Entities, Entity, EntityId, EntityTypeName, EntityUid, Policy, PolicyId, PolicySet,
    PrincipalConstraint, Schema, ValidationMode, Validator,
};
use sha2::{Digest as _, Sha256};

use crate::decide::{Policies, Slice};

/// A tenant may compose roles from what this one may do, and from nothing else.
pub const CUSTOM_ROLE_BOUND: &str = "organization.admin";

const CORE: DomainPolicy = DomainPolicy {
    schema: include_str!("core.cedarschema"),
    policies: include_str!("core.cedar"),
    actions: Vec::new,
};

/// What is wrong with the policies. They are part of the program, so a test finds it, not a user.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFault {
    #[error("the schema cannot be read: {0}")]
    Schema(String),
    #[error("the policies cannot be read: {0}")]
    Syntax(String),
    #[error("a policy does not fit the schema: {0}")]
    Invalid(String),
    #[error("a policy has no @id, or two have the same: {0}")]
    Unnamed(String),
    #[error("the schema and the registered actions differ in {0:?}")]
    Actions(Vec<String>),
    #[error("a policy names the role {0:?}, which does not exist")]
    UnknownRole(String),
    #[error("there are {0} roles; more than 32 do not fit")]
    TooManyRoles(usize),
}

impl Policies {
    /// Reads and slices the policies of all domains. Costs milliseconds; [`Policies::check`] does the rest.
    pub fn compile(domains: &[DomainPolicy], roles: &'static [RoleInfo]) -> Result<Self, PolicyFault> {
        if roles.len() > u32::BITS as usize {
            return Err(PolicyFault::TooManyRoles(roles.len()));
        }
        let all = || std::iter::once(&CORE).chain(domains);
        let actions: Vec<ActionInfo> = domains.iter().flat_map(|domain| (domain.actions)()).collect();
        let schema_text: String = all().flat_map(|domain| [domain.schema, "\n"]).collect();
        let policy_text: String = all().flat_map(|domain| [domain.policies, "\n"]).collect();
        let schema = Schema::from_cedarschema_str(&schema_text)
            .map_err(|error| PolicyFault::Schema(format!("{error:?}")))?
            .0;
        same_actions(&schema, &actions)?;
        let parsed = policy_text.parse().map_err(|error| PolicyFault::Syntax(format!("{error:?}")))?;
        let mut policies = named(&parsed)?;
        known_roles(&policies, roles)?;
        let version = version(&schema_text, &policy_text);

        let own = Self::sliced(schema.clone(), &policies, &actions, roles, version)?;
        let kept = kept_back(&policies);
        for action in own.actions_of(CUSTOM_ROLE_BOUND).into_iter().filter(|action| !kept.contains(*action)) {
            policies.push(passed_on(action)?);
        }
        Self::sliced(schema, &policies, &actions, roles, version)
    }

    /// Validates every policy against the schema. Part of the tests: the policies are part of the program.
    pub fn check(&self) -> Result<(), PolicyFault> {
        let found = Validator::new(self.schema().clone()).validate(&self.policies, ValidationMode::Strict);
        let warnings = found.validation_warnings().map(ToString::to_string);
        let faults: Vec<String> =
            found.validation_errors().map(ToString::to_string).chain(warnings).collect();
        if faults.is_empty() { Ok(()) } else { Err(PolicyFault::Invalid(faults.join("; "))) }
    }

    fn sliced(
        schema: Schema,
        policies: &[Policy],
        actions: &[ActionInfo],
        roles: &'static [RoleInfo],
        version: u64,
    ) -> Result<Self, PolicyFault> {
        let mut slices = HashMap::new();
        for action in actions {
            let uid = uid("Action", action.name)?;
            let about = policies.iter().filter(|policy| concerns(policy, &uid));
            let mut set = PolicySet::new();
            for policy in about {
                set.add(policy.clone()).map_err(|error| PolicyFault::Syntax(error.to_string()))?;
            }
            slices.insert(action.name, Slice { action: *action, uid, policies: set });
        }
        let every = PolicySet::from_policies(policies.iter().cloned())
            .map_err(|error| PolicyFault::Syntax(error.to_string()))?;
        Ok(Self::new(schema, slices, every, role_entities(roles)?, roles, workers(policies), version))
    }
}

/// Actions of policies marked `@custom("no")`: whoever could give roles could give themselves any.
fn kept_back(policies: &[Policy]) -> BTreeSet<String> {
    let marked = policies.iter().filter(|policy| policy.annotation("custom") == Some("no"));
    let actions = marked.flat_map(|policy| match policy.action_constraint() {
        ActionConstraint::Any => Vec::new(),
        ActionConstraint::Eq(one) => vec![one],
        ActionConstraint::In(several) => several,
    });
    actions.map(|action| action.id().unescaped().to_owned()).collect()
}

/// The same text has the same number, whoever built the program. The database keeps it as a signed one.
fn version(schema: &str, policies: &str) -> u64 {
    let digest = Sha256::new().chain_update(schema).chain_update(policies).finalize();
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)) >> 1
}

/// The permission that a tenant's own role may contain.
fn passed_on(action: &str) -> Result<Policy, PolicyFault> {
    let text = format!(
        "@says(\"A role that the organization composed gives this action.\")\n\
         permit (principal in Permission::\"{action}\", action == Action::\"{action}\", resource);"
    );
    Policy::parse(Some(PolicyId::new(format!("custom-role:{action}"))), text)
        .map_err(|error| PolicyFault::Syntax(error.to_string()))
}

pub(crate) fn uid(kind: &str, id: &str) -> Result<EntityUid, PolicyFault> {
    let kind: EntityTypeName =
        kind.parse().map_err(|error| PolicyFault::Schema(format!("{kind:?} is no type: {error}")))?;
    Ok(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}

/// Every policy under its `@id`, so that a decision can be explained by names people know.
fn named(policies: &PolicySet) -> Result<Vec<Policy>, PolicyFault> {
    let mut seen = HashSet::new();
    let name = |policy: &Policy| {
        let id = policy.annotation("id").ok_or_else(|| PolicyFault::Unnamed(policy.to_string()))?.to_owned();
        if !seen.insert(id.clone()) {
            return Err(PolicyFault::Unnamed(id));
        }
        Ok(policy.new_id(PolicyId::new(id)))
    };
    policies.policies().map(name).collect()
}

fn same_actions(schema: &Schema, actions: &[ActionInfo]) -> Result<(), PolicyFault> {
    let declared: BTreeSet<String> =
        schema.actions().map(|action| action.id().unescaped().to_owned()).collect();
    let registered: BTreeSet<String> = actions.iter().map(|action| action.name.to_owned()).collect();
    let differing: Vec<String> = declared.symmetric_difference(&registered).cloned().collect();
    if differing.is_empty() { Ok(()) } else { Err(PolicyFault::Actions(differing)) }
}

fn known_roles(policies: &[Policy], roles: &[RoleInfo]) -> Result<(), PolicyFault> {
    for policy in policies {
        let (PrincipalConstraint::In(uid) | PrincipalConstraint::Eq(uid) | PrincipalConstraint::IsIn(_, uid)) =
            policy.principal_constraint()
        else {
            continue;
        };
        let name = uid.id().unescaped();
        if uid.type_name().basename() == "Role" && !roles.iter().any(|role| role.name == name) {
            return Err(PolicyFault::UnknownRole(name.to_owned()));
        }
    }
    Ok(())
}

/// The workers that policies name.
fn workers(policies: &[Policy]) -> Vec<String> {
    let names: BTreeSet<String> = policies
        .iter()
        .filter_map(|policy| match policy.principal_constraint() {
            PrincipalConstraint::Eq(uid) if uid.type_name().basename() == "Worker" => {
                Some(uid.id().unescaped().to_owned())
            }
            _ => None,
        })
        .collect();
    names.into_iter().collect()
}

fn concerns(policy: &Policy, action: &EntityUid) -> bool {
    match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(one) => one == *action,
        ActionConstraint::In(several) => several.contains(action),
    }
}

/// The roles with what they include.
fn role_entities(roles: &[RoleInfo]) -> Result<Entities, PolicyFault> {
    let entity = |role: &RoleInfo| {
        let parents = role.includes.iter().map(|name| uid("Role", name)).collect::<Result<_, _>>()?;
        Ok(Entity::new_no_attrs(uid("Role", role.name)?, parents))
    };
    let entities = roles.iter().map(entity).collect::<Result<Vec<_>, PolicyFault>>()?;
    Entities::from_entities(entities, None).map_err(|error| PolicyFault::Schema(error.to_string()))
}
