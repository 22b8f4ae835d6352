//! What readers get, what they can prove with it, and what is written down about their reading.

use std::sync::Arc;

use authz::Context;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use iam::OrganizationId;
use merkle::KeyChain;
use tokio_postgres::Client;
use tower::ServiceExt as _;
use types::ErrorKind;
use uuid::Uuid;
use web::{Authenticator, Credential, Found, Gate, Identity, Limits};

use super::fixture::World;
use crate::{EntryFilter, EntryPage, PageProof, TenantError, trusted_keys, verify_growth, verify_page};

fn filter(limit: u32) -> EntryFilter {
    EntryFilter { proofs: true, limit, ..EntryFilter::default() }
}

/// A reply as it comes over the wire.
fn over_the_wire(page: &EntryPage) -> EntryPage {
    serde_json::from_str(&serde_json::to_string(page).unwrap()).unwrap()
}

/// What follows from the first key of the log, which a tenant kept.
async fn keys(world: &World) -> KeyChain {
    trusted_keys(world.key.verifier().clone(), &world.audit.keys().await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_tenant_proves_its_entries_with_nothing_but_the_replies() {
    let world = World::new().await;
    let (ours, theirs) = (world.organization(), world.organization());
    for _ in 0..40 {
        world.changes(ours, 3).await;
        world.changes(theirs, 4).await;
        world.seal_all().await;
    }
    let keys = keys(&world).await;
    let (mut seen, mut cursor, mut checkpoints) = (Vec::new(), None, Vec::new());
    loop {
        let filter = EntryFilter { cursor, ..filter(50) };
        let page = over_the_wire(&world.audit.entry_list(&world.owner(ours), ours, &filter).await.unwrap());
        assert_eq!(verify_page(&page, &keys).unwrap(), PageProof { proven: page.items.len(), unproven: 0 });
        assert!(page.items.iter().all(|item| item.entry.org_id == Some(ours)));
        seen.extend(page.items.iter().map(|item| item.entry.id));
        checkpoints.push(page.checkpoint.unwrap().size);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
        // What is sealed meanwhile belongs to a later listing.
        world.change(ours).await;
        world.seal_all().await;
    }
    assert_eq!(seen.len(), 120);
    seen.dedup();
    assert_eq!(seen.len(), 120);
    assert_eq!(checkpoints, [280; 3], "one listing, one checkpoint");
}

/// Reads the log from where it was left, page by page.
struct Follower {
    org: OrganizationId,
    since: u64,
    seen: Vec<Uuid>,
}

impl Follower {
    async fn read(&mut self, world: &World) {
        let mut cursor = None;
        loop {
            let filter = EntryFilter { cursor, since: Some(self.since), ..filter(1) };
            let page = world.audit.entry_list(&world.owner(self.org), self.org, &filter).await.unwrap();
            self.seen.extend(page.items.iter().map(|item| *item.entry.id.as_uuid()));
            cursor = page.next_cursor;
            if cursor.is_none() {
                self.since = page.checkpoint.map_or(self.since, |checkpoint| checkpoint.size);
                return;
            }
        }
    }
}

/// Writes an entry whose time is when the client's transaction began.
async fn insert(client: &Client, org: OrganizationId, id: u128) {
    let sql =
        "INSERT INTO spine.audit_entry (id, at, org_id, actor_kind, actor_id, action, resource_kind, resource_id,
                   generation, correlation_id, policy_version)
               VALUES ($1, now(), $2, 'system', 'test', 'test.thing.change', 'thing', 'thg_1', 1, $1, 1)";
    client.execute(sql, &[&Uuid::from_u128(id), org.as_uuid()]).await.unwrap();
}

#[tokio::test]
async fn who_follows_the_log_misses_nothing_that_is_committed_late() {
    let world = World::new().await;
    let org = world.organization();
    let (written, unwritten, quick) =
        (world.superuser().await, world.superuser().await, world.superuser().await);
    let mut follower = Follower { org, since: 0, seen: Vec::new() };
    // Two transactions that begin early and commit late: one has its place in the order already, the other has none.
    written.batch_execute("BEGIN").await.unwrap();
    unwritten.batch_execute("BEGIN").await.unwrap();
    unwritten.query_one("SELECT now()", &[]).await.unwrap();
    insert(&written, org, 1).await;
    for id in [2, 3] {
        insert(&quick, org, id).await;
    }
    world.seal().await.unwrap();
    follower.read(&world).await;
    written.batch_execute("COMMIT").await.unwrap();
    world.seal_all().await;
    follower.read(&world).await;
    assert_eq!(follower.seen.len(), 3);
    insert(&unwritten, org, 4).await;
    insert(&quick, org, 5).await;
    world.seal().await.unwrap();
    follower.read(&world).await;
    unwritten.batch_execute("COMMIT").await.unwrap();
    world.seal_all().await;
    follower.read(&world).await;
    let expected: Vec<Uuid> = [1, 2, 3, 4, 5].map(Uuid::from_u128).to_vec();
    assert_eq!(follower.seen, expected, "each once, in the order of the log");
}

#[tokio::test]
async fn a_listing_goes_on_from_one_server_to_the_next() {
    let world = World::new().await;
    let org = world.organization();
    world.changes(org, 3).await;
    world.seal_all().await;
    // Not sealed before the move: these get a place below all that is sealed, and numbers above.
    world.changes(org, 2).await;
    world.admin.batch_execute(crate::NEW_CLUSTER).await.unwrap();
    world.changes(org, 2).await;
    world.seal_all().await;
    let mut follower = Follower { org, since: 0, seen: Vec::new() };
    follower.read(&world).await;
    let rows = world.admin.query("SELECT entry_id FROM audit.leaf ORDER BY index", &[]).await.unwrap();
    let sealed: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!((follower.seen, follower.since), (sealed, 7));
}

#[tokio::test]
async fn a_lie_in_a_reply_is_noticed() {
    let world = World::new().await;
    let org = world.organization();
    world.changes(org, 5).await;
    world.seal_all().await;
    let keys = keys(&world).await;
    let page = world.audit.entry_list(&world.owner(org), org, &filter(10)).await.unwrap();
    assert_eq!(verify_page(&page, &keys).unwrap().proven, 5);

    let mut fields = page.clone();
    fields.items[2].entry.action = "something.else".to_owned();
    assert!(matches!(verify_page(&fields, &keys), Err(TenantError::Fields(_))));

    let mut both = fields.clone();
    let sealed = &mut both.items[2].sealed;
    sealed.line = sealed.line.replace("test.thing.change", "something.else");
    assert!(matches!(verify_page(&both, &keys), Err(TenantError::NotIncluded { .. })));

    let mut moved = page.clone();
    moved.items[2].sealed.index = 3;
    assert!(matches!(verify_page(&moved, &keys), Err(TenantError::Fields(_))));

    let stranger = merkle::SignerKey::from_seed("audit.test", &[9; 32]).unwrap();
    assert!(matches!(
        verify_page(&page, &KeyChain::new(vec![stranger.verifier().clone()])),
        Err(TenantError::Checkpoint(_))
    ));
}

#[tokio::test]
async fn a_kept_checkpoint_proves_that_the_log_only_grew() {
    let world = World::new().await;
    let org = world.organization();
    assert_eq!(world.audit.checkpoint(None).await.unwrap_err().code().code, "nothing_sealed");
    let mut kept = Vec::new();
    for _ in 0..6 {
        world.changes(org, 3).await;
        world.seal_all().await;
        kept.push(world.audit.checkpoint(None).await.unwrap().checkpoint);
    }
    let keys = keys(&world).await;
    for old in &kept {
        let reply = world.audit.checkpoint(Some(old.size)).await.unwrap();
        let proof = reply.consistency.unwrap();
        verify_growth(&old.note, &reply.checkpoint.note, &proof, &keys).unwrap();
        if old.size < reply.checkpoint.size {
            assert!(matches!(
                verify_growth(&old.note, &reply.checkpoint.note, &[], &keys),
                Err(TenantError::Rewritten(_))
            ));
        }
    }
    assert_eq!(world.audit.checkpoint(Some(99)).await.unwrap_err().code().code, "checkpoint_ahead");
}

#[tokio::test]
async fn filters_find_what_they_say() {
    let world = World::new().await;
    let org = world.organization();
    world.changes(org, 4).await;
    world.seal_all().await;
    let owner = world.owner(org);
    let all = world.audit.entry_list(&owner, org, &filter(10)).await.unwrap().items;
    let (first, third) = (&all[0].entry, &all[2].entry);
    let cases: Vec<(EntryFilter, usize)> = vec![
        (EntryFilter { resource: Some(third.resource.id.clone()), ..filter(10) }, 1),
        (EntryFilter { actor: Some("opr_test".to_owned()), ..filter(10) }, 4),
        (EntryFilter { actor: Some("nobody".to_owned()), ..filter(10) }, 0),
        (EntryFilter { action: Some("test.thing.change".to_owned()), ..filter(10) }, 4),
        (EntryFilter { action: Some("test.*".to_owned()), ..filter(10) }, 4),
        (EntryFilter { action: Some("test.".to_owned()), ..filter(10) }, 0),
        (EntryFilter { correlation_id: Some(third.correlation_id.parse().unwrap()), ..filter(10) }, 1),
        (EntryFilter { since: Some(3), ..filter(10) }, 1),
        (EntryFilter { since: Some(u64::MAX), ..filter(10) }, 0),
        (EntryFilter { from: Some(third.at), ..filter(10) }, 2),
        (EntryFilter { to: Some(third.at), ..filter(10) }, 2),
        (EntryFilter { from: Some(first.at), to: Some(third.at), ..filter(10) }, 2),
    ];
    for (filter, expected) in cases {
        let found = world.audit.entry_list(&owner, org, &filter).await.unwrap().items.len();
        assert_eq!(found, expected, "{filter:?}");
    }
    let page = world.audit.entry_list(&owner, org, &filter(2)).await.unwrap();
    let other = EntryFilter { actor: Some("opr_test".to_owned()), cursor: page.next_cursor, ..filter(2) };
    assert_eq!(world.audit.entry_list(&owner, org, &other).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn the_wrong_tenant_learns_nothing() {
    let world = World::new().await;
    let (ours, theirs) = (world.organization(), world.organization());
    world.changes(ours, 1).await;
    world.changes(theirs, 1).await;
    let missing = world.organization();
    let mut answers = Vec::new();
    for asked in [theirs, missing] {
        let error = world.audit.entry_list(&world.owner(ours), asked, &filter(10)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        answers.push(error.message().to_owned());
    }
    assert_eq!(answers[0], answers[1]);
    let error = world.audit.entry_list(&world.operator(), missing, &filter(10)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn an_outsiders_reading_is_recorded_and_a_listing_still_ends() {
    let world = World::new().await;
    let org = world.organization();
    world.changes(org, 5).await;
    world.seal_all().await;
    let readings = "SELECT count(*) FROM spine.audit_entry WHERE action = 'audit.entry.read'";
    world.audit.entry_list(&world.owner(org), org, &filter(10)).await.unwrap();
    assert_eq!(world.count(readings).await, 0, "one's own log is one's own business");

    let (mut cursor, mut pages, mut items) = (None, 0, 0);
    loop {
        let filter = EntryFilter { cursor, ..filter(1) };
        let page = world.audit.entry_list(&world.operator(), org, &filter).await.unwrap();
        world.seal_all().await;
        (pages, items, cursor) = (pages + 1, items + page.items.len(), page.next_cursor);
        if cursor.is_none() {
            break;
        }
        assert!(pages < 20, "reading makes entries, and those made pages without end");
    }
    assert_eq!((pages, items), (5, 5));
    assert_eq!(world.count(readings).await, 5);
    let own = world.audit.entry_list(&world.owner(org), org, &filter(20)).await.unwrap();
    assert_eq!(own.items.len(), 10, "the tenant sees who looked");
}

#[tokio::test]
async fn the_platform_reads_everything_and_a_tenant_nothing_of_it() {
    let world = World::new().await;
    let (ours, theirs) = (world.organization(), world.organization());
    world.changes(ours, 3).await;
    world.changes(theirs, 2).await;
    // Leaves an entry that belongs to no organization.
    crate::record_export(&world.db, &*world.decider).await.unwrap();
    world.seal_all().await;
    let keys = keys(&world).await;
    let (mut cursor, mut seen) = (None, Vec::new());
    loop {
        let filter = EntryFilter { cursor, ..filter(4) };
        let page = over_the_wire(&world.audit.log_list(&world.operator(), &filter).await.unwrap());
        assert_eq!(verify_page(&page, &keys).unwrap().proven, page.items.len());
        seen.extend(page.items.iter().map(|item| item.entry.org_id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let count = |wanted| seen.iter().filter(|org_id| **org_id == wanted).count();
    assert_eq!((count(Some(ours)), count(Some(theirs)), count(None), seen.len()), (3, 2, 1, 6));
    // Two pages: the first showed both organizations, the second only the other one and nobody's.
    let readings = |org: Option<OrganizationId>| {
        let is = org.map_or("IS NULL".to_owned(), |org| format!("= '{}'", org.as_uuid()));
        format!("SELECT count(*) FROM spine.audit_entry WHERE action = 'audit.log.read' AND org_id {is}")
    };
    assert_eq!(world.count(&readings(None)).await, 2);
    assert_eq!(world.count(&readings(Some(ours))).await, 1, "each organization shown is told");
    assert_eq!(world.count(&readings(Some(theirs))).await, 2);
    world.seal_all().await;
    let told = world.audit.entry_list(&world.owner(ours), ours, &filter(10)).await.unwrap().items;
    let after = told.last().unwrap().entry.after.clone().unwrap();
    assert_eq!((after["entries"].as_u64(), after.get("filter")), (Some(3), None), "and of itself only");

    for filter in [filter(10), EntryFilter { actor: Some("opr_test".to_owned()), ..filter(10) }] {
        let refused = world.audit.log_list(&world.owner(ours), &filter).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Forbidden);
    }
    // A cursor of one listing is none of another.
    let page = world.audit.log_list(&world.operator(), &filter(2)).await.unwrap();
    let other = EntryFilter { cursor: page.next_cursor, ..filter(2) };
    let refused = world.audit.entry_list(&world.owner(ours), ours, &other).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let filtered = EntryFilter { action: Some("audit.log.export".to_owned()), ..filter(10) };
    assert_eq!(world.audit.log_list(&world.operator(), &filtered).await.unwrap().items.len(), 1);
}

/// Everybody is who the test says.
struct Always(Identity);

impl Authenticator for Always {
    fn credential(&self, _: &axum::http::request::Parts) -> types::Result<Option<Credential>> {
        let signed_in = !self.0.actor.is_anonymous();
        Ok(signed_in.then(|| Credential { text: types::Secret::new("any".to_owned()), optional: false }))
    }

    fn identify<'a>(&'a self, _: &'a Credential) -> BoxFuture<'a, types::Result<Found>> {
        Box::pin(async { Ok(Found::Good(self.0.clone())) })
    }
}

async fn get(world: &World, identity: Identity, path: &str) -> (StatusCode, serde_json::Value) {
    let gate =
        Gate::new(Arc::new(Always(identity)), Limits::new(world.settings.clone()), world.db.ids().clone());
    let router = web::router(&world.audit.domain().endpoints, &gate);
    let reply = router.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = reply.status();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

fn identity(context: &Context) -> Identity {
    Identity {
        actor: context.actor.clone(),
        standing: Arc::clone(&context.standing),
        home: None,
        expires_at: None,
    }
}

#[tokio::test]
async fn the_routes_answer_as_declared() {
    let world = World::new().await;
    let (org, other) = (world.organization(), world.organization());
    world.changes(org, 3).await;
    world.changes(other, 1).await;
    world.seal_all().await;
    let list = format!("/api/v1/orgs/{org}/audit?limit=2");

    let (status, _) = get(&world, Identity::anonymous(), &list).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let (status, body) = get(&world, identity(&world.owner(other)), &list).await;
    assert_eq!((status, body["code"].as_str()), (StatusCode::NOT_FOUND, Some("not_found")));
    let (status, body) = get(&world, identity(&world.owner(org)), &list).await;
    assert_eq!(status, StatusCode::OK);
    let page: EntryPage = serde_json::from_value(body).unwrap();
    assert_eq!(verify_page(&page, &keys(&world).await).unwrap().proven, 2);
    // The gate refuses a read that records, unless it is declared as one.
    let (status, _) = get(&world, identity(&world.operator()), &list).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        world.count("SELECT count(*) FROM spine.audit_entry WHERE action = 'audit.entry.read'").await,
        1
    );

    for path in ["/api/v1/audit/checkpoint", "/api/v1/audit/checkpoint?since=1", "/api/v1/audit/key"] {
        let (status, body) = get(&world, Identity::anonymous(), path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
    }
    for path in [
        "?from=yesterday",
        "?unknown=1",
        "?cursor=x",
        "?limit=-1",
        "?limit=101",
        "?to=9999-12-31T23:59:59Z",
        "?correlation_id=x",
    ] {
        let (status, body) =
            get(&world, identity(&world.owner(org)), &format!("/api/v1/orgs/{org}/audit{path}")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {body}");
    }
}
