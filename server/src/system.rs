//! What belongs to no single domain: the event stream, and a look at what the machinery could not digest.

use std::sync::Arc;

use authz::{ActionInfo, Decider, DomainPolicy, Resource, action, authorize};
use db::migrate::MigrationSet;
use db::{Db, Settings};
use domain::Domain;
use events::{CloudEvent, EventCursor, Feed, Filter, ParkedEvent};
use futures::StreamExt as _;
use iam::OrganizationId;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use types::{Result, Text};
use web::{Call, Endpoint, Nothing, Operation, Page, PageLimit, Reply, SseEvent, page_limit};

action!(EventsRead, "system.events.read", "Follow events");

action!(ParkedEventsRead, "system.parked_events.read", "See events that consumers could not digest");

/// Who may follow events.
pub const POLICY: DomainPolicy = DomainPolicy {
    schema: include_str!("system.cedarschema"),
    policies: include_str!("system.cedar"),
    actions: || vec![ActionInfo::of::<EventsRead>(), ActionInfo::of::<ParkedEventsRead>()],
};

#[derive(Clone)]
pub struct System {
    db: Db,
    feed: Feed,
    settings: Settings,
    decider: Arc<dyn Decider>,
    stop: CancellationToken,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Only events of this organization. Tenants may leave it out and get their own; operators then get all.
    org_id: Option<OrganizationId>,
    /// Only events of this type; `gpuaas.iam.*` takes all that begin so.
    #[serde(rename = "type")]
    event_type: Option<Text<200>>,
    /// Only events about the resource with this id.
    subject: Option<Text<200>>,
    /// Go on after this event's `id:`. Without it, the stream starts now; `0` starts at the oldest event kept.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ParkedQuery {
    /// Most items to return.
    limit: Option<PageLimit>,
}

impl System {
    pub fn new(
        db: Db,
        feed: Feed,
        settings: Settings,
        decider: Arc<dyn Decider>,
        stop: CancellationToken,
    ) -> Self {
        Self { db, feed, settings, decider, stop }
    }

    pub fn domain(&self) -> Domain {
        Domain {
            name: "system",
            migrations: MigrationSet { domain: "system", migrations: &[] },
            endpoints: self.endpoints(),
            tags: &[("events", "What happened, in order, live and from any point kept.")],
            events: Vec::new(),
            errors: Vec::new(),
            settings: vec![crate::health::LATE_SECONDS.info()],
            projections: Vec::new(),
        }
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        let (follow, parked) = (self.clone(), self.clone());
        vec![
            Operation::<Nothing, EventsQuery>::get("/api/v1/events", "events.follow")
                .about(
                    "Follow events",
                    "Server-sent events: `id` is a cursor, `event` the type, `data` a CloudEvent. Reconnect with \
                     `Last-Event-ID` and nothing is missed; a cursor older than what is kept gets 410.",
                )
                .permission::<EventsRead>()
                .errors([&events::CURSOR_EXPIRED, &events::INVALID_CURSOR])
                .cli("events")
                .stream::<CloudEvent, _, _>(move |call| {
                    let system = follow.clone();
                    async move { system.follow(call).await }
                }),
            Operation::<Nothing, ParkedQuery>::get("/api/v1/events/parked", "events.parked")
                .about("List parked events", "Events a consumer could not digest after several attempts, newest first.")
                .permission::<ParkedEventsRead>()
                .cli("events parked")
                .handler(move |call| {
                    let system = parked.clone();
                    async move { system.parked(call).await }
                }),
        ]
    }

    async fn follow(&self, call: Call<Nothing, EventsQuery>) -> Result<web::Response> {
        let organization = call.query.org_id.map(|id| *id.as_uuid()).or(call.home);
        let resource = match organization {
            Some(organization) => Resource::in_organization("event", organization, None),
            None => Resource::platform("event"),
        };
        authorize::<EventsRead>(&*self.decider, &call.context, resource)?;
        let cursor = match call.last_event_id.or(call.query.cursor).as_deref() {
            None => self.feed.cursor(),
            Some("0") => self.feed.oldest().await?,
            Some(text) => text.parse::<EventCursor>()?,
        };
        self.feed.check(cursor).await?;
        let filter = Filter {
            organization,
            event_type: call.query.event_type.map(Text::into_string),
            subject: call.query.subject.map(Text::into_string),
        };
        let stop = self.stop.clone().cancelled_owned();
        let events = self.feed.follow(cursor, filter).take_until(stop).map(move |event| SseEvent {
            id: EventCursor { epoch: cursor.epoch, position: event.position }.to_string(),
            event: event.event_type.clone(),
            data: serde_json::to_string(&event.to_cloud_event()).unwrap_or_default(),
        });
        Ok(web::stream_response(events))
    }

    async fn parked(&self, call: Call<Nothing, ParkedQuery>) -> Result<Reply<Page<ParkedEvent>>> {
        let permit =
            authorize::<ParkedEventsRead>(&*self.decider, &call.context, Resource::platform("parked_event"))?;
        let limit = page_limit(call.query.limit, &self.settings);
        let items = events::parked(&self.db.read(&permit), limit).await?;
        Ok(Reply::new(Page { items, next_cursor: None }))
    }
}
