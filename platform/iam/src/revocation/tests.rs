//! What is revoked is refused, whatever happens to the replica that should learn of it.
//!
//! A replica here is what one process has: nudges, a line to the database, a cache of keys. Keys are rows of
//! `iam.api_key`; a look-up is counted, so that a hit can be told from one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::large_futures
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use authz::{Action as _, Resource};
use db::{Bridge, Change, Db, Internal, Line, Login, Nudges, Settings, Target};
use testkit::toy::{ThingCreate, ThingKind};
use testkit::{PrivatePostgres, Proxy, SPINE, TestDb, eventually};
use tokio_util::sync::{CancellationToken, DropGuard};
use types::{Id, Timestamp};
use uuid::Uuid;

use super::{ANSWER_MAX, Kind, Revocations, prune, revoke};
use crate::{Loaded, MIGRATION_SET, REVOCATION_UNKNOWN, Remembered};

const FIND: &str = "SELECT revoked_at IS NULL FROM iam.api_key WHERE id = $1";

struct Replica {
    revocations: Revocations,
    remembered: Remembered<Uuid, bool>,
    internal: Internal,
    look_ups: AtomicUsize,
    stop: CancellationToken,
    _stops: DropGuard,
}

/// A nudge or nothing: by itself the replica looks later than any test waits, and does not mind.
const RARELY: u64 = 60_000;

fn settings(poll_ms: u64) -> Settings {
    let stale_ms = if poll_ms == RARELY { RARELY } else { 1_000 };
    let values = [("iam.revocation_poll_ms", poll_ms), ("iam.revocation_stale_ms", stale_ms)];
    let fixed: HashMap<_, _> = values.map(|(key, value)| (key.to_owned(), value.into())).into();
    Settings::with_overrides(fixed)
}

impl Replica {
    /// Asks only when told to.
    fn new(test: &TestDb, target: Target, nudges: Nudges, settings: Settings) -> Self {
        // As in production: with the backstop a question is a transaction, and a broken one never goes back to the pool.
        let line = Line::new(target, "iam.revocations", false);
        let revocations = Revocations::new(line, nudges, settings.clone());
        let remembered = Remembered::new(revocations.clone(), test.clock.clone(), settings);
        let stop = CancellationToken::new();
        let _stops = stop.clone().drop_guard();
        let internal = test.db.internal("keys");
        Self { revocations, remembered, internal, look_ups: AtomicUsize::new(0), stop, _stops }
    }

    fn quiet(test: &TestDb) -> Self {
        Self::new(test, test.target(Login::App), Nudges::default(), settings(RARELY))
    }

    fn following(self) -> Self {
        let (revocations, stop) = (self.revocations.clone(), self.stop.clone());
        tokio::spawn(async move { revocations.run(stop).await });
        self
    }

    /// Carries nudges between this replica and the others.
    fn bridged(self, test: &TestDb, nudges: Nudges) -> Self {
        let replica: Id<ThingKind> = test.db.make_id();
        let bridge = Bridge::new(test.target(Login::App), nudges, settings(RARELY), *replica.as_uuid());
        let stop = self.stop.clone();
        tokio::spawn(async move { bridge.run(stop).await });
        self
    }

    /// Is the key good?
    async fn ask(&self, key: Uuid) -> types::Result<bool> {
        self.ask_of(key, key, None).await
    }

    /// The same for a key that rests on `subject`.
    async fn ask_of(&self, key: Uuid, subject: Uuid, until: Option<Timestamp>) -> types::Result<bool> {
        let load = async || {
            self.look_ups.fetch_add(1, Ordering::SeqCst);
            let row = self.internal.query_opt(FIND, &[&key]).await?;
            Ok(Loaded { value: row.is_some_and(|row| row.get(0)), subjects: vec![subject], until })
        };
        self.remembered.get(key, load).await
    }

    /// Until a key is answered from memory.
    async fn warm(&self, key: Uuid) {
        eventually("the key is remembered", async || {
            let before = self.look_ups.load(Ordering::SeqCst);
            assert!(self.ask(key).await.unwrap());
            self.look_ups.load(Ordering::SeqCst) == before
        })
        .await;
    }

