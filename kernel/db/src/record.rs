//! How changes become audit entries and outbox events: one statement for any number of them.

use authz::{ActorKind, Context};
use serde::Serialize as _;
use tokio_postgres::types::ToSql;
use types::{IdMaker, Kind, Timestamp};
use uuid::Uuid;

use crate::change::Change;

pub(crate) const RECORD: &str = "
WITH change AS (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                         $8::text[], $9::text[], $10::text[], $11::text[])
        AS c (id, org_id, project_id, action, resource_kind, resource_id, generation, before, after, event_type, event_data)
), entry AS (
    INSERT INTO spine.audit_entry (id, at, org_id, project_id, actor_kind, actor_id, behalf_kind, behalf_id, credential, action,
        resource_kind, resource_id, generation, before, after, correlation_id, causation_id, policy_version)
    SELECT id, $12, org_id, project_id, $13, $14, $15, $16, $21, action,
        resource_kind, resource_id, generation, before::json, after::json, $17, $18, $19 FROM change
)
INSERT INTO spine.outbox (id, at, org_id, project_id, type, subject, generation, data, correlation_id, causation_id, traceparent)
SELECT id, $12, org_id, project_id, event_type, resource_id, generation, event_data::json, $17, $18, $20
FROM change WHERE event_type IS NOT NULL";

/// The same for the one change most transactions make: plain parameters cost PostgreSQL less than arrays of one.
pub(crate) const RECORD_ONE: &str = "
WITH entry AS (
    INSERT INTO spine.audit_entry (id, at, org_id, project_id, actor_kind, actor_id, behalf_kind, behalf_id, credential, action,
        resource_kind, resource_id, generation, before, after, correlation_id, causation_id, policy_version)
    VALUES ($1, $12, $2, $3, $13, $14, $15, $16, $21, $4, $5, $6, $7, $8::text::json, $9::text::json, $17, $18, $19)
)
INSERT INTO spine.outbox (id, at, org_id, project_id, type, subject, generation, data, correlation_id, causation_id, traceparent)
SELECT $1::uuid, $12::timestamptz, $2::uuid, $3::uuid, $10, $6::text, $7::bigint, $11::text::json, $17::uuid, $18::text, $20
WHERE $10::text IS NOT NULL";

pub(crate) const KEEP_RESULT: &str = "
INSERT INTO spine.idempotency (actor, operation, key_hash, at, body_hash, result) VALUES ($1, $2, $3, $4, $5, $6::text::json)";

/// An audit entry and its event share one id.
enum Entry {}
impl Kind for Entry {
    const PREFIX: &'static str = "aud";
    const NAME: &'static str = "audit_entry";
}

/// The parameters of [`RECORD`], column by column.
pub(crate) struct Rows<'a> {
    ids: Vec<Uuid>,
    organizations: Vec<Option<Uuid>>,
    projects: Vec<Option<Uuid>>,
    actions: Vec<&'a str>,
    resource_kinds: Vec<&'a str>,
    resource_ids: Vec<&'a str>,
    generations: Vec<i64>,
    befores: Vec<Option<&'a str>>,
    afters: Vec<Option<&'a str>>,
    event_types: Vec<Option<&'a str>>,
    event_data: Vec<Option<&'a str>>,
    at: Timestamp,
    actor_kind: String,
    actor_id: &'a str,
    behalf_kind: Option<String>,
    behalf_id: Option<&'a str>,
    credential: Option<&'a str>,
    correlation_id: &'a Uuid,
    causation_id: Option<&'a str>,
    policy_version: i64,
    traceparent: Option<&'a str>,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(
        changes: &'a [Change],
        context: &'a Context,
        policy_version: u64,
        at: Timestamp,
        ids: &IdMaker,
    ) -> Self {
        let behalf = context.actor.on_behalf_of.as_ref();
        Self {
            ids: changes.iter().map(|_| *ids.make::<Entry>().as_uuid()).collect(),
            organizations: changes.iter().map(|c| c.organization).collect(),
            projects: changes.iter().map(|c| c.project).collect(),
            actions: changes.iter().map(|c| c.action).collect(),
            resource_kinds: changes.iter().map(|c| c.resource_kind).collect(),
            resource_ids: changes.iter().map(|c| c.resource_id.as_str()).collect(),
            generations: changes.iter().map(|c| c.generation).collect(),
            befores: changes.iter().map(|c| c.before.as_deref().map(|raw| raw.get())).collect(),
            afters: changes.iter().map(|c| c.after.as_deref().map(|raw| raw.get())).collect(),
            event_types: changes.iter().map(|c| c.event.as_ref().map(|event| event.event_type)).collect(),
            event_data: changes.iter().map(|c| c.event.as_ref().map(|event| event.data.get())).collect(),
            at,
            actor_kind: kind_name(context.actor.subject.kind),
            actor_id: &context.actor.subject.id,
            behalf_kind: behalf.map(|subject| kind_name(subject.kind)),
            behalf_id: behalf.map(|subject| subject.id.as_str()),
            credential: context.actor.credential.as_deref(),
            correlation_id: context.correlation_id.as_uuid(),
            causation_id: context.causation_id.as_deref(),
            policy_version: i64::try_from(policy_version).unwrap_or(i64::MAX),
            traceparent: context.traceparent.as_deref(),
        }
    }

    /// The statement that writes these rows, and its parameters.
    pub(crate) fn statement(&self) -> (&'static str, [&(dyn ToSql + Sync); 21]) {
        if self.ids.len() == 1 { (RECORD_ONE, self.params_of_one()) } else { (RECORD, self.params()) }
    }

    fn params_of_one(&self) -> [&(dyn ToSql + Sync); 21] {
        let mut params = self.params();
        let first: [&(dyn ToSql + Sync); 11] = [
            &self.ids[0],
            &self.organizations[0],
            &self.projects[0],
            &self.actions[0],
            &self.resource_kinds[0],
            &self.resource_ids[0],
            &self.generations[0],
            &self.befores[0],
            &self.afters[0],
            &self.event_types[0],
            &self.event_data[0],
        ];
        params[..11].copy_from_slice(&first);
        params
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 21] {
        [
            &self.ids,
            &self.organizations,
            &self.projects,
            &self.actions,
            &self.resource_kinds,
            &self.resource_ids,
            &self.generations,
            &self.befores,
            &self.afters,
            &self.event_types,
            &self.event_data,
            &self.at,
            &self.actor_kind,
            &self.actor_id,
            &self.behalf_kind,
            &self.behalf_id,
            &self.correlation_id,
            &self.causation_id,
            &self.policy_version,
            &self.traceparent,
            &self.credential,
        ]
    }
}

/// The kind as it is spelled on the wire.
fn kind_name(kind: ActorKind) -> String {
    match kind.serialize(serde_json::value::Serializer) {
        Ok(serde_json::Value::String(name)) => name,
        _ => format!("{kind:?}"),
    }
}
