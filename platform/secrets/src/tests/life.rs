//! A secret's life: stored, found, rotated, retired.

use super::fixture::*;
use crate::*;
use std::time::Duration;
use types::{Name, Secret};

#[tokio::test]
async fn what_was_stored_is_what_is_delivered() {
    let world = World::new().await;
    let text = "naïve 🔑\nsecond line\0end";
    let info = world.store("database password", text).await;
    assert_eq!(world.deliver(info.id, None).await.unwrap().value.expose(), text);
    let read = world.secrets.get(&world.acme.context, world.acme.holder(), info.id).await.unwrap();
    assert_eq!(read, info);
    assert_eq!((read.version, read.generation, read.state), (1, 1, SecretState::Active));
    assert_eq!(read.owner, world.acme.context.actor.subject);
    assert_eq!(read.org_id, Some(world.acme.organization));
}

#[tokio::test]
async fn a_change_has_its_audit_entry_and_event() {
    let world = World::new().await;
    let info = world.store("one", "value").await;
    world.rotate(info.id, "other").await.unwrap();
    world.deliver(info.id, None).await.unwrap();
    world.secrets.retire(&world.acme.context, world.acme.holder(), info.id, None).await.unwrap();
    for (action, event) in [
        ("secrets.secret.create", "gpuaas.secrets.secret.created"),
        ("secrets.secret.rotate", "gpuaas.secrets.secret.rotated"),
        ("secrets.secret.deliver", "gpuaas.secrets.secret.delivered"),
        ("secrets.secret.retire", "gpuaas.secrets.secret.retired"),
    ] {
        let sql = format!(
            "SELECT count(*) FROM spine.audit_entry a JOIN spine.outbox o USING (id)
             WHERE a.action = '{action}' AND o.type = '{event}' AND a.resource_id = '{}' AND a.org_id IS NOT NULL",
            info.id
        );
        assert_eq!(world.count(&sql).await, 1, "{action}");
    }
}

#[tokio::test]
async fn names_are_normalised_and_unique_until_retired() {
    let world = World::new().await;
    let info = world.store("  Cafe\u{301}   Key ", "value").await;
    assert_eq!(info.name.as_str(), "Café Key");
    assert_eq!(code(world.store_for(&world.acme, "CAFÉ KEY", "test", "value").await), "name_taken");
    assert_eq!(code(world.store_for(&world.rival, "café key", "test", "value").await), "ok");
    world.secrets.retire(&world.acme.context, world.acme.holder(), info.id, None).await.unwrap();
    assert_eq!(code(world.store_for(&world.acme, "café key", "test", "value").await), "ok");
}

#[tokio::test]
async fn size_is_limited_by_setting() {
    let world = World::new().await;
    assert_eq!(code(world.store_for(&world.acme, "empty", "test", "").await), "secret_value_size");
    let info = world.store("fits", &"x".repeat(64 << 10)).await;
    let larger = "x".repeat((64 << 10) + 1);
    assert_eq!(code(world.store_for(&world.acme, "large", "test", &larger).await), "secret_value_size");
    assert_eq!(code(world.rotate(info.id, &larger).await), "secret_value_size");
    world.set("secrets.value_bytes_max", 100_000).await;
    assert_eq!(code(world.rotate(info.id, &larger).await), "ok");
    assert_eq!(world.deliver(info.id, None).await.unwrap().value.expose(), &larger);
}

#[tokio::test]
async fn the_version_before_lives_for_the_overlap_and_is_then_destroyed() {
    let world = World::new().await;
    world.set("secrets.rotation_overlap_seconds", 60).await;
    let info = world.store("rotated", "first").await;
    let after = world.rotate(info.id, "second").await.unwrap();
    assert_eq!((after.version, after.generation), (2, 2));
    world.advance(Duration::from_secs(59));
    assert_eq!(world.deliver(info.id, None).await.unwrap().value.expose(), "second");
    assert_eq!(world.deliver(info.id, Some(1)).await.unwrap().value.expose(), "first");
    world.advance(Duration::from_secs(1));
    assert_eq!(code(world.deliver(info.id, Some(1)).await), "secret_version_ended");
    assert_eq!(code(world.deliver(info.id, Some(3)).await), "not_found");
    world.rotate(info.id, "third").await.unwrap();
    let destroyed = "SELECT count(*) FROM secrets.secret_version WHERE version = 1 AND sealed IS NULL AND wrapped_key IS NULL";
    assert_eq!(world.count(destroyed).await, 1, "the next rotation destroys what has ended");
    assert_eq!(world.deliver(info.id, Some(2)).await.unwrap().value.expose(), "second");
    assert_eq!(code(world.deliver(info.id, Some(1)).await), "secret_version_ended");
}

