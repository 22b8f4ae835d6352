//! Settings in the database: whose rows they are, and how a process comes to know them.

use testkit::TestDb;
use testkit::authz::{Action, Place, Resource};
use testkit::db::settings::{lock, store, stored};
use testkit::db::{Setting, Settings, StoredSetting};
use testkit::toy::{self, ThingCreate, ThingRead};

static LIMIT: Setting<u32> = Setting::new("toy.limit_max", 10, "A limit.").per_project();

/// Sets a value as a domain does, in the scope of the place.
async fn put(test: &TestDb, place: Place, value: u32) {
    let context = test.context("someone");
    let permit = test.permit::<ThingCreate>(&context, Resource::list_at("thing", place));
    let put = test.db.change(&context, permit, async |tx| {
        let before = lock(tx, place, LIMIT.key, &context.actor.subject).await?;
        let after = StoredSetting { value: Some(value.into()), generation: before.generation + 1, ..before };
        store(tx, &after).await?;
        let mut change =
            testkit::db::Change::named(ThingCreate::NAME, "setting", LIMIT.key, after.generation);
        change.organization = place.organization();
        Ok(tx.record(change).with(()))
    });
    put.await.unwrap();
}

fn places() -> [Place; 4] {
    let [one, two] = [toy::org(1), toy::org(2)];
    [
        Place::Platform,
        Place::Organization(one),
        Place::Project { organization: one, project: toy::org(11) },
        Place::Organization(two),
    ]
}

#[tokio::test]
async fn a_process_knows_every_place_and_a_tenant_sees_its_own() {
    let test = TestDb::kernel().await;
    for (number, place) in (1..).zip(places()) {
        put(&test, place, number).await;
        put(&test, place, number * 10).await;
    }
    let settings = Settings::default();
    settings.renew(&test.db.internal("settings")).await.unwrap();
    let known = places().map(|place| settings.get_in(&LIMIT, place));
    assert_eq!(known, [10, 20, 30, 40]);
    let elsewhere = Place::Project { organization: toy::org(2), project: toy::org(22) };
    assert_eq!(settings.get_in(&LIMIT, elsewhere), 40, "inherited from its organization");
    let nowhere = Place::Organization(toy::org(3));
    assert_eq!(settings.get_in(&LIMIT, nowhere), 10, "inherited from the platform");

    // In the scope of one tenant, whatever is asked for.
    let context = test.context("someone");
    let permit = test.permit::<ThingRead>(&context, toy::resource(toy::org(1)));
    for (place, seen) in places().into_iter().zip([vec![], vec![20], vec![20, 30], vec![]]) {
        let rows = stored(&test.db.read(&permit), place, None).await.unwrap();
        let mut values: Vec<u64> = rows.iter().filter_map(|row| row.value.as_ref()?.as_u64()).collect();
        values.sort_unstable();
        assert_eq!(values, seen, "{place:?}");
        assert!(rows.iter().all(|row| row.generation == 2 && row.set_by.is_some()));
    }
}

/// Every login's process reads all of them: the sealer and the relay too.
#[tokio::test]
async fn every_role_reads_every_setting() {
    let test = TestDb::kernel().await;
    for (number, place) in (1..).zip(places()) {
        put(&test, place, number).await;
    }
    for login in [testkit::db::Login::Sealer, testkit::db::Login::Relay] {
        let settings = Settings::default();
        settings.renew(&test.internal(login, "settings")).await.unwrap();
        assert_eq!(places().map(|place| settings.get_in(&LIMIT, place)), [1, 2, 3, 4], "{login:?}");
    }
}
