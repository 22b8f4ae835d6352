//! Tenants are kept apart by the database, whatever a statement forgets.

use std::sync::Arc;

use testkit::toy::{self, ThingRead};
use testkit::{TestDb, check_walls};

#[tokio::test]
async fn every_table_with_an_organization_has_a_wall() {
    let test = TestDb::kernel().await;
    let checked = check_walls(&test).await;
    for table in [
        "spine.audit_entry",
        "spine.outbox",
        "spine.log",
        "spine.flow",
        "spine.setting",
        "toy.thing",
        "toy.tally",
    ] {
        assert!(checked.iter().any(|found| found == table), "{table} was not checked, only {checked:?}");
    }
}

/// The check itself must fail where a wall is missing, or open.
#[tokio::test]
async fn a_missing_or_open_wall_is_found() {
    for breach in [
        "ALTER TABLE toy.thing DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE toy.thing NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY tenant ON toy.thing",
        "CREATE POLICY everyone ON toy.thing TO test_app USING (true)",
        "CREATE POLICY readers ON toy.thing FOR SELECT TO test_app USING (true)",
        "CREATE POLICY writers ON toy.thing FOR INSERT TO test_app WITH CHECK (true)",
        "CREATE TABLE toy.forgotten (org_id uuid); GRANT ALL ON toy.forgotten TO test_app",
    ] {
        let test = TestDb::kernel().await;
        test.run(breach).await;
        let checked = tokio::spawn(async move { check_walls(&test).await }).await;
        assert!(checked.is_err(), "not found: {breach}");
    }
}

/// One connection serves one tenant after the other, with reads given up in the middle: none may ever see a row of
/// the tenant before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooled_connection_never_leaks() {
    let test = Arc::new(TestDb::plan_kernel().connections(3).start().await);
    for org in [1, 2] {
        toy::create(&test.db, &test.context("someone"), toy::org(org), &format!("of {org}")).await.unwrap();
    }
    let readers: Vec<_> = (0..1_000u128)
        .map(|number| {
            let test = Arc::clone(&test);
            let org = number % 2 + 1;
            tokio::spawn(async move {
                let context = test.context("someone");
                let permit = test.permit::<ThingRead>(&context, toy::resource(toy::org(org)));
                let reader = test.db.read(&permit);
                let read = reader.query(toy::NAMES, &[]);
                if number % 5 == 0 {
                    // Given up at once, after its first message is on the wire.
                    let _ = tokio::time::timeout(std::time::Duration::ZERO, read).await;
                    return;
                }
                let names: Vec<String> = read.await.unwrap().iter().map(|row| row.get(0)).collect();
                assert_eq!(names, [format!("of {org}")]);
            })
        })
        .collect();
    for reader in readers {
        reader.await.unwrap();
    }
}