    async fn refuses(&self, key: Uuid) {
        eventually("the key is refused", async || !self.ask(key).await.unwrap()).await;
    }
}

async fn database() -> TestDb {
    TestDb::with(&[SPINE, MIGRATION_SET]).await
}

async fn key(test: &TestDb) -> Uuid {
    let id: Id<ThingKind> = test.db.make_id();
    let insert = "WITH owner AS (
                      INSERT INTO iam.person (id, name, state, state_since, created_at, updated_at)
                      VALUES (gen_random_uuid(), 'owner', 'active', now(), now(), now()) RETURNING id)
                  INSERT INTO iam.api_key (id, person_id, name, key_hash, created_at)
                  SELECT $1, id, 'key', sha256($1::uuid::text::bytea), now() FROM owner";
    test.superuser().await.execute(insert, &[id.as_uuid()]).await.unwrap();
    *id.as_uuid()
}

/// As a domain would: the row and the word about it in one change.
async fn revoke_key(test: &TestDb, db: &Db, key: Uuid) {
    let context = test.context("operator");
    let permit = test.permit::<ThingCreate>(&context, Resource::platform("thing"));
    db.change(&context, permit, async |tx| {
        tx.execute("UPDATE iam.api_key SET revoked_at = now() WHERE id = $1", &[&key]).await?;
        revoke(tx, Kind::Credential, key).await?;
        let thing: Id<ThingKind> = tx.make_id();
        Ok(tx.record(Change::new(ThingCreate::NAME, thing, 1)))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_key_revoked_on_one_replica_is_refused_on_the_other() {
    let test = database().await;
    let (own, other) = (test.nudges.clone(), Nudges::default());
    let target = || test.target(Login::App);
    let here = Replica::new(&test, target(), own.clone(), settings(RARELY)).following().bridged(&test, own);
    let there =
        Replica::new(&test, target(), other.clone(), settings(RARELY)).following().bridged(&test, other);
    let mut took = Vec::new();
    for _ in 0..10 {
        let key = key(&test).await;
        here.warm(key).await;
        there.warm(key).await;
        revoke_key(&test, &test.db, key).await;
        let committed = Instant::now();
        there.refuses(key).await;
        took.push(committed.elapsed());
        here.refuses(key).await;
    }
    took.sort();
    eprintln!("revoked here, refused there: median {:?}, longest {:?}", took[5], took[9]);
}

#[tokio::test]
async fn a_lost_nudge_costs_no_more_than_one_interval() {
    let test = database().await;
    let nobody_tells = Nudges::default();
    let replica = Replica::new(&test, test.target(Login::App), nobody_tells, settings(20)).following();
    let key = key(&test).await;
    replica.warm(key).await;
    revoke_key(&test, &test.db, key).await;
    replica.refuses(key).await;
}

#[tokio::test]
async fn a_revocation_that_commits_late_is_seen() {
    let test = database().await;
    let replica = Replica::quiet(&test);
    let (late, soon) = (key(&test).await, key(&test).await);
    replica.revocations.poll().await.unwrap();
    let mut writer = test.client(Login::App).await;
    let slow = writer.transaction().await.unwrap();
    let insert = "INSERT INTO iam.revocation (kind, subject) VALUES ('credential', $1)";
    slow.execute(insert, &[&late]).await.unwrap();
    revoke_key(&test, &test.db, soon).await;
    replica.revocations.poll().await.unwrap();
    let mark = replica.revocations.mark().unwrap();
    assert!(!replica.revocations.is_revoked_since(late, mark), "nobody can know yet");
    slow.commit().await.unwrap();
    replica.revocations.poll().await.unwrap();
    assert!(replica.revocations.is_revoked_since(late, mark));
    assert!(replica.revocations.is_revoked_since(soon, mark));
    // Whoever follows by number or by time has passed it.
    let passed = "SELECT count(*) FROM iam.revocation l, iam.revocation s WHERE l.id < s.id AND l.at < s.at AND l.xid < s.xid";
    assert_eq!(test.count(passed).await, 1);
}

#[tokio::test]
async fn a_load_that_ran_beside_the_revocation_is_not_trusted() {
    let test = database().await;
    let replica = Replica::quiet(&test);
    let key = key(&test).await;
    replica.revocations.poll().await.unwrap();
    // The look-up reads the key, and before its answer is remembered the key is revoked and everybody told.
    let load = async || {
        let row = replica.internal.query_opt(FIND, &[&key]).await?;
        revoke_key(&test, &test.db, key).await;
        replica.revocations.poll().await?;
        Ok(Loaded { value: row.is_some_and(|row| row.get(0)), subjects: vec![key], until: None })
    };
    assert!(replica.remembered.get(key, load).await.unwrap(), "it was good when it was read");
    assert!(!replica.ask(key).await.unwrap());
}

#[tokio::test]
async fn with_an_organization_go_all_who_belong_to_it() {
    let test = database().await;
    let replica = Replica::quiet(&test);
    let (mine, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let keys = [(key(&test).await, mine), (key(&test).await, mine), (key(&test).await, other)];
    let ask_all = async || {
        for (key, organization) in keys {
            assert!(replica.ask_of(key, organization, None).await.unwrap());
        }
        replica.look_ups.swap(0, Ordering::SeqCst)
    };
    replica.revocations.poll().await.unwrap();
    assert_eq!((ask_all().await, ask_all().await), (3, 0));
    test.run(&format!("INSERT INTO iam.revocation (kind, subject) VALUES ('organization', '{mine}')")).await;
    replica.revocations.poll().await.unwrap();
    replica.revocations.poll().await.unwrap();
    assert_eq!(
        (ask_all().await, ask_all().await),
        (2, 0),
        "two are looked up again, and then remembered again"
    );
}

#[tokio::test]
async fn a_warm_key_costs_no_round_trip() {
    let proxy = Proxy::start().await;
    let test = TestDb::plan(&[SPINE, MIGRATION_SET]).through(&proxy).start().await;
    let replica = Replica::quiet(&test);
    let key = key(&test).await;
    replica.revocations.poll().await.unwrap();
    let (_, cold) = proxy.round_trips(replica.ask(key)).await;
    let (_, warm) = proxy
        .round_trips(async {
            replica.revocations.poll().await.unwrap();
            for _ in 0..100 {
                assert!(replica.ask(key).await.unwrap());
            }
        })
        .await;
    assert!(cold > 0);
    assert_eq!(warm, 0);
}

#[tokio::test]
async fn what_ends_by_itself_is_looked_up_again() {
    let test = TestDb::plan(&[SPINE, MIGRATION_SET]).at("2026-01-31T12:00:00Z").start().await;
    let replica = Replica::quiet(&test);
    let key = key(&test).await;
    let until = test.clock.now().checked_add(Duration::from_secs(60)).ok();
    let ask = async || {
        replica.revocations.poll().await.unwrap();
        replica.ask_of(key, key, until).await.unwrap();
        replica.look_ups.swap(0, Ordering::SeqCst)
    };
    assert_eq!((ask().await, ask().await), (1, 0));
    test.advance(Duration::from_secs(60));
    assert_eq!(ask().await, 1);
}

#[tokio::test]
async fn a_feed_that_hangs_grows_old_and_the_database_is_asked() {
    let proxy = Proxy::start().await;
    let test = database().await;
    let target = proxy.redirect(&test.target(Login::App));
    let replica = Replica::new(&test, target, Nudges::default(), settings(20)).following();
    let (first, second) = (key(&test).await, key(&test).await);
    replica.warm(first).await;
    proxy.swallow(true);
    revoke_key(&test, &test.db, first).await;
    replica.refuses(first).await;
    assert!(
        replica.revocations.age().unwrap() >= Duration::from_millis(1_000),
        "it was remembered until then"
    );
    replica.look_ups.store(0, Ordering::SeqCst);
    for _ in 0..3 {
        assert!(replica.ask(second).await.unwrap());
    }
    assert_eq!(replica.look_ups.load(Ordering::SeqCst), 3, "nothing counts as remembered");
    proxy.swallow(false);
    replica.warm(second).await;
}

#[tokio::test]
async fn who_cannot_ask_refuses() {
    let proxy = Proxy::start().await;
    let test = TestDb::plan(&[SPINE, MIGRATION_SET]).through(&proxy).start().await;
    let target = proxy.redirect(&test.target(Login::App));
    let replica = Replica::new(&test, target, Nudges::default(), settings(20)).following();
    let key = key(&test).await;
    replica.warm(key).await;
    proxy.swallow(true);
    eventually("the key is refused", async || match replica.ask(key).await {
        Ok(good) => {
            assert!(good);
            false
        }
        Err(error) => {
            assert_eq!(error.code().code, REVOCATION_UNKNOWN.code);
            true
        }
    })
    .await;
}

#[tokio::test]
async fn a_database_that_restarts_or_crashes_loses_no_revocation() {
    let mut server = PrivatePostgres::start().await;
    let test = TestDb::plan(&[SPINE, MIGRATION_SET]).on(&server).start().await;
    let replica = Replica::new(&test, test.target(Login::App), Nudges::default(), settings(20)).following();
    let (first, second) = (key(&test).await, key(&test).await);
    replica.warm(first).await;
    replica.warm(second).await;
    server.restart().await;
    revoke_key(&test, &test.db, first).await;
    eventually("the first is refused", async || matches!(replica.ask(first).await, Ok(false))).await;
    server.crash().await;
    revoke_key(&test, &test.db, second).await;
    eventually("the second is refused", async || matches!(replica.ask(second).await, Ok(false))).await;
    drop(replica);
    server.stop().await;
}

#[tokio::test]
async fn whatever_leaves_a_hole_voids_everything() {
    let test = database().await;
    let replica = Replica::quiet(&test);
    let known = &replica.revocations.inner.known;
    let restored_elsewhere = || known.write().unwrap().latest.as_mut().unwrap().floor += 1 << 40;
    let other_server = || known.write().unwrap().latest.as_mut().unwrap().history = "1/1/1".to_owned();
    let silent_for_long = || {
        let mut known = known.write().unwrap();
        let latest = known.latest.as_mut().unwrap();
        latest.at = latest.at.checked_sub(Duration::from_secs(13 * 3600)).unwrap();
    };
    let nothing = || {};
    let holes: [(&str, &dyn Fn(), bool); 4] = [
        ("nothing", &nothing, false),
        ("a floor that moved backwards", &restored_elsewhere, true),
        ("another PostgreSQL", &other_server, true),
        ("a long silence", &silent_for_long, true),
    ];
    replica.revocations.poll().await.unwrap();
    for (hole, make, voids) in holes {
        let mark = replica.revocations.mark().unwrap();
        make();
        replica.revocations.poll().await.unwrap();
        assert_eq!(replica.revocations.is_revoked_since(Uuid::from_u128(7), mark), voids, "{hole}");
    }
    let mark = replica.revocations.mark().unwrap();
    let many = format!(
        "INSERT INTO iam.revocation (kind, subject) SELECT 'role', gen_random_uuid() FROM generate_series(1, {ANSWER_MAX})"
    );
    test.run(&many).await;
    replica.revocations.poll().await.unwrap();
    assert!(replica.revocations.is_revoked_since(Uuid::from_u128(7), mark), "more than one answer holds");
}

#[tokio::test]
async fn what_another_postgresql_counted_says_nothing_here() {
    let test = database().await;
    let replica = Replica::quiet(&test);
    let key = key(&test).await;
    replica.revocations.poll().await.unwrap();
    let mark = replica.revocations.mark().unwrap();
    test.run(&format!(
        "INSERT INTO iam.revocation (kind, subject, cluster, xid) VALUES ('credential', '{key}', 1, '9000000000')"
    ))
    .await;
    replica.revocations.poll().await.unwrap();
    assert!(!replica.revocations.is_revoked_since(key, mark));
}

#[tokio::test]
async fn only_what_is_older_than_a_day_is_pruned() {
    let test = database().await;
    test.run(
        "INSERT INTO iam.revocation (kind, subject, at)
         SELECT 'role', gen_random_uuid(), now() - hours * interval '1 hour' FROM generate_series(20, 29) hours",
    )
    .await;
    assert_eq!(prune(&test.db.internal("pruner"), &test.settings).await.unwrap(), 6);
    assert_eq!(
        test.count("SELECT count(*) FROM iam.revocation WHERE at > now() - interval '24 hours'").await,
        4
    );
}
