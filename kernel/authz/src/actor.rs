//! The one who acts. Written into every audit entry and event; never a name or an address, only ids, so that the
//! append-only logs hold no personal data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What sort of principal acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// Nobody has signed in.
    Anonymous,
    /// A person.
    User,
    /// A program of a tenant, or of the platform's operator.
    ServiceAccount,
    /// An AI agent working under a mandate.
    Agent,
    /// A GPU server.
    Node,
    /// A flow or worker of ours.
    System,
}

/// A principal by kind and id. For `System` the id is the name of the flow or worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    pub kind: ActorKind,
    pub id: String,
}

/// Who acts, and for whom if not for themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Actor {
    #[serde(flatten)]
    pub subject: Subject,
    /// The credential it acts with, by id: which of a person's keys or sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<Subject>,
}

impl Actor {
    pub fn new(kind: ActorKind, id: impl Into<String>) -> Self {
        Self { subject: Subject { kind, id: id.into() }, credential: None, on_behalf_of: None }
    }

    pub fn anonymous() -> Self {
        Self::new(ActorKind::Anonymous, "anonymous")
    }

    /// A worker of ours, by name.
    pub fn system(name: impl Into<String>) -> Self {
        Self::new(ActorKind::System, name)
    }

    #[must_use]
    pub fn on_behalf_of(mut self, subject: Subject) -> Self {
        self.on_behalf_of = Some(subject);
        self
    }

    pub fn kind(&self) -> ActorKind {
        self.subject.kind
    }

    pub fn is_anonymous(&self) -> bool {
        self.subject.kind == ActorKind::Anonymous
    }
}
