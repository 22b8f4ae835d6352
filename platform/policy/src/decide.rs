//! Asking the policies, and remembering what they said.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use authz::{ActionInfo, ActorKind, Decider, Decision, Question, Resource, Role, RoleInfo};
use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityUid, PolicyId, PolicySet, Request, Response,
    RestrictedExpression, Schema,
};

use crate::compile::{PolicyFault, uid};

/// The policies of all domains.
pub struct Policies {
    schema: Schema,
    slices: HashMap<&'static str, Slice>,
    pub(crate) policies: PolicySet,
    role_entities: Entities,
    pub(crate) roles: &'static [RoleInfo],
    /// Our own workers that a policy names.
    pub(crate) workers: Vec<String>,
    version: u64,
    remembered: RwLock<HashMap<Facts, bool>>,
}

/// The policies that can matter for one action: Cedar looks at every policy it is given.
pub(crate) struct Slice {
    pub(crate) action: ActionInfo,
    pub(crate) uid: EntityUid,
    pub(crate) policies: PolicySet,
}

/// All that a decision depends on. There are finitely many, few of which occur.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Facts {
    action: &'static str,
    resource: ResourceType,
    asker: Asker,
}

/// Who asks, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Asker {
    pub actor: ActorKind,
    /// Of our own workers, the name.
    pub worker: Option<String>,
    /// The roles that reach the resource, one bit each.
    pub roles: u32,
    /// Does a tenant's own role give the action here?
    pub permission: bool,
    /// Is the action beyond what the credential may be used for?
    pub beyond: bool,
}

impl Asker {
    /// Somebody who is signed in and holds nothing.
    pub(crate) const fn nobody_special(actor: ActorKind) -> Self {
        Self { actor, worker: None, roles: 0, permission: false, beyond: false }
    }
}

/// What kind of thing is asked about: one, or the list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ResourceType {
    kind: &'static str,
    is_list: bool,
}

impl ResourceType {
    fn of(resource: &Resource) -> Self {
        Self { kind: resource.kind, is_list: resource.id.is_none() }
    }

