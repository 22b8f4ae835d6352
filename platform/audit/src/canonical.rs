//! The exact bytes of an entry: what is hashed, exported, replicated and shown to a tenant.
//!
//! One JSON object on one line, fields in a fixed order, made from the row's columns alone; so the bytes can be made
//! again at any time, and a row that was changed afterwards no longer gives the bytes that were sealed. `before` and
//! `after` are embedded as they were written (the columns are `json`, which keeps its text), because parsing and
//! printing again would make the bytes depend on our JSON library's taste in numbers.
//!
//! The entry's number comes first. It is part of what is hashed, so an entry cannot be moved; the verifier reads it
//! without a parser. `v` is the version of this layout: a change of it is a new number, never a new meaning.
//!
//! A state too large for a line is replaced by its digest instead of stopping the log: an entry that cannot be sealed
//! would block everything behind it, and whoever writes large states could then blind the auditor.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use merkle::export::LINE_BYTES_MAX;
use serde::Serialize;
use types::clock::format_micros;
use types::{Id, Kind, Timestamp};
use uuid::Uuid;

use crate::model::{EntryId, OrganizationId, ProjectId};

/// An entry as `spine.audit_entry` holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryRow {
    pub xid: String,
    pub id: Uuid,
    pub at: Timestamp,
    pub organization: Option<Uuid>,
    pub project: Option<Uuid>,
    pub actor_kind: String,
    pub actor_id: String,
    pub behalf_kind: Option<String>,
    pub behalf_id: Option<String>,
    pub credential: Option<String>,
    pub action: String,
    pub resource_kind: String,
    pub resource_id: String,
    pub generation: i64,
    pub before: Option<String>,
    pub after: Option<String>,
    pub correlation_id: Uuid,
    pub causation_id: Option<String>,
    pub policy_version: i64,
}

/// Left for everything but `before` and `after`, whose columns are ids and names of ours.
// fixed: part of the layout; another number would give old entries other bytes
const REST_BYTES_MAX: usize = 64 * 1024;

impl EntryRow {
    /// The line of entry number `index`, without its newline.
    pub(crate) fn line(&self, index: u64) -> String {
        let mut line = Line::new(index, self.before.as_deref(), self.after.as_deref());
        line.text("id", &EntryId::from_uuid(self.id).to_string());
        line.text("transaction", &self.xid);
        line.text("at", &format_micros(self.at));
        line.optional("org_id", id_text(self.organization.map(OrganizationId::from_uuid)));
        line.optional("project_id", id_text(self.project.map(ProjectId::from_uuid)));
        line.json("actor", &self.actor());
        line.text("action", &self.action);
        line.json("resource", &Resource { kind: &self.resource_kind, id: &self.resource_id });
        line.json("generation", &self.generation);
        let states = [self.before.as_deref(), self.after.as_deref()].into_iter().flatten();
        let fits = states.map(str::len).sum::<usize>() <= LINE_BYTES_MAX - REST_BYTES_MAX;
        line.state("before", self.before.as_deref(), fits);
        line.state("after", self.after.as_deref(), fits);
        line.text("correlation_id", &authz::CorrelationId::from_uuid(self.correlation_id).to_string());
        line.optional("causation_id", self.causation_id.clone());
        line.json("policy_version", &self.policy_version);
        line.finish()
    }

    fn actor(&self) -> Actor<'_> {
        let on_behalf_of = match (&self.behalf_kind, &self.behalf_id) {
            (Some(kind), Some(id)) => Some(Resource { kind, id }),
            _ => None,
        };
        Actor {
            kind: &self.actor_kind,
            id: &self.actor_id,
            credential: self.credential.as_deref(),
            on_behalf_of,
        }
    }
}

#[derive(Serialize)]
struct Actor<'a> {
    kind: &'a str,
    id: &'a str,
    credential: Option<&'a str>,
    on_behalf_of: Option<Resource<'a>>,
}

#[derive(Serialize)]
struct Resource<'a> {
    kind: &'a str,
    id: &'a str,
}

/// A state that is not in the line, by its digest.
#[derive(Serialize)]
struct Omitted {
    sha256: String,
    bytes: usize,
}

/// A JSON object under construction. Serialising strings and numbers to memory cannot fail; should it ever, the field
/// is null rather than the log broken.
struct Line(String);

impl Line {
    fn new(index: u64, before: Option<&str>, after: Option<&str>) -> Self {
        const FIXED_PART_BYTES: usize = 768;
        let states = before.map_or(0, str::len) + after.map_or(0, str::len);
        let mut text = String::with_capacity(FIXED_PART_BYTES + states.min(LINE_BYTES_MAX));
        // Writing to a String cannot fail.
        let _ = write!(text, "{{\"index\":{index},\"v\":1");
        Self(text)
    }

    fn json(&mut self, name: &str, value: &impl Serialize) {
        let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        self.raw(name, &text);
    }

    fn text(&mut self, name: &str, value: &str) {
        self.json(name, &value);
    }

    fn optional(&mut self, name: &str, value: Option<String>) {
        self.json(name, &value);
    }

    fn state(&mut self, name: &str, json: Option<&str>, fits: bool) {
        match json {
            None => self.raw(name, "null"),
            Some(json) if fits => self.raw(name, json),
            Some(json) => {
                self.raw(name, "null");
                let omitted = Omitted { sha256: hex(json.as_bytes()), bytes: json.len() };
                self.json(&format!("{name}_omitted"), &omitted);
            }
        }
    }

    /// A control character in valid JSON is white space between tokens (within strings it is escaped), so a blank in
    /// its place changes no value and keeps the line a line.
    fn raw(&mut self, name: &str, json: &str) {
        let _ = write!(self.0, ",\"{name}\":");
        if json.bytes().any(|byte| byte < b' ') {
            self.0.extend(json.chars().map(|c| if c < ' ' { ' ' } else { c }));
        } else {
            self.0.push_str(json);
        }
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn id_text<K: Kind>(id: Option<Id<K>>) -> Option<String> {
    id.map(|id| id.to_string())
}

fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
