//! People, what they hold, and how they come to hold it.

use std::sync::Arc;

use authz::{Actor, ActorKind, Context, Grant as Held, Place, Standing};
use testkit::{SPINE, TestDb};
use types::{Result, Secret, Timestamp};
use web::{Authenticator as _, Credential, Found, Identity};

use super::{domain, name};
use crate::grants::{GrantFilter, NewGrant};
use crate::keys::NewKey;
use crate::model::*;
use crate::{Iam, MIGRATION_SET, ORGANIZATION_OWNER, PLATFORM_OPERATOR, role};

struct World {
    test: TestDb,
    iam: Iam,
    acme: OrganizationId,
    project: ProjectId,
    owner: PersonId,
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> &'static str {
    result.expect_err("is refused").code().code
}

impl World {
    async fn new() -> Self {
        let test = TestDb::with(&[SPINE, MIGRATION_SET]).await;
        let (iam, _feed) = domain(&test).await;
        let bootstrap = iam.bootstrap_context();
        let acme = iam.organization_create(&bootstrap, name("acme"), Labels::new()).await.unwrap().id;
        let project = iam.project_create(&bootstrap, acme, name("training"), Labels::new()).await.unwrap().id;
        let owner = iam.person_create(&bootstrap, name("Olga"), None).await.unwrap().id;
        iam.owner_appoint(&bootstrap, acme, owner).await.unwrap();
        Self { test, iam, acme, project, owner }
    }

    async fn person(&self, text: &str) -> PersonId {
        self.iam.person_create(&self.iam.bootstrap_context(), name(text), None).await.unwrap().id
    }

    /// Somebody who holds `role` in acme, by invitation.
    async fn member(&self, text: &str, role_name: &str) -> PersonId {
        let person = self.person(text).await;
        let owner = self.as_person(self.owner).await;
        let offered = self.iam.invitation_create(&owner, self.acme, None, role(role_name).unwrap());
        let (_, invitation) = offered.await.unwrap();
        self.iam.invitation_accept(&self.as_person(person).await, invitation.expose()).await.unwrap();
        person
    }

    /// The person, with what the database says they hold.
    async fn as_person(&self, person: PersonId) -> Context {
        let filter = GrantFilter {
            org_id: Some(self.acme),
            person_id: Some(person),
            limit: 100,
            ..GrantFilter::default()
        };
        let held = self.iam.grant_list(&self.iam.bootstrap_context(), &filter).await.unwrap().items;
        let actor = Actor::new(ActorKind::User, person.to_string());
        let mut context = Context::new(actor, self.test.db.make_id());
        let grants = held.iter().map(|grant| Held::fixed(grant.place(), role(&grant.role).unwrap().name));
        context.standing = Arc::new(Standing::of(grants));
        context
    }

    fn grant(&self, person_id: PersonId, role_name: &str) -> NewGrant {
        NewGrant {
            person_id,
            role: role(role_name).unwrap(),
            org_id: Some(self.acme),
            project_id: None,
            expires_at: None,
        }
    }

    async fn owners(&self) -> Vec<Grant> {
        let filter = GrantFilter {
            org_id: Some(self.acme),
            role: Some(ORGANIZATION_OWNER.to_owned()),
            limit: 10,
            ..GrantFilter::default()
        };
        self.iam.grant_list(&self.iam.bootstrap_context(), &filter).await.unwrap().items
    }

    async fn show(&self, key: &Secret) -> Option<Identity> {
        let credential = Credential { text: key.clone(), optional: false };
        match super::credentials(&self.test).identify(&credential).await.unwrap() {
            Found::Good(identity) => Some(identity),
            Found::Stale | Found::Wrong => None,
        }
    }

    fn key(&self, person_id: PersonId, text: &str) -> NewKey {
        NewKey {
            person_id,
            name: name(text),
            org_id: None,
            project_id: None,
            actions: None,
            expires_at: None,
        }
    }
}

