//! Asking for permission, and the proof that it was given.

use std::marker::PhantomData;

use types::{Error, ErrorCode, ErrorKind};
use uuid::Uuid;

use crate::actor::Actor;
use crate::context::Context;
use crate::standing::{Place, Standing};

pub static UNAUTHENTICATED: ErrorCode = ErrorCode::new(
    "unauthenticated",
    ErrorKind::Unauthenticated,
    "No valid credential was presented",
    "Sign in, or send a valid API key as 'Authorization: Bearer …'.",
);
pub static FORBIDDEN: ErrorCode = ErrorCode::new(
    "forbidden",
    ErrorKind::Forbidden,
    "You may not do this",
    "Ask an administrator of the organization or project for a role that allows this action. What concerns the whole platform \
     is for its operators alone.",
);
pub static NOT_FOUND: ErrorCode = ErrorCode::new(
    "not_found",
    ErrorKind::NotFound,
    "There is no such thing, or you may not see it",
    "Check the id, and that you are signed in to the right organization.",
);

/// Something a caller can be allowed to do. Declared as a unit type in a domain's `policy.rs`.
pub trait Action: 'static {
    /// `domain.resource.verb`; also the action in audit entries.
    const NAME: &'static str;
    /// What a person is told this permission allows.
    const TITLE: &'static str;
}

/// Declares the unit type of an action: `action!(ThingMake, "toy.thing.make", "Make a thing")`.
#[macro_export]
macro_rules! action {
    ($(#[$about:meta])* $type:ident, $name:literal, $title:literal) => {
        $(#[$about])*
        pub struct $type;
        impl $crate::Action for $type {
            const NAME: &'static str = $name;
            const TITLE: &'static str = $title;
        }
    };
}

/// An action by value, for the registry and the policy matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActionInfo {
    pub name: &'static str,
    pub title: &'static str,
}

impl ActionInfo {
    pub const fn of<A: Action>() -> Self {
        Self { name: A::NAME, title: A::TITLE }
    }
}

/// Whose data a piece of work may touch. Row-level security is set from this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Across organizations: operators and our own workers.
    Platform,
    /// One organization.
    Organization(Uuid),
}

/// What the action is about. Missing and foreign things must look alike, so the caller passes what it was asked for,
/// before looking whether it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    pub kind: &'static str,
    pub id: Option<Uuid>,
    pub organization: Option<Uuid>,
    pub project: Option<Uuid>,
}

impl Resource {
    /// Something that belongs to the platform as a whole.
    pub const fn platform(kind: &'static str) -> Self {
        Self { kind, id: None, organization: None, project: None }
    }

    /// The list of something at a place.
    pub const fn list_at(kind: &'static str, place: Place) -> Self {
        match place {
            Place::Platform => Self::platform(kind),
            Place::Organization(organization) => Self::in_organization(kind, organization, None),
            Place::Project { organization, project } => Self::in_project(kind, organization, project, None),
        }
    }

    pub const fn in_organization(kind: &'static str, organization: Uuid, id: Option<Uuid>) -> Self {
        Self { kind, id, organization: Some(organization), project: None }
    }

    pub const fn in_project(kind: &'static str, organization: Uuid, project: Uuid, id: Option<Uuid>) -> Self {
        Self { kind, id, organization: Some(organization), project: Some(project) }
    }

    /// Where it lies.
    pub const fn place(&self) -> Place {
        Place::new(self.organization, self.project)
    }

    const fn scope(&self) -> Scope {
        match self.organization {
            Some(organization) => Scope::Organization(organization),
            None => Scope::Platform,
        }
    }
}

/// May this actor do this to that?
#[derive(Debug)]
pub struct Question<'a> {
    pub actor: &'a Actor,
    pub standing: &'a Standing,
    pub action: &'static str,
    pub resource: &'a Resource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allow {
        policy_version: u64,
    },
    /// The caller may know the thing exists, but not do this.
    Deny,
    /// The caller may not even know: answered as if the thing did not exist.
    Conceal,
}

/// Answers questions. Called on every request: no I/O, microseconds.
pub trait Decider: Send + Sync + 'static {
    fn decide(&self, question: &Question<'_>) -> Decision;

    /// Is there such an action at all? For lists of actions that people write.
    fn knows(&self, action: &str) -> bool;
}

/// A domain's part of the policies, in the Cedar language: what there is to do to what, and who may.
#[derive(Debug, Clone, Copy)]
pub struct DomainPolicy {
    /// Its resources, and which actions there are on them.
    pub schema: &'static str,
    pub policies: &'static str,
    /// The same actions, as the program knows them.
    pub actions: fn() -> Vec<ActionInfo>,
}

/// Proof that `A` was allowed on one resource. Needed to read or write anything.
pub struct Permit<A: Action> {
    resource: Resource,
    share: Scope,
    policy_version: u64,
    action: PhantomData<fn() -> A>,
}

impl<A: Action> Permit<A> {
    pub const fn action(&self) -> &'static str {
        A::NAME
    }

    pub const fn resource(&self) -> &Resource {
        &self.resource
    }

    pub const fn scope(&self) -> Scope {
        self.resource.scope()
    }

    /// Whose share of the database the work uses. A tenant's counts for the organization it is about; operators and our
    /// own workers use the platform's even inside an organization, or a tenant could keep them from dealing with it.
    pub const fn share(&self) -> Scope {
        self.share
    }

    pub const fn policy_version(&self) -> u64 {
        self.policy_version
    }
}

/// The only way to a [`Permit`].
pub fn authorize<A: Action>(
    decider: &dyn Decider,
    context: &Context,
    resource: Resource,
) -> Result<Permit<A>, Error> {
    context.trail.note_decision(A::NAME);
    if context.actor.is_anonymous() {
        return Err(UNAUTHENTICATED.error("this needs a signed-in caller"));
    }
    match decider.decide(&Question {
        actor: &context.actor,
        standing: &context.standing,
        action: A::NAME,
        resource: &resource,
    }) {
        Decision::Allow { policy_version } => {
            let share = if context.is_of_platform() { Scope::Platform } else { resource.scope() };
            Ok(Permit { resource, share, policy_version, action: PhantomData })
        }
        Decision::Deny => {
            Err(FORBIDDEN.error(format!("the action {} is not allowed for this caller", A::NAME)))
        }
        Decision::Conceal => Err(NOT_FOUND.error(not_found_message(resource.kind))),
    }
}

/// The words for a missing thing: the same whether it is missing or hidden.
pub fn not_found_message(kind: &str) -> String {
    format!("no {} with this id", kind.replace('_', " "))
}
