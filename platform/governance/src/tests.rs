//! The governance domain on a real database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::sync::Arc;

use authz::{Context, Grant, Level, Place, Standing};
use db::{Setting, Settings, Source, Tx};
use futures::future::BoxFuture;
use iam::{Iam, Organization, Project};
use serde_json::{Value, json};
use testkit::{SPINE, TestDb, eventually};
use types::{Name, Result, SystemEntropy};

use crate::{EffectiveSetting, Evidence, Governance, Holder, SETTING_NEEDS_EVIDENCE};

static PLATFORM_ONLY: Setting<u32> = Setting::new("test.workers_max", 4, "Workers.").between(1, 64);
static LIMIT: Setting<u32> =
    Setting::new("test.jobs_max", 100, "Jobs at once.").at_least(1).per_project().only_lower();
static NAMED: Setting<u64> =
    Setting::new("test.keep_seconds", 60, "How long, in seconds.").per_organization();
static STRONG: Setting<bool> = Setting::new("test.strong_required", false, "Is a strong login demanded?")
    .needs_evidence("a strong login");

/// A world: one organization with a project, and another organization.
struct World {
    test: TestDb,
    settings: Settings,
    governance: Governance,
    organization: Organization,
    project: Project,
    other: Organization,
}

impl World {
    async fn new() -> Self {
        Self::with(Vec::new()).await
    }

    async fn with(evidence: Vec<(&'static str, Arc<dyn Evidence>)>) -> Self {
        let test = TestDb::with(&[SPINE, iam::MIGRATION_SET]).await;
        let settings = settings();
        let feed = events::Feed::new(test.db.internal("feed"), test.nudges.clone(), settings.clone());
        let decider = Arc::new(policy::Policies::compile(&[iam::POLICY, crate::POLICY], iam::ROLES).unwrap());
        let iam = Iam::new(
            test.db.clone(),
            feed,
            settings.clone(),
            decider.clone(),
            Arc::new(SystemEntropy),
            false,
        );
        let context = iam.bootstrap_context();
        let name = |text: &str| Name::parse(text).unwrap();
        let organization = iam.organization_create(&context, name("one"), Default::default()).await.unwrap();
        let other = iam.organization_create(&context, name("other"), Default::default()).await.unwrap();
        let project =
            iam.project_create(&context, organization.id, name("p"), Default::default()).await.unwrap();
        let governance = Governance::new(test.db.clone(), settings.clone(), decider, iam, evidence);
        Self { test, settings, governance, organization, project, other }
    }

    fn as_role(&self, place: Place, role: &'static str) -> Context {
        let mut context = self.test.context(role);
        context.standing = Arc::new(Standing::of([Grant::fixed(place, role)]));
        context
    }

    fn operator(&self) -> Context {
        self.as_role(Place::Platform, "platform.operator")
    }

    fn admin(&self) -> Context {
        self.as_role(Place::Organization(*self.organization.id.as_uuid()), "organization.admin")
    }

    fn in_organization(&self) -> Holder {
        Holder::Organization(self.organization.id)
    }

    fn in_project(&self) -> Holder {
        Holder::Project(self.project.id)
    }

    async fn set(
        &self,
        context: &Context,
        holder: Holder,
        key: &str,
        value: impl Into<Value>,
    ) -> Result<EffectiveSetting> {
        self.governance.setting_set(context, holder, key, value.into(), None).await
    }

    async fn rows(&self) -> i64 {
        self.test.count("SELECT count(*) FROM spine.setting").await
    }
}

fn settings() -> Settings {
    let declared = vec![PLATFORM_ONLY.info(), LIMIT.info(), NAMED.info(), STRONG.info()];
    Settings::registered(declared, HashMap::new()).unwrap()
}

fn code<T>(result: Result<T>) -> &'static str {
    result.err().expect("it should have been refused").code().code
}