#[tokio::test]
async fn the_last_owner_stays_whoever_leaves_first() {
    let world = World::new().await;
    let only = world.owners().await[0].clone();
    let alone = world.as_person(world.owner).await;
    assert_eq!(code(world.iam.grant_end(&alone, Some(world.acme), only.id, None).await), "last_owner");

    // Two owners who leave at the same moment: one of them stays.
    let second = world.member("Otto", ORGANIZATION_OWNER).await;
    let owners = world.owners().await;
    assert_eq!(owners.len(), 2);
    let (first, other) = (world.as_person(world.owner).await, world.as_person(second).await);
    let of = |person| owners.iter().find(|grant| grant.person_id == person).unwrap().id;
    let (a, b) = tokio::join!(
        world.iam.grant_end(&first, Some(world.acme), of(world.owner), None),
        world.iam.grant_end(&other, Some(world.acme), of(second), None)
    );
    assert_eq!([&a, &b].iter().filter(|result| result.is_ok()).count(), 1, "{a:?} {b:?}");
    assert_eq!(code(if a.is_err() { a } else { b }), "last_owner");
    assert_eq!(world.owners().await.len(), 1);
}

#[tokio::test]
async fn an_invitation_makes_one_member_however_many_accept_it_at_once() {
    let world = World::new().await;
    let owner = world.as_person(world.owner).await;
    let role = role("organization.member").unwrap();
    let (invitation, secret) = world.iam.invitation_create(&owner, world.acme, None, role).await.unwrap();
    let mut people = Vec::new();
    for number in 0..4 {
        let person = world.person(&format!("guest {number}")).await;
        people.push(world.as_person(person).await);
    }
    let accepted = people.iter().map(|person| world.iam.invitation_accept(person, secret.expose()));
    let results = futures::future::join_all(accepted).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for result in results.into_iter().filter(Result::is_err) {
        assert_eq!(code(result), "invitation_invalid");
    }
    let grants = "SELECT count(*) FROM iam.role_grant WHERE role = 'organization.member'";
    assert_eq!(world.test.count(grants).await, 1);
    let withdrawn = world.iam.invitation_withdraw(&owner, world.acme, invitation.id, None).await;
    assert_eq!(code(withdrawn), "invitation_invalid");

    let (again, secret) = world.iam.invitation_create(&owner, world.acme, None, role).await.unwrap();
    world.iam.invitation_withdraw(&owner, world.acme, again.id, None).await.unwrap();
    assert_eq!(code(world.iam.invitation_accept(&people[0], secret.expose()).await), "invitation_invalid");
    let (_, secret) = world.iam.invitation_create(&owner, world.acme, None, role).await.unwrap();
    let expire = "UPDATE iam.invitation SET expires_at = now() - interval '1 day' WHERE accepted_at IS NULL";
    world.test.run(expire).await;
    assert_eq!(code(world.iam.invitation_accept(&people[0], secret.expose()).await), "invitation_invalid");
    assert_eq!(code(world.iam.invitation_accept(&people[0], "gpuaas_inv_guess").await), "invitation_invalid");
}

#[tokio::test]
async fn admins_give_every_role_but_the_owners() {
    let world = World::new().await;
    let admin = world.member("Anna", "organization.admin").await;
    let member = world.member("Max", "organization.member").await;
    let context = world.as_person(admin).await;
    let owner = world.grant(member, ORGANIZATION_OWNER);
    assert_eq!(code(world.iam.grant_create(&context, owner).await), "forbidden");
    let offered = world.iam.invitation_create(&context, world.acme, None, owner.role).await;
    assert_eq!(code(offered.map(|(invitation, _)| invitation)), "forbidden");
    let owners = world.owners().await;
    assert_eq!(code(world.iam.grant_end(&context, Some(world.acme), owners[0].id, None).await), "forbidden");
    let auditor = world.grant(member, "organization.auditor");
    let given = world.iam.grant_create(&context, auditor).await.unwrap();
    assert_eq!(code(world.iam.grant_create(&context, auditor).await), "already_held");
    world.iam.grant_end(&context, Some(world.acme), given.id, None).await.unwrap();
    world.iam.grant_create(&context, auditor).await.unwrap();

    let member = world.as_person(member).await;
    let mine = world.iam.grant_create(&member, world.grant(admin, "organization.billing")).await;
    assert_eq!(code(mine), "forbidden");
}

