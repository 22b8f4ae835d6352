//! What is written down about a change.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use types::{Id, Kind};
use uuid::Uuid;

/// Something that happened, as others may read it. Declared in a domain's `events.rs`.
pub trait Event: Serialize + JsonSchema {
    /// `gpuaas.<domain>.<resource>.<event>`; also the NATS subject.
    const TYPE: &'static str;
    const TITLE: &'static str;
}

/// Declares an event that carries the resource as it is after the change:
/// `event!(ThingMade { thing: Thing }, "gpuaas.toy.thing.made", "A thing was made")`.
#[macro_export]
macro_rules! event {
    ($type:ident { $field:ident : $payload:ty }, $name:literal, $title:literal) => {
        #[derive(Serialize, JsonSchema)]
        pub struct $type<'a> {
            pub $field: &'a $payload,
        }
        impl $crate::Event for $type<'_> {
            const TYPE: &'static str = $name;
            const TITLE: &'static str = $title;
        }
    };
}

/// An event type by value, for the AsyncAPI document.
#[derive(Clone, Copy)]
pub struct EventInfo {
    pub event_type: &'static str,
    pub title: &'static str,
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

impl EventInfo {
    pub const fn of<E: Event>() -> Self {
        Self { event_type: E::TYPE, title: E::TITLE, schema: |generator| generator.subschema_for::<E>() }
    }
}

/// One change of one resource: the audit entry and the event are made from this, so they cannot disagree.
#[derive(Debug, Serialize)]
pub struct Change {
    pub action: &'static str,
    pub resource_kind: &'static str,
    pub resource_id: String,
    pub organization: Option<Uuid>,
    pub project: Option<Uuid>,
    pub generation: i64,
    pub before: Option<Box<RawValue>>,
    pub after: Option<Box<RawValue>>,
    pub event: Option<DraftEvent>,
}

#[derive(Debug, Serialize)]
pub struct DraftEvent {
    #[serde(rename = "type")]
    pub event_type: &'static str,
    pub data: Box<RawValue>,
}

impl Change {
    /// `generation` is the resource's after the change.
    pub fn new<K: Kind>(action: &'static str, id: Id<K>, generation: i64) -> Self {
        Self::named(action, K::NAME, &id.to_string(), generation)
    }

    /// The same for what has a name of its own instead of an id.
    pub fn named(action: &'static str, kind: &'static str, name: &str, generation: i64) -> Self {
        Self {
            action,
            resource_kind: kind,
            resource_id: name.to_owned(),
            organization: None,
            project: None,
            generation,
            before: None,
            after: None,
            event: None,
        }
    }

    #[must_use]
    pub fn in_organization(mut self, organization: &Uuid) -> Self {
        self.organization = Some(*organization);
        self
    }

    #[must_use]
    pub fn in_project(mut self, project: &Uuid) -> Self {
        self.project = Some(*project);
        self
    }

    #[must_use]
    pub fn before(mut self, value: &impl Serialize) -> Self {
        self.before = Some(raw(value));
        self
    }

    #[must_use]
    pub fn after(mut self, value: &impl Serialize) -> Self {
        self.after = Some(raw(value));
        self
    }

    #[must_use]
    pub fn event<E: Event>(mut self, event: &E) -> Self {
        self.event = Some(DraftEvent { event_type: E::TYPE, data: raw(event) });
        self
    }
}

/// Serialisation of our own types cannot fail: they have string keys and no custom serialiser that errs.
fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value)
        .or_else(|error| serde_json::value::to_raw_value(&Value::String(format!("unserialisable: {error}"))))
        .unwrap_or_default()
}