#[tokio::test]
async fn a_value_is_inherited_until_a_place_has_its_own() {
    let world = World::new().await;
    let (operator, admin) = (world.operator(), world.admin());
    let read = async || {
        let found = world.governance.setting_get(&admin, world.in_project(), LIMIT.key).await.unwrap();
        let layers: Vec<Level> = found.layers.iter().map(|layer| layer.scope).collect();
        (found.value, found.source, layers, found.generation)
    };
    assert_eq!(read().await, (json!(100), Source::Default, vec![], 0));
    world.set(&operator, Holder::Platform, LIMIT.key, 50).await.unwrap();
    assert_eq!(read().await, (json!(50), Source::Platform, vec![Level::Platform], 0));
    world.set(&admin, world.in_organization(), LIMIT.key, 40).await.unwrap();
    let both = vec![Level::Platform, Level::Organization];
    assert_eq!(read().await, (json!(40), Source::Organization, both.clone(), 0));
    world.set(&admin, world.in_project(), LIMIT.key, 30).await.unwrap();
    let all = vec![Level::Platform, Level::Organization, Level::Project];
    assert_eq!(read().await, (json!(30), Source::Project, all.clone(), 1));
    let place = Place::Project {
        organization: *world.organization.id.as_uuid(),
        project: *world.project.id.as_uuid(),
    };
    assert_eq!(world.settings.get_in(&LIMIT, place), 30, "what is shown is what holds");
    assert_eq!(world.settings.get(&LIMIT), 50);

    // The platform tightens its own below theirs: theirs stays, is shown, and does not count.
    world.set(&operator, Holder::Platform, LIMIT.key, 20).await.unwrap();
    assert_eq!(read().await, (json!(20), Source::Platform, all, 1));
    let found = world.governance.setting_get(&admin, world.in_project(), LIMIT.key).await.unwrap();
    let why: Vec<&str> = found.layers.iter().filter_map(|layer| layer.ignored.as_deref()).collect();
    assert_eq!(why, ["it cannot be higher than what holds outside, which is 20"; 2]);
    world.governance.setting_clear(&operator, Holder::Platform, LIMIT.key, None).await.unwrap();
    let cleared =
        world.governance.setting_clear(&admin, world.in_project(), LIMIT.key, Some(1)).await.unwrap();
    assert_eq!((cleared.value, cleared.source, cleared.generation), (json!(40), Source::Organization, 2));
}

#[tokio::test]
async fn a_tenant_is_told_the_platforms_value_and_not_who_set_it() {
    let world = World::new().await;
    world.set(&world.operator(), Holder::Platform, LIMIT.key, 50).await.unwrap();
    let seen =
        world.governance.setting_get(&world.admin(), world.in_organization(), LIMIT.key).await.unwrap();
    assert_eq!((&seen.layers[0].value, &seen.layers[0].set_by), (&json!(50), &None));
    let seen = world.governance.setting_get(&world.operator(), Holder::Platform, LIMIT.key).await.unwrap();
    assert_eq!(seen.layers[0].set_by.as_ref().unwrap().id, "platform.operator");
}

/// A refused value leaves the stored one, its generation, the log and the value in force as they were.
#[tokio::test]
async fn a_bad_value_loses_nothing() {
    let world = World::new().await;
    let (operator, admin) = (world.operator(), world.admin());
    world.set(&operator, Holder::Platform, LIMIT.key, 50).await.unwrap();
    world.set(&admin, world.in_organization(), LIMIT.key, 40).await.unwrap();
    let dump = "SELECT count(*) FROM spine.audit_entry";
    let (entries, rows) = (world.test.count(dump).await, world.rows().await);
    let before = world.governance.setting_get(&admin, world.in_organization(), LIMIT.key).await.unwrap();
    for value in [
        json!("many"),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(null),
        json!(true),
        json!([1]),
        json!(u64::MAX),
    ] {
        for (context, holder) in [(&operator, Holder::Platform), (&admin, world.in_organization())] {
            let refused = world.governance.setting_set(context, holder, LIMIT.key, value.clone(), None).await;
            let error = refused.expect_err("a bad value");
            assert_eq!(error.code().code, "setting_invalid", "{value}");
            assert!(
                error.message().contains("a whole number from 1 to 4294967295. Jobs at once."),
                "{error}"
            );
            assert_eq!(error.details().unwrap()["schema"]["minimum"], 1);
        }
    }
    assert_eq!(code(world.set(&admin, world.in_organization(), LIMIT.key, 51).await), "setting_invalid");
    assert_eq!(code(world.set(&admin, world.in_project(), NAMED.key, 1).await), "setting_invalid");
    assert_eq!(
        code(world.set(&admin, world.in_organization(), PLATFORM_ONLY.key, 1).await),
        "setting_unknown"
    );
    assert_eq!(code(world.set(&operator, Holder::Platform, "test.nothing", 1).await), "setting_unknown");
    let century: u64 = 100 * 366 * 86_400;
    assert_eq!(code(world.set(&operator, Holder::Platform, NAMED.key, century).await), "setting_invalid");
    let after = world.governance.setting_get(&admin, world.in_organization(), LIMIT.key).await.unwrap();
    assert_eq!((before, entries, rows), (after, world.test.count(dump).await, world.rows().await));
}

