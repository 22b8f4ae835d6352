//! Reading the log: an organization's entries or everybody's, with proofs; the newest checkpoint; the log's keys.
//!
//! Reads by auditors are audited too. Which reads: every page that is given to a caller who holds no role in the
//! organization (operators, auditors, support), recorded in that organization, so its people see who looked at what. A
//! page of everybody's entries is recorded in each organization it shows, and for the platform with what was asked.
//! Not recorded: an organization's own people reading their own log, which would make the log mostly about itself. The
//! entry is committed before the page is sent; a page that cannot be recorded is not given.
//!
//! A listing goes by the entries' numbers, so it shows sealed entries only, and ends at the checkpoint that was newest when
//! it began: all its pages prove towards that one, and the entries made by reading page after page never become further
//! pages. Whoever asks again with `since` set to that checkpoint's size gets what was sealed after it: nothing twice, and
//! nothing is missed, however late it was committed.

use std::collections::BTreeMap;

use authz::{Action, Context, Resource, authorize};
use db::{Change, Reader, Row};
use merkle::ProofPlan;
use serde::{Deserialize, Serialize};
use types::{Cursor, Kind as _, Result, Timestamp};

use crate::model::*;
use crate::policy::{EntryRead, LogRead};
use crate::proofs::{Needs, damaged, stored_hashes, texts};
use crate::{Audit, store};

/// Which entries to list.
#[derive(Debug, Clone, Default, Serialize)]
pub struct EntryFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// An action, or the beginning of one followed by `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<authz::CorrelationId>,
    /// Number of the first entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    #[serde(skip)]
    pub proofs: bool,
    #[serde(skip)]
    pub limit: u32,
    #[serde(skip)]
    pub cursor: Option<String>,
}

/// Number of the entry a page starts with, and the size of the checkpoint the listing ends at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    index: u64,
    until: u64,
}

/// What is kept about a reading. An organization is not told what was asked of the whole platform.
#[derive(Serialize)]
struct Reading<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<&'a EntryFilter>,
    entries: usize,
    first: Option<EntryId>,
    last: Option<EntryId>,
}

impl<'a> Reading<'a> {
    fn of(filter: Option<&'a EntryFilter>, items: &[&ListedEntry]) -> Self {
        Self {
            filter,
            entries: items.len(),
            first: items.first().map(|item| item.entry.id),
            last: items.last().map(|item| item.entry.id),
        }
    }
}

impl Audit {
    /// A page of an organization's log, oldest first.
    pub async fn entry_list(
        &self,
        context: &Context,
        org_id: OrganizationId,
        filter: &EntryFilter,
    ) -> Result<EntryPage> {
        let resource = Resource::in_organization(EntryKind::NAME, *org_id.as_uuid(), None);
        let permit = authorize::<EntryRead>(&*self.decider, context, resource)?;
        let page = self.page(&self.db.read(&permit), Some(org_id), filter).await?;
        if !is_of(context, org_id) {
            let reading = Reading::of(Some(filter), &page.items.iter().collect::<Vec<_>>());
            let change = self.reading::<EntryRead>(&reading).in_organization(org_id.as_uuid());
            self.db.change(context, permit, async move |tx| Ok(tx.record(change))).await?;
        }
        Ok(page)
    }

    /// A page of everybody's log, and of what belongs to no organization, oldest first.
    pub async fn log_list(&self, context: &Context, filter: &EntryFilter) -> Result<EntryPage> {
        let permit = authorize::<LogRead>(&*self.decider, context, Resource::platform(EntryKind::NAME))?;
        let page = self.page(&self.db.read(&permit), None, filter).await?;
        let mut shown: BTreeMap<OrganizationId, Vec<&ListedEntry>> = BTreeMap::new();
        for item in &page.items {
            if let Some(org_id) = item.entry.org_id.filter(|org_id| !is_of(context, *org_id)) {
                shown.entry(org_id).or_default().push(item);
            }
        }
        let whole = Reading::of(Some(filter), &page.items.iter().collect::<Vec<_>>());
        let mut changes = vec![self.reading::<LogRead>(&whole)];
        changes.extend(shown.iter().map(|(org_id, items)| {
            self.reading::<LogRead>(&Reading::of(None, items)).in_organization(org_id.as_uuid())
        }));
        self.db.change(context, permit, async move |tx| Ok(tx.record_many(changes))).await?;
        Ok(page)
    }

