//! Audit entries cannot be changed: not by the application, not by the owner, not by a careless superuser.

use db::{Login, PartitionedTable};
use testkit::{TestDb, toy};
use tokio_postgres::Client;

const PLACES: [&str; 3] = ["spine.audit_entry", "spine.audit_entry_202603", "spine.audit_entry_default"];

/// Entries in a partition and in the default partition.
async fn with_entries() -> TestDb {
    let test = TestDb::plan_kernel().at("2026-03-05T12:00:00Z").start().await;
    PartitionedTable::AUDIT_ENTRY
        .make_ahead(&test.db.internal("toy.partitions"), test.db.now())
        .await
        .unwrap();
    toy::create(&test.db, &test.context("someone"), toy::org(1), "a").await.unwrap();
    test.advance(std::time::Duration::from_secs(400 * 24 * 3600));
    toy::create(&test.db, &test.context("someone"), toy::org(1), "b").await.unwrap();
    assert_eq!(test.count("SELECT count(*) FROM spine.audit_entry_202603").await, 1);
    assert_eq!(test.count("SELECT count(*) FROM spine.audit_entry_default").await, 1);
    test
}

/// Each way to rewrite each place; every one must be refused.
async fn check_refused(client: &Client, who: &str) {
    for place in PLACES {
        for statement in [
            format!("UPDATE {place} SET actor_id = 'nobody'"),
            format!("DELETE FROM {place}"),
            format!("TRUNCATE {place}"),
        ] {
            let error = client.batch_execute(&statement).await.expect_err(&format!("{who}: {statement}"));
            let code = error.as_db_error().map(|error| error.code().code().to_owned());
            assert_eq!(code.as_deref(), Some("42501"), "{who}: {statement}: {error}");
        }
    }
}

#[tokio::test]
async fn nobody_rewrites_audit_entries() {
    let test = with_entries().await;
    let app = test.client(Login::App).await;
    app.batch_execute("SELECT set_config('gpuaas.platform', 'on', false)").await.unwrap();
    check_refused(&app, "app").await;
    for login in [Login::Reader, Login::Sealer, Login::Relay] {
        check_refused(&test.client(login).await, login.suffix()).await;
    }
    check_refused(&test.superuser().await, "superuser").await;

    // The owner sees no rows behind its own wall; what stops it is the trigger, so take the wall away first.
    let owner = test.client(Login::Owner).await;
    assert_eq!(owner.execute("UPDATE spine.audit_entry SET actor_id = 'nobody'", &[]).await.unwrap(), 0);
    owner.batch_execute("ALTER TABLE spine.audit_entry NO FORCE ROW LEVEL SECURITY").await.unwrap();
    check_refused(&owner, "owner").await;

    let untouched = "SELECT count(*) FROM spine.audit_entry WHERE actor_id = 'someone'";
    assert_eq!(test.count(untouched).await, 2);
}

/// Why the grants on partitions matter: the wall of row-level security stands at the parent.
#[tokio::test]
async fn no_login_reaches_a_partition_past_the_wall() {
    let test = with_entries().await;
    for login in [Login::App, Login::Reader, Login::Sealer, Login::Relay] {
        let client = test.client(login).await;
        for place in &PLACES[1..] {
            let read = client.query(&format!("SELECT FROM {place}"), &[]).await;
            assert!(read.is_err(), "{} reads {place} directly", login.suffix());
        }
    }
}

/// An entry or event that claims an old transaction lies behind the sealer and the sequencer: neither would ever see it.
#[tokio::test]
async fn the_application_cannot_choose_the_transaction_of_a_row() {
    let test = TestDb::kernel().await;
    let app = test.client(Login::App).await;
    app.batch_execute("SELECT set_config('gpuaas.platform', 'on', false)").await.unwrap();
    let entry = "INSERT INTO spine.audit_entry (XID id, at, actor_kind, actor_id, action, resource_kind, resource_id, generation,
                     correlation_id, policy_version)
                 SELECT VALUE gen_random_uuid(), now(), 'user', 'a', 'a', 'a', 'a', 1, gen_random_uuid(), 1";
    let event = "INSERT INTO spine.outbox (XID id, at, type, subject, generation, data, correlation_id)
                 SELECT VALUE gen_random_uuid(), now(), 't', 's', 1, '{}', gen_random_uuid()";
    for statement in [entry, event] {
        let forged = statement.replace("XID", "xid,").replace("VALUE", "'3'::xid8,");
        let refused = app.batch_execute(&forged).await.expect_err(&forged);
        assert_eq!(refused.as_db_error().map(|error| error.code().code()), Some("42501"), "{refused:?}");
        app.batch_execute(&statement.replace("XID", "").replace("VALUE", "")).await.unwrap();
    }
}
