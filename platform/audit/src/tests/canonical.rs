//! The bytes that are sealed, pinned: a change here breaks every log there is.

use merkle::export::LINE_BYTES_MAX;
use uuid::Uuid;

use crate::canonical::EntryRow;

fn row() -> EntryRow {
    EntryRow {
        xid: "731".to_owned(),
        id: Uuid::from_u128(1),
        at: "2026-11-15T21:07:39.5Z".parse().unwrap(),
        organization: Some(Uuid::from_u128(2)),
        project: None,
        actor_kind: "user".to_owned(),
        actor_id: "usr_1".to_owned(),
        behalf_kind: None,
        behalf_id: None,
        credential: None,
        action: "iam.organization.create".to_owned(),
        resource_kind: "organization".to_owned(),
        resource_id: "org_2".to_owned(),
        generation: 1,
        before: None,
        after: Some(r#"{"name":"Ä \"b\"","n":1.50}"#.to_owned()),
        correlation_id: Uuid::from_u128(3),
        causation_id: None,
        policy_version: 1,
    }
}

#[test]
fn the_bytes_of_an_entry_never_change() {
    let expected = concat!(
        r#"{"index":5,"v":1,"id":"aud_00000000000000000000000001","transaction":"731","#,
        r#""at":"2026-11-15T21:07:39.500000Z","org_id":"org_00000000000000000000000002","project_id":null,"#,
        r#""actor":{"kind":"user","id":"usr_1","credential":null,"on_behalf_of":null},"action":"iam.organization.create","#,
        r#""resource":{"kind":"organization","id":"org_2"},"generation":1,"before":null,"#,
        r#""after":{"name":"Ä \"b\"","n":1.50},"correlation_id":"cor_00000000000000000000000003","#,
        r#""causation_id":null,"policy_version":1}"#
    );
    assert_eq!(row().line(5), expected);
}

#[test]
fn every_column_is_part_of_the_bytes() {
    let changes: [fn(&mut EntryRow); 19] = [
        |row| row.xid = "732".to_owned(),
        |row| row.id = Uuid::from_u128(9),
        |row| row.at = "2026-11-15T21:07:39.500001Z".parse().unwrap(),
        |row| row.organization = None,
        |row| row.project = Some(Uuid::from_u128(9)),
        |row| row.actor_kind = "agent".to_owned(),
        |row| row.actor_id = "x".to_owned(),
        |row| (row.behalf_kind, row.behalf_id) = (Some("user".to_owned()), Some("x".to_owned())),
        |row| row.credential = Some("key_x".to_owned()),
        |row| (row.behalf_kind, row.behalf_id) = (Some("user".to_owned()), Some("y".to_owned())),
        |row| row.action = "x".to_owned(),
        |row| row.resource_kind = "x".to_owned(),
        |row| row.resource_id = "x".to_owned(),
        |row| row.generation = 2,
        |row| row.before = Some("{}".to_owned()),
        |row| row.after = None,
        |row| row.correlation_id = Uuid::from_u128(9),
        |row| row.causation_id = Some("x".to_owned()),
        |row| row.policy_version = 2,
    ];
    let mut lines = vec![row().line(5), row().line(6)];
    for change in changes {
        let mut changed = row();
        change(&mut changed);
        lines.push(changed.line(5));
    }
    let all = lines.len();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), all);
}

#[test]
fn an_entry_is_one_line_whatever_was_written() {
    let mut spread = row();
    spread.after = Some("{\n\t\"a\":\r\n \"x\\n\"}".to_owned());
    spread.actor_id = "a\nb".to_owned();
    let line = spread.line(0);
    assert!(!line.contains(['\n', '\r', '\t']));
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["after"]["a"], "x\n");
    assert_eq!(value["actor"]["id"], "a\nb");
}

#[test]
fn a_state_too_large_for_a_line_is_kept_by_its_digest() {
    let mut large = row();
    large.after = Some(format!("\"{}\"", "x".repeat(LINE_BYTES_MAX)));
    let line = large.line(0);
    assert!(line.len() <= LINE_BYTES_MAX);
    let entry: crate::Entry = serde_json::from_str(&line).unwrap();
    assert_eq!(entry.after, None);
    assert_eq!(entry.after_omitted.unwrap().bytes, LINE_BYTES_MAX as u64 + 2);
    large.after = Some(format!("\"{}\"", "y".repeat(LINE_BYTES_MAX)));
    assert_ne!(large.line(0), line);
}