#[tokio::test]
async fn nobody_brings_a_stranger_in_or_misplaces_a_role() {
    let world = World::new().await;
    let owner = world.as_person(world.owner).await;
    let stranger = world.person("Stella").await;
    let new = world.grant(stranger, "organization.member");
    assert_eq!(code(world.iam.grant_create(&owner, new).await), "not_found");
    let missing = world.grant(world.test.db.make_id(), "organization.member");
    assert_eq!(code(world.iam.grant_create(&owner, missing).await), "not_found");
    let second = world.iam.owner_appoint(&world.iam.bootstrap_context(), world.acme, stranger).await;
    assert_eq!(code(second), "owner_exists");

    let member = world.member("Max", "organization.member").await;
    let in_project = NewGrant { project_id: Some(world.project), ..world.grant(member, "project.viewer") };
    let late: Timestamp = "2999-01-01T00:00:00Z".parse().unwrap();
    for wrong in [
        world.grant(member, "project.viewer"),
        NewGrant { role: role("organization.admin").unwrap(), ..in_project },
        world.grant(member, PLATFORM_OPERATOR),
        NewGrant { expires_at: Some(late), ..world.grant(member, ORGANIZATION_OWNER) },
        NewGrant { expires_at: Some(Timestamp::UNIX_EPOCH), ..in_project },
    ] {
        assert_eq!(code(world.iam.grant_create(&owner, wrong).await), "role_misplaced", "{wrong:?}");
    }
    world.iam.grant_create(&owner, in_project).await.unwrap();
    let viewer = world.as_person(member).await;
    let more = NewGrant { role: role("project.admin").unwrap(), ..in_project };
    assert_eq!(code(world.iam.grant_create(&viewer, more).await), "forbidden");
}

#[tokio::test]
async fn a_key_reaches_no_further_than_it_was_made_for() {
    let world = World::new().await;
    let owner = world.as_person(world.owner).await;
    let plain = |text: &str| world.key(world.owner, text);
    let (full_key, full) = world.iam.key_create(&owner, plain("full"), None).await.unwrap();
    let shown = world.show(&full).await.unwrap();
    let whole = Place::Organization(*world.acme.as_uuid());
    assert_eq!(shown.standing.grants, [Held::fixed(whole, ORGANIZATION_OWNER)]);
    assert!(shown.expires_at.is_some(), "every key ends");

    let in_project = NewKey { org_id: Some(world.acme), project_id: Some(world.project), ..plain("narrow") };
    let (_, narrow) = world.iam.key_create(&owner, in_project, None).await.unwrap();
    let narrow = world.show(&narrow).await.unwrap();
    let mut context = owner.clone();
    (context.actor, context.standing) = (narrow.actor, narrow.standing);
    world.iam.project_get(&context, world.project).await.unwrap();
    assert_eq!(code(world.iam.organization_get(&context, world.acme).await), "forbidden");
    for wider in [plain("wider"), NewKey { org_id: Some(world.acme), ..plain("wider") }] {
        let made = world.iam.key_create(&context, wider, None).await;
        assert_eq!(code(made.map(|(key, _)| key)), "key_too_wide");
    }

    // Nor does it deal with wider keys, or with what its owner holds elsewhere.
    assert_eq!(world.iam.key_list(&context, world.owner, 10, None).await.unwrap().items.len(), 1);
    assert_eq!(code(world.iam.key_revoke(&context, world.owner, full_key.id).await), "not_found");
    let second = world.member("Otto", ORGANIZATION_OWNER).await;
    let held = world.owners().await.into_iter().find(|grant| grant.person_id == world.owner).unwrap();
    assert_eq!(code(world.iam.grant_end(&context, Some(world.acme), held.id, None).await), "forbidden");
    let other = world.as_person(second).await;
    let role = role("organization.member").unwrap();
    let (_, offer) = world.iam.invitation_create(&other, world.acme, None, role).await.unwrap();
    assert_eq!(code(world.iam.invitation_accept(&context, offer.expose()).await), "key_too_wide");

    let reading = NewKey { actions: Some(vec!["iam.project.read".to_owned()]), ..plain("reading") };
    let (key, reading) = world.iam.key_create(&owner, reading, None).await.unwrap();
    let shown = world.show(&reading).await.unwrap();
    (context.actor, context.standing) = (shown.actor, shown.standing);
    world.iam.project_get(&context, world.project).await.unwrap();
    let renamed = world.iam.project_rename(&context, world.project, name("mine"), None).await;
    assert_eq!(code(renamed), "forbidden");

    world.iam.key_revoke(&owner, world.owner, key.id).await.unwrap();
    assert!(world.show(&reading).await.is_none());
    let stranger = world.person("Stella").await;
    let theirs = world.iam.key_revoke(&world.as_person(stranger).await, stranger, key.id).await;
    assert_eq!(code(theirs), "not_found");
    for wrong in [
        NewKey { project_id: Some(world.project), ..plain("no organization") },
        NewKey { actions: Some(vec!["iam.no.such".to_owned()]), ..plain("no such action") },
        NewKey { expires_at: Some(Timestamp::UNIX_EPOCH), ..plain("over") },
    ] {
        assert_eq!(code(world.iam.key_create(&owner, wrong, None).await.map(|(key, _)| key)), "key_invalid");
    }
    let elsewhere = NewKey { org_id: Some(world.test.db.make_id()), ..plain("elsewhere") };
    let made = world.iam.key_create(&owner, elsewhere, None).await;
    assert_eq!(code(made.map(|(key, _)| key)), "not_found");
}