#[tokio::test]
async fn of_two_who_read_the_same_one_sets_it() {
    let world = World::new().await;
    let (context, holder) = (world.operator(), Holder::Platform);
    let set = async |value: u32, if_match: i64| {
        world.governance.setting_set(&context, holder, LIMIT.key, json!(value), Some(if_match)).await
    };
    // Somebody else sets it for the first time, and is not done yet: there is no row to see, and one to wait for.
    let other = world.test.superuser().await;
    other.batch_execute("BEGIN").await.unwrap();
    let first = "INSERT INTO spine.setting (key, value, set_by, set_at) VALUES ($1, '20', '{}', now())";
    other.execute(first, &[&LIMIT.key]).await.unwrap();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let (lost, ()) = tokio::join!(set(10, 0), async {
        eventually("the second one waits", async || world.test.count(waits).await == 1).await;
        other.batch_execute("COMMIT").await.unwrap();
    });
    assert_eq!(code(lost), "precondition_failed");
    assert_eq!(set(30, 1).await.unwrap().generation, 2);
    assert_eq!(set(30, 2).await.unwrap().generation, 2, "the same again changes nothing");
    // Taken back and set again, it is never again what somebody read before.
    let clear = world.governance.setting_clear(&context, holder, LIMIT.key, Some(2)).await.unwrap();
    assert_eq!((clear.generation, clear.source), (3, Source::Default));
    assert_eq!(code(set(30, 0).await), "precondition_failed");
    assert_eq!(set(30, 3).await.unwrap().generation, 4);
}

#[tokio::test]
async fn every_change_is_in_the_log_of_whom_it_concerns() {
    let world = World::new().await;
    let admin = world.admin();
    world.set(&admin, world.in_project(), LIMIT.key, 30).await.unwrap();
    world.set(&admin, world.in_project(), LIMIT.key, 20).await.unwrap();
    world.governance.setting_clear(&admin, world.in_project(), LIMIT.key, None).await.unwrap();
    let sql = "SELECT action, resource_id, org_id, project_id, before, after FROM spine.audit_entry
               WHERE resource_kind = 'setting' ORDER BY generation";
    let found = world.test.superuser().await.query(sql, &[]).await.unwrap();
    let mut seen = Vec::new();
    for row in &found {
        assert_eq!(row.get::<_, &str>(1), LIMIT.key);
        assert_eq!(row.get::<_, uuid::Uuid>(2), *world.organization.id.as_uuid());
        assert_eq!(row.get::<_, uuid::Uuid>(3), *world.project.id.as_uuid());
        let value = |column: usize| row.get::<_, Option<Value>>(column).map(|state| state["value"].clone());
        seen.push((row.get::<_, String>(0), value(4), value(5)));
    }
    let (set, clear) = ("governance.setting.set".to_owned(), "governance.setting.clear".to_owned());
    assert_eq!(
        seen,
        [
            (set.clone(), None, Some(json!(30))),
            (set, Some(json!(30)), Some(json!(20))),
            (clear, Some(json!(20)), Some(Value::Null)),
        ]
    );
    let events = "SELECT count(*) FROM spine.outbox WHERE type LIKE 'gpuaas.governance.setting.%' AND org_id IS NOT NULL";
    assert_eq!(world.test.count(events).await, 3);
}

