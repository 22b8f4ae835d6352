//! `Db::change`: everything or nothing, in at most three round trips.

use db::{DbError, Recorded, Topic, Tx};
use testkit::toy::{self, Thing, ThingCreate};
use testkit::types::{self, ErrorCode, ErrorKind};
use testkit::{Proxy, TestDb, cut_at_every_await, eventually};

/// Rows of things, audit entries and events: they only ever move together.
async fn written(test: &TestDb) -> (i64, i64, i64) {
    let row = test
        .superuser()
        .await
        .query_one(
            "SELECT (SELECT count(*) FROM toy.thing), (SELECT count(*) FROM spine.audit_entry),
                    (SELECT count(*) FROM spine.outbox)",
            &[],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1), row.get(2))
}

async fn change<F>(test: &TestDb, work: F) -> types::Result<Thing>
where
    F: AsyncFnOnce(&mut Tx<'_>) -> types::Result<Recorded<Thing>>,
{
    let context = test.context("someone");
    let permit = test.permit::<ThingCreate>(&context, toy::resource(toy::org(1)));
    test.db.change(&context, permit, work).await
}

#[tokio::test]
async fn row_audit_entry_and_event_are_committed_together() {
    let test = TestDb::kernel().await;
    let mut nudged = test.nudges.listen(Topic::Committed);
    let context = test.context("someone");
    let thing = toy::create(&test.db, &context, toy::org(1), "a").await.unwrap();
    // Returns at the nudge; the sweep is longer than any test.
    nudged.wait(testkit::DEADLINE).await;

    let sql = "SELECT a.action, a.actor_kind, a.actor_id, a.resource_kind, a.resource_id, a.org_id, a.generation,
                      a.after->>'name', a.correlation_id, a.policy_version, o.type, o.subject, o.data->>'name',
                      o.correlation_id = a.correlation_id AND o.org_id = a.org_id AND o.at = a.at AND o.xid = a.xid
               FROM spine.audit_entry a JOIN spine.outbox o USING (id)";
    let row = test.superuser().await.query_one(sql, &[]).await.unwrap();
    let text = |column: usize| row.get::<_, String>(column);
    assert_eq!(
        [text(0), text(1), text(2), text(3), text(4)],
        ["toy.thing.create", "user", "someone", "thing", &thing.id.to_string()]
    );
    assert_eq!((row.get::<_, uuid::Uuid>(5), row.get::<_, i64>(6), text(7)), (toy::org(1), 1, "a".to_owned()));
    assert_eq!(row.get::<_, uuid::Uuid>(8), *context.correlation_id.as_uuid());
    assert_eq!(row.get::<_, i64>(9), 7);
    assert_eq!([text(10), text(11), text(12)], ["gpuaas.toy.thing.created", &thing.id.to_string(), "a"]);
    assert!(row.get::<_, bool>(13), "entry and event tell of the same moment");
    assert_eq!(context.trail.recorded(), ["toy.thing.create"]);
}

#[tokio::test]
async fn many_changes_are_one_statement_and_one_commit() {
    let test = TestDb::kernel().await;
    change(&test, async |tx| {
        let mut things = Vec::new();
        for name in ["a", "b", "c"] {
            things.push(toy::insert(tx, toy::org(1), name).await?);
        }
        let first = things[0].clone();
        Ok(tx.record_many(things.iter().map(toy::created)).with(first))
    })
    .await
    .unwrap();
    assert_eq!(written(&test).await, (3, 3, 3));
    let transactions = "SELECT count(DISTINCT xid::text) FROM spine.audit_entry";
    assert_eq!(test.count(transactions).await, 1);
}

static REFUSED: ErrorCode = ErrorCode::new("toy_refused", ErrorKind::Conflict, "Refused", "Do not.");

/// Wherever the work fails, nothing of it is there, and the connection is fit for the next one.
#[tokio::test]
async fn a_failure_at_any_statement_leaves_nothing() {
    let test = TestDb::plan_kernel().connections(1).start().await;
    // Makes RECORD fail for one name, and COMMIT for another.
    test.run(
        "ALTER TABLE spine.outbox ADD CONSTRAINT no_event CHECK (data->>'name' <> 'no event') NOT VALID;
         CREATE FUNCTION toy.refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'not today' USING ERRCODE = 'check_violation'; END $$;
         CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON toy.thing DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW WHEN (NEW.name = 'no commit') EXECUTE FUNCTION toy.refuse()",
    )
    .await;
    let record = |tx: &mut Tx<'_>, thing: Thing| Ok(tx.record(toy::created(&thing)).with(thing));

    let first_statement =
        change(&test, async |tx| Err(tx.query("SELECT 1/0", &[]).await.unwrap_err().into())).await;
    let later_statement = change(&test, async |tx| {
        toy::insert(tx, toy::org(1), "twice").await?;
        let thing = toy::insert(tx, toy::org(1), "twice").await?;
        record(tx, thing)
    })
    .await;
    let own_decision = change(&test, async |tx| {
        let thing = toy::insert(tx, toy::org(1), "a").await?;
        let _ = record(tx, thing)?;
        Err(REFUSED.error("no"))
    })
    .await;
    assert_eq!(own_decision.unwrap_err().code().code, "toy_refused");
    let at_record = change(&test, async |tx| {
        let thing = toy::insert(tx, toy::org(1), "no event").await?;
        record(tx, thing)
    })
    .await;
    let at_commit = change(&test, async |tx| {
        let thing = toy::insert(tx, toy::org(1), "no commit").await?;
        record(tx, thing)
    })
    .await;
    for failed in [first_statement, later_statement, at_record, at_commit] {
        assert_eq!(failed.unwrap_err().code().code, "internal_error");
    }
    assert_eq!(written(&test).await, (0, 0, 0));
    toy::create(&test.db, &test.context("someone"), toy::org(1), "a").await.unwrap();
    assert_eq!(written(&test).await, (1, 1, 1));
}

/// An error that the work swallows has still aborted the transaction: PostgreSQL answers COMMIT with ROLLBACK, and
/// without any error. Nobody may take that for success.
#[tokio::test]
async fn a_swallowed_error_is_no_success() {
    let test = TestDb::kernel().await;
    let swallowed = change(&test, async |tx| {
        let thing = toy::insert(tx, toy::org(1), "a").await?;
        let _ = tx.query("SELECT 1/0", &[]).await;
        Ok(tx.record(toy::created(&thing)).with(thing))
    })
    .await;
    assert!(swallowed.is_err());
    // Without the backstop, whose own look at the transaction would fail.
    let plain = db::Internal::new(test.db.pool().clone(), "toy.plain", false);
    let swallowed = plain
        .bookkeeping(&["toy.mark"], async |tx| -> Result<(), DbError> {
            tx.query("INSERT INTO toy.mark VALUES ('a', 1)", &[]).await?;
            let _ = tx.query("SELECT 1/0", &[]).await;
            Ok(())
        })
        .await;
    assert!(swallowed.is_err(), "the mark was rolled back, and the caller was told it is there");
    assert_eq!(written(&test).await, (0, 0, 0));
}

#[tokio::test]
async fn what_is_not_recorded_is_rolled_back() {
    let test = TestDb::kernel().await;
    let value = change(&test, async |tx| {
        let thing = toy::insert(tx, toy::org(1), "a").await?;
        Ok(tx.unchanged(thing))
    })
    .await
    .unwrap();
    assert_eq!(value.name, "a");
    assert_eq!(written(&test).await, (0, 0, 0));
}

/// Sessions of this database that hold a transaction open without working on it.
async fn open_transactions(test: &TestDb) -> i64 {
    test.count(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'",
    )
    .await
}

#[tokio::test]
async fn a_panic_leaves_no_open_transaction() {
    let test = std::sync::Arc::new(TestDb::plan_kernel().connections(1).start().await);
    let shared = std::sync::Arc::clone(&test);
    let panicked = tokio::spawn(async move {
        change(&shared, async |tx| {
            toy::insert(tx, toy::org(1), "a").await?;
            assert_eq!(open_transactions(&shared).await, 1, "the look for open transactions sees this one");
            panic!("a bug in a domain");
        })
        .await
    })
    .await;
    assert!(panicked.unwrap_err().is_panic());
    eventually("no transaction is open", async || open_transactions(&test).await == 0).await;
    toy::create(&test.db, &test.context("someone"), toy::org(1), "a").await.unwrap();
    assert_eq!(written(&test).await, (1, 1, 1));
}

/// Dropped at each await: a cancelled task, a client that hung up, a runtime that ends. All of it is there or nothing.
#[tokio::test]
async fn a_change_dropped_anywhere_is_whole_or_nothing() {
    let test = TestDb::plan_kernel().connections(1).start().await;
    toy::create(&test.db, &test.context("someone"), toy::org(1), "warm").await.unwrap();
    let mut number = 0;
    let cuts = cut_at_every_await(
        async || {
            number += 1;
            let name = format!("thing {number}");
            toy::create(&test.db, &test.keyed("someone", &name, "body"), toy::org(1), &name).await.unwrap()
        },
        async |_| {
            eventually("no transaction is open", async || open_transactions(&test).await == 0).await;
            let (things, entries, events) = written(&test).await;
            assert_eq!((things, things), (entries, events), "part of a change was committed");
        },
    )
    .await;
    assert!(cuts >= 3, "there are awaits at the connection, the opening and the commit, not {cuts}");
    assert_eq!(test.db.pool().status().0, 1, "a connection that was cut off is replaced, not kept");
}

#[tokio::test]
async fn a_mutation_takes_two_round_trips_and_one_more_per_further_statement() {
    let proxy = Proxy::start().await;
    let test = TestDb::plan_kernel().connections(1).through(&proxy).start().await;
    let create = async |name: &str, org| {
        let context = test.keyed("someone", name, "body");
        toy::create(&test.db, &context, org, name).await.unwrap();
    };
    create("prepares the statements", toy::org(1)).await;

    let ((), plain) = proxy.round_trips(create("a", toy::org(1))).await;
    assert_eq!(plain, 2, "opening with idempotency and first statement; record with result and COMMIT");
    let ((), other_scope) = proxy.round_trips(create("b", toy::org(2))).await;
    assert_eq!(other_scope, 2, "a change of scope travels with the opening");
    let (read_then_write, count) = proxy
        .round_trips(change(&test, async |tx| {
            tx.query("SELECT 1 FROM toy.thing WHERE name = 'a' FOR UPDATE", &[]).await?;
            let thing = toy::insert(tx, toy::org(1), "c").await?;
            Ok(tx.record(toy::created(&thing)).with(thing))
        }))
        .await;
    read_then_write.unwrap();
    // Two of its statements are new to the connection and are prepared: one round trip each, once.
    assert_eq!(count, 4);
    let (read_then_write, count) = proxy
        .round_trips(change(&test, async |tx| {
            tx.query("SELECT 1 FROM toy.thing WHERE name = 'a' FOR UPDATE", &[]).await?;
            let thing = toy::insert(tx, toy::org(1), "d").await?;
            Ok(tx.record(toy::created(&thing)).with(thing))
        }))
        .await;
    read_then_write.unwrap();
    assert_eq!(count, 3, "read, write, commit: the most a mutation may cost");
}
