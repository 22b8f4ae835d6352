//! Someone who can write to the database, but has no key: what they move or change does not open.

use super::fixture::*;
use crate::*;

/// Secrets ONE (two versions), TWO and, for another purpose, THREE of acme's, and FOUR of the rival's; then `script` by
/// the superuser, with these words for the ids; then a delivery of the one named, to acme, for the purpose `test`.
async fn after(script: &str, delivered: &str) -> &'static str {
    let world = World::new().await;
    let one = world.store("one", "value of one").await;
    world.rotate(one.id, "newer value of one").await.unwrap();
    let two = world.store("two", "value of two").await;
    let three = world.store_for(&world.acme, "three", "elsewhere", "value of three").await.unwrap();
    let four = world.store_for(&world.rival, "four", "test", "value of four").await.unwrap();
    let named = [("ONE", one.id), ("TWO", two.id), ("THREE", three.id), ("FOUR", four.id)];
    let script = named
        .iter()
        .map(|(word, id)| (*word, id.as_uuid()))
        .chain([("PROJECT", world.acme.project.as_uuid()), ("ACME", world.acme.organization.as_uuid())])
        .fold(script.to_owned(), |text, (word, id)| text.replace(word, &format!("'{id}'")));
    world.run(&script).await;
    let (_, wanted) = named.iter().find(|(word, _)| *word == delivered).unwrap();
    let result = world.deliver(*wanted, None).await;
    if result.is_err() {
        assert_eq!(world.count("SELECT count(*) FROM secrets.delivery").await, 0);
    }
    code(result)
}

const COPY: &str = "UPDATE secrets.secret_version AS to_row
    SET sealed = from_row.sealed, wrapped_key = from_row.wrapped_key, key_encryption_id = from_row.key_encryption_id
    FROM secrets.secret_version AS from_row";

#[tokio::test]
async fn untouched_rows_open() {
    assert_eq!(after("SELECT 1", "ONE").await, "ok");
}

#[tokio::test]
async fn a_ciphertext_moved_to_another_secret_does_not_open() {
    let script =
        format!("{COPY} WHERE to_row.secret_id = ONE AND to_row.version = 2 AND from_row.secret_id = TWO");
    assert_eq!(after(&script, "ONE").await, "secret_unreadable");
}

#[tokio::test]
async fn an_older_version_put_in_the_newer_ones_place_does_not_open() {
    let script = format!(
        "{COPY} WHERE to_row.secret_id = ONE AND to_row.version = 2 AND from_row.secret_id = ONE AND from_row.version = 1"
    );
    assert_eq!(after(&script, "ONE").await, "secret_unreadable");
}

#[tokio::test]
async fn another_secrets_data_key_does_not_open() {
    let script = "UPDATE secrets.secret_version AS to_row SET wrapped_key = from_row.wrapped_key
        FROM secrets.secret_version AS from_row
        WHERE to_row.secret_id = ONE AND to_row.version = 2 AND from_row.secret_id = TWO";
    assert_eq!(after(script, "ONE").await, "secret_unreadable");
}

#[tokio::test]
async fn a_relabelled_purpose_does_not_open() {
    assert_eq!(
        after("UPDATE secrets.secret SET purpose = 'test' WHERE id = THREE", "THREE").await,
        "secret_unreadable"
    );
}

#[tokio::test]
async fn a_secret_carried_over_to_another_tenant_does_not_open() {
    let script = "UPDATE secrets.secret SET org_id = ACME, project_id = PROJECT WHERE id = FOUR;
        UPDATE secrets.secret_version SET org_id = ACME WHERE secret_id = FOUR";
    assert_eq!(after(script, "FOUR").await, "secret_unreadable");
}

#[tokio::test]
async fn a_secret_carried_over_to_another_project_does_not_open() {
    let world = World::new().await;
    let info = world.store("mine", "value").await;
    let name = types::Name::parse("second").unwrap();
    let bootstrap = world.iam.bootstrap_context();
    let second = world
        .iam
        .project_create(&bootstrap, world.acme.organization, name, Default::default())
        .await
        .unwrap();
    world.run(&format!("UPDATE secrets.secret SET project_id = '{}'", second.id.as_uuid())).await;
    let request = DeliveryRequest {
        holder: Holder::Project(second.id),
        secret: info.id,
        purpose: &Purpose::parse("test").unwrap(),
        recipient: node(),
        version: None,
    };
    assert_eq!(code(world.secrets.deliver(&world.worker(), request).await), "secret_unreadable");
}

#[tokio::test]
async fn a_signing_key_posing_as_a_value_does_not_open() {
    let world = World::new().await;
    let (name, purpose) = (types::Name::parse("signer").unwrap(), Purpose::parse("test").unwrap());
    let info = world.secrets.ensure_signing_key(&world.worker(), &name, &purpose).await.unwrap();
    world.run("UPDATE secrets.secret SET material = 'value'").await;
    let request = DeliveryRequest {
        holder: Holder::Platform,
        secret: info.id,
        purpose: &purpose,
        recipient: node(),
        version: None,
    };
    assert_eq!(code(world.secrets.deliver(&world.worker(), request).await), "secret_unreadable");
}

#[tokio::test]
async fn every_changed_byte_is_noticed() {
    let world = World::new().await;
    let info = world.store("flipped", "value").await;
    for column in ["sealed", "wrapped_key"] {
        let bytes =
            world.count(&format!("SELECT octet_length({column})::bigint FROM secrets.secret_version")).await;
        for at in 0..bytes {
            let flip = format!(
                "UPDATE secrets.secret_version SET {column} = set_byte({column}, {at}, get_byte({column}, {at}) # 1)"
            );
            world.run(&flip).await;
            assert_eq!(
                code(world.deliver(info.id, None).await),
                "secret_unreadable",
                "byte {at} of {column}"
            );
            world.run(&flip).await;
        }
    }
    assert_eq!(code(world.deliver(info.id, None).await), "ok");
}
