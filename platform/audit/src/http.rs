//! Routes and wire types of the audit domain.

use authz::CorrelationId;
use schemars::JsonSchema;
use serde::Deserialize;
use types::{Moment, Text, Timestamp};
use web::{Bounded, Call, Endpoint, Nothing, Operation, Reply, on, page_limit};

use crate::Audit;
use crate::entries::EntryFilter;
use crate::model::*;
use crate::policy::{EntryRead, LogRead};
use crate::settings::PAGE_LIMIT_MAX;

pub const TAGS: &[(&str, &str)] =
    &[("audit", "Who did what: every change, sealed into a log that cannot be rewritten unnoticed.")];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OrganizationPath {
    /// The organization.
    org_id: OrganizationId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EntryListQuery {
    /// Only what this actor did, by id.
    actor: Option<Text<200>>,
    /// Only what was done to this resource, by id.
    resource: Option<Text<200>>,
    /// Only this action; `iam.project.*` takes all that begin so.
    action: Option<Text<200>>,
    /// Only what one request caused.
    correlation_id: Option<CorrelationId>,
    /// Only entries with this number or a later one. To follow the log: the `size` of the checkpoint of the listing before.
    since: Option<u64>,
    /// Only entries at this time or later. The time is of the request, so entries need not come in its order.
    from: Option<Moment>,
    /// Only entries before this time.
    to: Option<Moment>,
    /// Leave the proofs out, which makes a page cheaper.
    #[serde(default)]
    without_proofs: bool,
    /// Most items to return.
    limit: Option<Bounded<1, 100>>,
    /// Where to go on, from `next_cursor`.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckpointQuery {
    /// The size of a checkpoint you hold: the reply then proves that the log has only been added to since.
    since: Option<u64>,
}

pub fn endpoints(audit: &Audit) -> Vec<Endpoint> {
    vec![
        Operation::<OrganizationPath, EntryListQuery>::get("/api/v1/orgs/{org_id}/audit", "audit.list")
            .about(
                "List an organization's audit log",
                "Every change in the organization, by its number in the sealed log, each with the proof that it is there. \
                 An entry appears once it is sealed, about a second after its change, and never before one that was \
                 shown: read to the last page, then go on with `since`. A page given to someone outside the organization is itself recorded in it.",
            )
            .permission::<EntryRead>()
            .audited_read()
            .errors([&events::INVALID_CURSOR, &LOG_DAMAGED])
            .cli("audit list")
            .mcp()
            .handler(on!(audit, |call: Call<OrganizationPath, EntryListQuery>| {
                let filter = filter(call.query, &audit);
                audit.entry_list(&call.context, call.path.org_id, &filter).await.map(Reply::new)
            })),
        Operation::<Nothing, EntryListQuery>::get("/api/v1/audit", "audit.log.list")
            .about(
                "List the audit log of the whole platform",
                "Every change in every organization, and those that belong to none, by its number in the sealed log, each \
                 with the proof that it is there. An entry appears once it is sealed, about a second after its change, and \
                 never before one that was shown: read to the last page, then go on with `since`. For operators and auditors of the platform; each page is recorded, also in \
                 the organizations it shows.",
            )
            .permission::<LogRead>()
            .audited_read()
            .errors([&events::INVALID_CURSOR, &LOG_DAMAGED])
            .cli("audit log")
            .handler(on!(audit, |call: Call<Nothing, EntryListQuery>| {
                let filter = filter(call.query, &audit);
                audit.log_list(&call.context, &filter).await.map(Reply::new)
            })),
        Operation::<Nothing, CheckpointQuery>::get("/api/v1/audit/checkpoint", "audit.checkpoint")
            .about(
                "Get the audit log's newest checkpoint",
                "A signed statement of the log's size and root. Keep one elsewhere: whoever has it can tell whether \
                 anything before it was changed. Needs no credential.",
            )
            .errors([&NOTHING_SEALED, &CHECKPOINT_AHEAD, &LOG_DAMAGED])
            .cli("audit checkpoint")
            .handler(on!(audit, |call: Call<Nothing, CheckpointQuery>| {
                audit.checkpoint(call.query.since).await.map(Reply::new)
            })),
        Operation::<Nothing, Nothing>::get("/api/v1/audit/key", "audit.key")
            .about(
                "Get the audit log's public keys",
                "The keys that sign checkpoints. Keep a copy elsewhere and compare. Needs no credential.",
            )
            .errors([&NOTHING_SEALED])
            .cli("audit key")
            .handler(on!(audit, |_call: Call<Nothing, Nothing>| audit.keys().await.map(Reply::new))),
    ]
}

fn filter(query: EntryListQuery, audit: &Audit) -> EntryFilter {
    let most = audit.settings.get(&PAGE_LIMIT_MAX);
    let asked = query.limit.and_then(|limit| u32::try_from(limit.get()).ok());
    let limit = asked.unwrap_or_else(|| page_limit(None, &audit.settings)).min(most);
    EntryFilter {
        actor: query.actor.map(Text::into_string),
        resource: query.resource.map(Text::into_string),
        action: query.action.map(Text::into_string),
        correlation_id: query.correlation_id,
        since: query.since,
        // Nothing is older, and the database knows fewer years than the calendar.
        from: query.from.map(|at| at.timestamp().max(Timestamp::UNIX_EPOCH)),
        to: query.to.map(|at| at.timestamp().max(Timestamp::UNIX_EPOCH)),
        proofs: !query.without_proofs,
        limit,
        cursor: query.cursor,
    }
}