#[tokio::test]
async fn what_has_ended_or_expired_gives_nothing() {
    let world = World::new().await;
    let admin = world.member("Anna", "organization.admin").await;
    let context = world.as_person(admin).await;
    let (_, key) = world.iam.key_create(&context, world.key(admin, "key"), None).await.unwrap();
    assert_eq!(world.show(&key).await.unwrap().standing.grants.len(), 1);
    let past =
        "UPDATE iam.role_grant SET expires_at = now() - interval '1 day' WHERE role = 'organization.admin'";
    world.test.run(past).await;
    assert_eq!(world.show(&key).await.unwrap().standing.grants, []);
    // What has expired is no obstacle to being given it again.
    let owner = world.as_person(world.owner).await;
    let role = role("organization.admin").unwrap();
    let (_, secret) = world.iam.invitation_create(&owner, world.acme, None, role).await.unwrap();
    world.iam.invitation_accept(&world.as_person(admin).await, secret.expose()).await.unwrap();
    assert_eq!(world.show(&key).await.unwrap().standing.grants.len(), 1);
    world.test.run("UPDATE iam.person SET state = 'archived'").await;
    assert!(world.show(&key).await.is_none(), "nor has anybody who is archived");
}

#[tokio::test]
async fn an_organization_sees_only_the_people_who_belong_to_it() {
    let world = World::new().await;
    world.member("Max", "organization.member").await;
    world.person("Stella").await;
    let client = world.test.client(db::Login::App).await;
    let seen = async |org: &str, platform: &str| {
        let scope = "SELECT set_config('gpuaas.org', $1, false), set_config('gpuaas.platform', $2, false)";
        client.execute(scope, &[&org, &platform]).await.unwrap();
        let row = client.query_one("SELECT count(*) FROM iam.person", &[]).await.unwrap();
        row.get::<_, i64>(0)
    };
    assert_eq!(seen(&world.acme.as_uuid().to_string(), "off").await, 2);
    assert_eq!(seen(&uuid::Uuid::nil().to_string(), "off").await, 0);
    assert_eq!(seen("", "off").await, 0);
    assert_eq!(seen("", "on").await, 3);
    let owner = world.as_person(world.owner).await;
    let members = world.iam.member_list(&owner, world.acme, 10, None).await.unwrap();
    assert_eq!(members.items.len(), 2);
}