#[tokio::test]
async fn without_overlap_the_version_before_is_destroyed_at_once() {
    let world = World::new().await;
    world.set("secrets.rotation_overlap_seconds", 0).await;
    let info = world.store("rotated", "first").await;
    world.rotate(info.id, "second").await.unwrap();
    assert_eq!(world.count("SELECT count(sealed) FROM secrets.secret_version").await, 1);
    assert_eq!(world.deliver(info.id, None).await.unwrap().value.expose(), "second");
}

#[tokio::test]
async fn retiring_destroys_the_bytes_and_ends_deliveries() {
    let world = World::new().await;
    let info = world.store("ended", "first").await;
    world.rotate(info.id, "second").await.unwrap();
    let (context, holder) = (&world.acme.context, world.acme.holder());
    let stale = world.secrets.retire(context, holder, info.id, Some(1)).await;
    assert_eq!(code(stale), "precondition_failed");
    let retired = world.secrets.retire(context, holder, info.id, Some(2)).await.unwrap();
    assert_eq!((retired.state, retired.generation), (SecretState::Retired, 3));
    let left = "SELECT count(sealed) + count(wrapped_key) FROM secrets.secret_version";
    assert_eq!(world.count(left).await, 0);
    assert_eq!(code(world.deliver(info.id, None).await), "secret_retired");
    assert_eq!(code(world.deliver(info.id, Some(1)).await), "secret_retired");
    assert_eq!(code(world.rotate(info.id, "third").await), "secret_retired");
    let again = world.secrets.retire(context, holder, info.id, None).await.unwrap();
    assert_eq!(again, retired, "a second time changes nothing");
}

#[tokio::test]
async fn rotations_at_once_all_get_a_version_of_their_own() {
    let world = World::new().await;
    let info = world.store("raced", "0").await;
    let values = ["1", "2", "3"];
    let outcomes = futures::future::join_all(values.map(|value| world.rotate(info.id, value))).await;
    let mut versions: Vec<i32> = outcomes.into_iter().map(|outcome| outcome.unwrap().version).collect();
    versions.sort_unstable();
    assert_eq!(versions, [2, 3, 4]);
    let current = world.deliver(info.id, None).await.unwrap();
    assert!(current.version == 4 && values.contains(&current.value.expose().as_str()));
}

#[tokio::test]
async fn if_match_guards_a_rotation() {
    let world = World::new().await;
    let info = world.store("guarded", "first").await;
    let value = Secret::new("second".to_owned());
    let (context, holder) = (&world.acme.context, world.acme.holder());
    let rotate = |if_match| world.secrets.rotate(context, holder, info.id, &value, if_match);
    assert_eq!(code(rotate(Some(2)).await), "precondition_failed");
    assert_eq!(code(rotate(Some(1)).await), "ok");
    assert_eq!(code(rotate(Some(1)).await), "precondition_failed");
}