    /// `api_key` is `ApiKey` in Cedar, and the list of them `ApiKeyList`.
    fn type_name(&self) -> String {
        let mut name: String = self.kind.split('_').map(capitalized).collect();
        if self.is_list {
            name.push_str("List");
        }
        name
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Decisions kept in memory. Workers' names are the only part of the facts that is not bounded by the program's text.
const REMEMBERED_MAX: usize = 65_536; // fixed: bounds memory; forgetting costs microseconds

impl Policies {
    pub(crate) fn new(
        schema: Schema,
        slices: HashMap<&'static str, Slice>,
        policies: PolicySet,
        role_entities: Entities,
        roles: &'static [RoleInfo],
        workers: Vec<String>,
        version: u64,
    ) -> Self {
        Self {
            schema,
            slices,
            policies,
            role_entities,
            roles,
            workers,
            version,
            remembered: RwLock::default(),
        }
    }

    /// All actions, by name.
    pub(crate) fn actions(&self) -> Vec<&Slice> {
        let mut all: Vec<&Slice> = self.slices.values().collect();
        all.sort_by_key(|slice| slice.action.name);
        all
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Why the question is answered as it is.
    pub fn explain(&self, question: &Question<'_>) -> Explanation {
        let Facts { action, resource, asker } = self.facts(question);
        let reason = |policy: &PolicyId| Reason {
            policy: policy.to_string(),
            says: self.policies.annotation(policy, "says").unwrap_or_default().to_owned(),
        };
        let reasons = self
            .ask(action, &resource.type_name(), &asker)
            .map(|response| response.diagnostics().reason().map(reason).collect())
            .unwrap_or_default();
        let roles = self.roles.iter().enumerate().filter(|(bit, _)| asker.roles & (1 << bit) != 0);
        Explanation {
            decision: self.decide(question),
            roles: roles.map(|(_, role)| role.name).collect(),
            custom_role: asker.permission,
            reasons,
        }
    }

    fn facts(&self, question: &Question<'_>) -> Facts {
        let mut roles = 0;
        let mut permission = false;
        let here = question.standing.grants.iter().filter(|grant| grant.place.reaches(question.resource));
        for grant in here {
            match &grant.role {
                Role::Fixed(name) => roles |= self.bit(name),
                Role::Custom(actions) => permission |= actions.iter().any(|action| action == question.action),
            }
        }
        let is_worker = question.actor.kind() == ActorKind::System;
        let asker = Asker {
            actor: question.actor.kind(),
            worker: is_worker.then(|| question.actor.subject.id.clone()),
            roles,
            permission,
            beyond: question.standing.is_beyond(question.action),
        };
        Facts { action: question.action, resource: ResourceType::of(question.resource), asker }
    }

    /// A role that does not exist gives nothing.
    pub(crate) fn bit(&self, role: &str) -> u32 {
        self.roles.iter().position(|known| known.name == role).map_or(0, |bit| 1 << bit)
    }

    fn is_allowed(&self, facts: Facts) -> bool {
        if let Some(allowed) = self.remembered.read().unwrap_or_else(PoisonError::into_inner).get(&facts) {
            return *allowed;
        }
        let allowed = self.is_allowed_now(facts.action, &facts.resource.type_name(), &facts.asker);
        let mut remembered = self.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(facts, allowed);
        allowed
    }

    /// What the policies say, from nothing remembered. A question they cannot answer is refused.
    pub(crate) fn is_allowed_now(&self, action: &str, resource_type: &str, asker: &Asker) -> bool {
        self.ask(action, resource_type, asker).is_ok_and(|response| {
            response.decision() == cedar_policy::Decision::Allow
                && response.diagnostics().errors().next().is_none()
        })
    }

    fn ask(&self, action: &str, resource_type: &str, asker: &Asker) -> Result<Response, PolicyFault> {
        let unknown = || PolicyFault::Actions(vec![action.to_owned()]);
        let slice = self.slices.get(action).ok_or_else(unknown)?;
        let principal = principal(asker)?;
        let asked =
            Context::from_pairs([("beyond".to_owned(), RestrictedExpression::new_bool(asker.beyond))]);
        let request = Request::new(
            principal.clone(),
            slice.uid.clone(),
            uid(resource_type, "")?,
            asked.map_err(|error| PolicyFault::Invalid(error.to_string()))?,
            Some(&self.schema),
        )
        .map_err(|error| PolicyFault::Invalid(error.to_string()))?;
        let holder = Entity::new_no_attrs(principal, self.parents(slice.action.name, asker)?);
        let entities = self.role_entities.clone().add_entities([holder], None);
        let entities = entities.map_err(|error| PolicyFault::Invalid(error.to_string()))?;
        Ok(Authorizer::new().is_authorized(&request, &slice.policies, &entities))
    }

    fn parents(&self, action: &str, asker: &Asker) -> Result<HashSet<EntityUid>, PolicyFault> {
        if asker.worker.is_some() {
            return Ok(HashSet::new());
        }
        let held = self.roles.iter().enumerate().filter(|(bit, _)| asker.roles & (1 << bit) != 0);
        let mut parents: HashSet<EntityUid> =
            held.map(|(_, role)| uid("Role", role.name)).collect::<Result<_, _>>()?;
        if asker.permission {
            parents.insert(uid("Permission", action)?);
        }
        Ok(parents)
    }
}

fn principal(asker: &Asker) -> Result<EntityUid, PolicyFault> {
    let name = asker.worker.as_deref().unwrap_or_default();
    match asker.actor {
        ActorKind::User => uid("User", ""),
        ActorKind::ServiceAccount => uid("ServiceAccount", ""),
        ActorKind::Agent => uid("Agent", ""),
        ActorKind::Node => uid("Node", ""),
        ActorKind::System => uid("Worker", name),
        ActorKind::Anonymous => Err(PolicyFault::Invalid("nobody asks".to_owned())),
    }
}

impl Decider for Policies {
    fn knows(&self, action: &str) -> bool {
        self.slices.contains_key(action)
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        if self.is_allowed(self.facts(question)) {
            Decision::Allow { policy_version: self.version }
        } else if question.standing.may_see(question.resource) {
            Decision::Deny
        } else {
            Decision::Conceal
        }
    }
}

/// Why a question is answered as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub decision: Decision,
    /// The roles that the asker holds and that reach the resource, without those they include.
    pub roles: Vec<&'static str>,
    /// Does a role that the organization composed give the action here?
    pub custom_role: bool,
    /// The policies that decided. None: no policy allows it.
    pub reasons: Vec<Reason>,
}

/// A policy that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub policy: String,
    pub says: String,
}
