//! No value without its line in the log, for its purpose, to those who may have it.

use super::fixture::*;
use crate::*;
use authz::{ActorKind, Idempotency};
use std::sync::Arc;

const DELIVERIES: &str = "SELECT count(*) FROM secrets.delivery";

#[tokio::test]
async fn the_log_says_who_was_given_what() {
    let world = World::new().await;
    let info = world.store("logged", "value").await;
    let delivered = world.deliver(info.id, None).await.unwrap();
    world.rotate(info.id, "other").await.unwrap();
    world.deliver(info.id, None).await.unwrap();
    let (context, holder) = (&world.acme.context, world.acme.holder());
    let page = world.secrets.delivery_list(context, holder, info.id, 1, None).await.unwrap();
    let first = &page.items[0];
    assert_eq!((first.id, first.version, &first.recipient), (delivered.delivery, 1, &node()));
    assert_eq!((first.secret_id, first.purpose.as_str()), (info.id, "test"));
    let cursor = page.next_cursor.as_deref();
    let rest = world.secrets.delivery_list(context, holder, info.id, 9, cursor).await.unwrap();
    assert_eq!(rest.items.iter().map(|delivery| delivery.version).collect::<Vec<_>>(), [2]);
}

#[tokio::test]
async fn no_value_leaves_when_the_log_cannot_be_written() {
    let world = World::new().await;
    let info = world.store("unlogged", "value").await;
    world.run("REVOKE INSERT ON secrets.delivery FROM test_app").await;
    assert_eq!(code(world.deliver(info.id, None).await), "internal_error");
    world
        .run("GRANT INSERT ON secrets.delivery TO test_app; REVOKE INSERT ON spine.audit_entry FROM test_app")
        .await;
    assert_eq!(code(world.deliver(info.id, None).await), "internal_error");
    assert_eq!(world.count(DELIVERIES).await, 0);
    world.run("GRANT INSERT ON spine.audit_entry TO test_app").await;
    assert_eq!(code(world.deliver(info.id, None).await), "ok");
}

#[tokio::test]
async fn a_value_that_does_not_open_leaves_no_line() {
    let world = World::new().await;
    let info = world.store("broken", "value").await;
    world.run("UPDATE secrets.secret_version SET sealed = sealed || '\\x00'").await;
    assert_eq!(code(world.deliver(info.id, None).await), "secret_unreadable");
    assert_eq!(world.count(DELIVERIES).await, 0);
}

#[tokio::test]
async fn a_secret_is_delivered_for_its_purpose_only() {
    let world = World::new().await;
    let info = world.store_for(&world.acme, "narrow", "registry_pull", "value").await.unwrap();
    assert_eq!(code(world.deliver(info.id, None).await), "secret_purpose_mismatch");
    assert_eq!(world.count(DELIVERIES).await, 0);
}

#[tokio::test]
async fn only_workers_take_delivery() {
    let world = World::new().await;
    let info = world.store("kept", "value").await;
    let purpose = Purpose::parse("test").unwrap();
    let mut operator = world.acme.context.clone();
    operator.standing = Arc::new(crate::tests::fixture::operator());
    let mut other_worker = world.worker();
    other_worker.actor = authz::Actor::system("another.worker");
    for (context, expected) in [
        (&world.acme.context, "forbidden"),
        (&operator, "forbidden"),
        (&world.rival.context, "not_found"),
        (&other_worker, "not_found"),
        (&world.worker(), "ok"),
    ] {
        let request = DeliveryRequest {
            holder: world.acme.holder(),
            secret: info.id,
            purpose: &purpose,
            recipient: node(),
            version: None,
        };
        assert_eq!(code(world.secrets.deliver(context, request).await), expected, "{:?}", context.actor);
    }
}

#[tokio::test]
async fn a_retried_request_is_a_second_line_not_a_replay() {
    let world = World::new().await;
    let info = world.store("again", "value").await;
    let mut context = world.worker();
    context.idempotency =
        Some(Idempotency { operation: "allocations.create", key_hash: [1; 32], body_hash: [2; 32] });
    let purpose = Purpose::parse("test").unwrap();
    for lines in 1..=2 {
        let request = DeliveryRequest {
            holder: world.acme.holder(),
            secret: info.id,
            purpose: &purpose,
            recipient: node(),
            version: None,
        };
        assert_eq!(world.secrets.deliver(&context, request).await.unwrap().value.expose(), "value");
        assert_eq!(world.count(DELIVERIES).await, lines);
    }
    assert_eq!(world.count("SELECT count(*) FROM spine.idempotency").await, 0, "the caller's key is its own");
}

#[tokio::test]
async fn another_project_of_the_same_organization_is_a_stranger() {
    let world = World::new().await;
    let info = world.store("mine", "value").await;
    let name = types::Name::parse("second").unwrap();
    let bootstrap = world.iam.bootstrap_context();
    let second = world
        .iam
        .project_create(&bootstrap, world.acme.organization, name, Default::default())
        .await
        .unwrap();
    let (context, holder) = (&world.acme.context, Holder::Project(second.id));
    assert_eq!(code(world.secrets.get(context, holder, info.id).await), "not_found");
    assert_eq!(code(world.secrets.delivery_list(context, holder, info.id, 9, None).await), "not_found");
    assert_eq!(code(world.secrets.retire(context, holder, info.id, None).await), "not_found");
    let value = types::Secret::new("other".to_owned());
    assert_eq!(code(world.secrets.rotate(context, holder, info.id, &value, None).await), "not_found");
    let request = DeliveryRequest {
        holder,
        secret: info.id,
        purpose: &Purpose::parse("test").unwrap(),
        recipient: node(),
        version: None,
    };
    assert_eq!(code(world.secrets.deliver(&world.worker(), request).await), "not_found");
}

#[tokio::test]
async fn the_log_is_append_only_for_everyone() {
    let world = World::new().await;
    let info = world.store("kept", "value").await;
    world.deliver(info.id, None).await.unwrap();
    for statement in [
        "UPDATE secrets.delivery SET version = 9",
        "DELETE FROM secrets.delivery",
        "TRUNCATE secrets.delivery",
    ] {
        let refused = world.superuser().await.batch_execute(statement).await.unwrap_err();
        assert!(refused.as_db_error().unwrap().message().contains("append-only"), "{statement}");
    }
    assert_eq!(node().kind, ActorKind::Node);
}