#[tokio::test]
async fn everyone_does_only_what_their_role_gives_where_they_hold_it() {
    let world = World::new().await;
    let organization = Place::Organization(*world.organization.id.as_uuid());
    let other = Place::Organization(*world.other.id.as_uuid());
    let project = Place::Project {
        organization: *world.organization.id.as_uuid(),
        project: *world.project.id.as_uuid(),
    };
    let holders = [Holder::Platform, world.in_organization(), world.in_project()];
    // What each gets for reading and for setting, at the platform, the organization and the project.
    for (place, role, reading, setting) in [
        (Place::Platform, "platform.operator", ["ok"; 3], ["ok"; 3]),
        (Place::Platform, "platform.auditor", ["ok"; 3], ["forbidden"; 3]),
        (Place::Platform, "platform.support", ["forbidden"; 3], ["forbidden"; 3]),
        (organization, "organization.owner", ["forbidden", "ok", "ok"], ["forbidden", "ok", "ok"]),
        (organization, "organization.auditor", ["forbidden", "ok", "ok"], ["forbidden"; 3]),
        (organization, "organization.member", ["forbidden", "ok", "ok"], ["forbidden"; 3]),
        (project, "project.admin", ["forbidden", "forbidden", "ok"], ["forbidden", "forbidden", "ok"]),
        (project, "project.developer", ["forbidden", "forbidden", "ok"], ["forbidden"; 3]),
        (
            other,
            "organization.owner",
            ["forbidden", "not_found", "not_found"],
            ["forbidden", "not_found", "not_found"],
        ),
    ] {
        let context = world.as_role(place, role);
        for (at, holder) in holders.into_iter().enumerate() {
            let outcome = |result: Result<()>| result.err().map_or("ok", |error| error.code().code);
            let read = world.governance.setting_list(&context, holder).await.map(drop);
            let set = world.set(&context, holder, LIMIT.key, 30).await.map(drop);
            assert_eq!((outcome(read), outcome(set)), (reading[at], setting[at]), "{role} at {holder:?}");
        }
    }
}

#[tokio::test]
async fn a_holder_that_is_not_there_is_not_found_and_an_archived_one_keeps_what_it_has() {
    let world = World::new().await;
    let operator = world.operator();
    let nobody = Holder::Organization("org_01jcqz3k8vf4t9x2m7n5p6r8sd".parse().unwrap());
    let nothing = Holder::Project("prj_01jcqz3k8vf4t9x2m7n5p6r8sd".parse().unwrap());
    for holder in [nobody, nothing] {
        assert_eq!(code(world.governance.setting_list(&operator, holder).await), "not_found");
        assert_eq!(code(world.set(&operator, holder, LIMIT.key, 1).await), "not_found");
    }
    assert_eq!(world.rows().await, 0);
    world.set(&operator, world.in_project(), LIMIT.key, 7).await.unwrap();
    world.test.run("UPDATE iam.project SET state = 'archived'").await;
    assert_eq!(code(world.set(&operator, world.in_project(), LIMIT.key, 8).await), "archived");
    let kept = world.governance.setting_get(&operator, world.in_project(), LIMIT.key).await.unwrap();
    assert_eq!(kept.value, json!(7));
}

/// Says yes once a row is there.
struct Shown;

impl Evidence for Shown {
    fn check<'a>(&'a self, tx: &'a mut Tx<'_>, _: Place, value: &'a Value) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let shown = tx.query("SELECT FROM spine.setting WHERE key = 'shown'", &[]).await?;
            match *value == json!(true) && shown.is_empty() {
                true => Err(SETTING_NEEDS_EVIDENCE.error("nobody has shown it yet")),
                false => Ok(()),
            }
        })
    }
}

#[tokio::test]
async fn a_setting_that_needs_evidence_is_not_set_without() {
    let world = World::new().await;
    let refused = world.set(&world.operator(), Holder::Platform, STRONG.key, true).await;
    assert_eq!(code(refused), "setting_needs_evidence", "nobody can tell");
    let world = World::with(vec![(STRONG.key, Arc::new(Shown))]).await;
    let set = async || world.set(&world.operator(), Holder::Platform, STRONG.key, true).await;
    assert_eq!(code(set().await), "setting_needs_evidence");
    assert_eq!(world.rows().await, 0);
    world.test.set("shown", true).await;
    assert_eq!(set().await.unwrap().value, json!(true));
}

/// A program that knows narrower bounds, or a hand in the database: what does not fit is passed over, and shown.
#[tokio::test]
async fn a_stored_value_that_no_longer_fits_is_shown_and_does_not_count() {
    let world = World::new().await;
    world.test.set(PLATFORM_ONLY.key, 65).await;
    let internal = world.test.db.internal("settings");
    world.settings.renew(&internal).await.unwrap();
    assert_eq!(world.settings.get(&PLATFORM_ONLY), 4);
    let shown =
        world.governance.setting_get(&world.operator(), Holder::Platform, PLATFORM_ONLY.key).await.unwrap();
    assert_eq!((shown.value, shown.source), (json!(4), Source::Default));
    assert_eq!(shown.layers[0].ignored.as_deref(), Some("it has to be a whole number from 1 to 64"));
    world.set(&world.operator(), Holder::Platform, PLATFORM_ONLY.key, 64).await.unwrap();
    assert_eq!(world.settings.get(&PLATFORM_ONLY), 64, "and a good one counts at once");
}