#[tokio::test]
async fn lists_are_filtered_paged_and_of_one_project() {
    let world = World::new().await;
    for number in 0..5 {
        world.store(&format!("key {number}"), "value").await;
    }
    world.store_for(&world.acme, "other", "elsewhere", "value").await.unwrap();
    world.store_for(&world.rival, "rival's", "test", "value").await.unwrap();
    let list = async |filter: SecretFilter| {
        world.secrets.list(&world.acme.context, world.acme.holder(), &filter).await.unwrap()
    };
    let first = list(SecretFilter { limit: 4, ..Default::default() }).await;
    assert_eq!(first.items.len(), 4);
    let rest = list(SecretFilter { limit: 4, cursor: first.next_cursor, ..Default::default() }).await;
    assert_eq!(rest.items.iter().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["key 4", "other"]);
    assert_eq!(rest.next_cursor, None);
    let purpose = Some(Purpose::parse("elsewhere").unwrap());
    assert_eq!(list(SecretFilter { limit: 9, purpose, ..Default::default() }).await.items.len(), 1);
    let name = Some(Name::parse("KEY 2").unwrap());
    assert_eq!(list(SecretFilter { limit: 9, name, ..Default::default() }).await.items.len(), 1);
    let state = Some(SecretState::Retired);
    assert_eq!(list(SecretFilter { limit: 9, state, ..Default::default() }).await.items.len(), 0);
}

#[tokio::test]
async fn an_archived_project_takes_no_new_secrets() {
    let world = World::new().await;
    world.iam.project_archive(&world.acme.context, world.acme.project, None).await.unwrap();
    assert_eq!(code(world.store_for(&world.acme, "late", "test", "value").await), "archived");
}

#[test]
fn purposes_are_plain_words() {
    for fine in ["a", "registry_pull", "webhook.signing-2"] {
        assert_eq!(Purpose::parse(fine).unwrap().as_str(), fine);
    }
    for wrong in ["", "2a", "_a", "A", "a b", "a/b", "ä", &"a".repeat(64)] {
        assert_eq!(Purpose::parse(wrong), Err(PurposeError), "{wrong:?}");
    }
}

#[tokio::test]
async fn what_has_ended_is_destroyed_although_nothing_changes_any_more() {
    let world = World::new().await;
    world.set("secrets.rotation_overlap_seconds", 60).await;
    world.set("secrets.destroy_batch_max", 2).await;
    let mut kept = Vec::new();
    for number in 0..3 {
        let info = world.store(&format!("rotated {number}"), "old").await;
        world.rotate(info.id, "new").await.unwrap();
        kept.push(info.id);
    }
    assert_eq!(world.secrets.destroy_ended().await.unwrap(), 0, "the overlap is not over");
    assert_eq!(world.deliver(kept[0], Some(1)).await.unwrap().value.expose(), "old");
    world.advance(Duration::from_secs(61));
    let (one, two) = tokio::join!(world.secrets.destroy_ended(), world.secrets.destroy_ended());
    assert_eq!(one.unwrap() + two.unwrap(), 3, "two replicas share the work");
    let left = "SELECT count(*) FROM secrets.secret_version WHERE version = 1 AND (sealed IS NOT NULL OR wrapped_key IS NOT NULL)";
    assert_eq!(world.count(left).await, 0);
    assert_eq!(world.deliver(kept[0], None).await.unwrap().value.expose(), "new");
    let told = "SELECT count(*) FROM spine.audit_entry a JOIN spine.outbox o USING (id)
                WHERE a.action = 'secrets.version.destroy' AND o.type = 'gpuaas.secrets.secret.version_destroyed'
                  AND a.org_id IS NOT NULL AND a.project_id IS NOT NULL";
    assert_eq!(world.count(told).await, 3);
}

#[tokio::test]
async fn a_project_has_an_overlap_of_its_own() {
    let world = World::new().await;
    world.set("secrets.rotation_overlap_seconds", 3600).await;
    let holder = world.acme.holder();
    let (organization, project) = (world.acme.organization, holder.project().unwrap());
    let own = format!(
        "INSERT INTO spine.setting (org_id, scope_id, key, value, set_by, set_at)
         VALUES ('{}', '{project}', 'secrets.rotation_overlap_seconds', '60', '{{}}', now())",
        organization.as_uuid()
    );
    world.test.run(&own).await;
    world.test.settings.renew(&world.test.db.internal("settings")).await.unwrap();
    let info = world.store("rotated", "first").await;
    world.rotate(info.id, "second").await.unwrap();
    world.advance(Duration::from_secs(59));
    assert_eq!(world.deliver(info.id, Some(1)).await.unwrap().value.expose(), "first");
    world.advance(Duration::from_secs(1));
    assert_eq!(code(world.deliver(info.id, Some(1)).await), "secret_version_ended");
}