    /// A page of one organization's entries, or of all.
    async fn page(
        &self,
        reader: &Reader,
        org_id: Option<OrganizationId>,
        filter: &EntryFilter,
    ) -> Result<EntryPage> {
        let query = query_name(org_id, filter);
        let start = page_start(&query, filter)?;
        let newest = reader.query_opt(store::CHECKPOINT_UP_TO, &[&store::signed(start.until)]).await?;
        let checkpoint = newest.map(|row| store::checkpoint(&row));
        let until = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.size);
        let (action, prefix) = match filter.action.as_deref() {
            Some(text) => match text.strip_suffix('*') {
                Some(prefix) => (None, Some(prefix)),
                None => (Some(text), None),
            },
            None => (None, None),
        };
        let correlation_id = filter.correlation_id.as_ref().map(|id| *id.as_uuid());
        let limit = i64::from(filter.limit) + 1;
        let filters: db::Params<'_> = &[
            &store::signed(start.index),
            &store::signed(until),
            &filter.from,
            &filter.to,
            &filter.actor,
            &filter.resource,
            &action,
            &prefix,
            &correlation_id,
            &limit,
        ];
        let mut rows = match &org_id {
            None => reader.query(store::LOG_LIST, filters).await?,
            Some(org_id) => {
                let rows = reader.query(store::ENTRY_LIST, &[filters, &[org_id.as_uuid()]].concat()).await?;
                if rows.is_empty() {
                    self.require_organization(reader, org_id).await?;
                }
                rows
            }
        };
        let more = rows.len() > filter.limit as usize;
        rows.truncate(filter.limit as usize);
        let mut items = rows.iter().map(listed).collect::<Result<Vec<_>>>()?;
        let next_cursor = items
            .last()
            .filter(|_| more)
            .map(|last| Cursor::encode(&query, &Place { index: last.sealed.index + 1, until }).into_string());
        if filter.proofs {
            prove(reader, &mut items, until).await?;
        }
        Ok(EntryPage { items, checkpoint, next_cursor })
    }

    async fn require_organization(&self, reader: &Reader, org_id: &OrganizationId) -> Result<()> {
        match reader.query_opt(store::ORGANIZATION_EXISTS, &[org_id.as_uuid()]).await? {
            Some(_) => Ok(()),
            None => Err(authz::NOT_FOUND.error(authz::not_found_message("organization"))),
        }
    }

    fn reading<A: Action>(&self, reading: &Reading<'_>) -> Change {
        let id: ReadingId = self.db.make_id();
        Change::new(A::NAME, id, 1).after(reading)
    }

    /// The newest checkpoint; with `since`, also the proof that the log of that size is its beginning. Public: a
    /// checkpoint names no tenant, and the more people keep one, the harder the past is to change.
    pub async fn checkpoint(&self, since: Option<u64>) -> Result<CheckpointReply> {
        let internal = self.db.internal("audit.checkpoint");
        let row = internal.query_opt(store::CHECKPOINT_NEWEST, &[]).await?;
        let Some(row) = row else {
            return Err(NOTHING_SEALED.error("no entry has been sealed yet"));
        };
        let checkpoint = store::checkpoint(&row);
        let consistency = match since {
            None => None,
            Some(since) if since > checkpoint.size => {
                let size = checkpoint.size;
                return Err(CHECKPOINT_AHEAD.error(format!("the log has {size} entries, not {since}")));
            }
            Some(since) => {
                let plan = ProofPlan::consistency(since, checkpoint.size).map_err(damaged)?;
                let needs = Needs::of(std::slice::from_ref(&plan));
                let rows = internal.query(store::HASH_RANGES, &needs.params()).await?;
                Some(texts(&plan.prove(&stored_hashes(&rows)).map_err(damaged)?))
            }
        };
        Ok(CheckpointReply { checkpoint, consistency })
    }

    /// The log's public keys.
    pub async fn keys(&self) -> Result<LogKeys> {
        let rows = self.db.internal("audit.keys").query(store::KEY_LIST, &[]).await?;
        let keys = rows
            .iter()
            .map(|row| LogKey {
                verifier_key: row.get(0),
                from_size: store::unsigned(row.get(1)),
                handover: row.get(2),
            })
            .collect::<Vec<_>>();
        if keys.is_empty() {
            return Err(NOTHING_SEALED.error("no entry has been sealed yet, so no key has been used"));
        }
        Ok(LogKeys { keys })
    }
}

/// Does the caller belong to the organization?
fn is_of(context: &Context, org_id: OrganizationId) -> bool {
    context.standing.belongs_to(*org_id.as_uuid())
}

/// The listing a cursor belongs to.
fn query_name(org_id: Option<OrganizationId>, filter: &EntryFilter) -> String {
    let filters = serde_json::to_string(filter).unwrap_or_default();
    let whose = org_id.map_or("everybody".to_owned(), |org_id| org_id.to_string());
    format!("audit?org={whose}&{filters}")
}

/// Where the page begins. A cursor is not signed: it may narrow what the filters say, not widen it.
fn page_start(query: &str, filter: &EntryFilter) -> Result<Place> {
    let first = filter.since.unwrap_or(0);
    let Some(cursor) = filter.cursor.as_deref() else {
        return Ok(Place { index: first, until: u64::MAX });
    };
    let place: Place =
        Cursor::decode(cursor, query).map_err(|error| ::events::INVALID_CURSOR.error(error.to_string()))?;
    Ok(Place { index: place.index.max(first), ..place })
}

/// An entry for a reader is read from the very bytes that are sealed, so the two cannot differ.
fn listed(row: &Row) -> Result<ListedEntry> {
    let index = store::row_index(row).unwrap_or_default();
    let line = store::entry_row(row).line(index);
    let entry = serde_json::from_str(&line)
        .map_err(|error| LOG_DAMAGED.error("an entry cannot be read").caused_by(error))?;
    Ok(ListedEntry { entry, sealed: Sealed { index, line, proof: None } })
}

/// Adds the proofs towards the checkpoint of that size, which covers all the entries.
async fn prove(reader: &Reader, items: &mut [ListedEntry], size: u64) -> Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    let plans = items.iter().map(|item| ProofPlan::inclusion(item.sealed.index, size));
    let plans: Vec<ProofPlan> = plans.collect::<std::result::Result<_, _>>().map_err(damaged)?;
    let hashes = stored_hashes(&reader.query(store::HASH_RANGES, &Needs::of(&plans).params()).await?);
    for (item, plan) in items.iter_mut().zip(plans) {
        item.sealed.proof = Some(texts(&plan.prove(&hashes).map_err(damaged)?));
    }
    Ok(())
}
