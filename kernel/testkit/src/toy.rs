//! A domain small enough to test the kernel with: things that belong to organizations, what they are called, and
//! a read model and a mark for bookkeeping.

use authz::{Action, Context, Decider, Decision, Question, Resource, authorize};
use db::migrate::MigrationSet;
use db::{Change, Db, Event, Migration, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::{Id, Kind};
use uuid::Uuid;

pub const MIGRATION_SET: MigrationSet = MigrationSet {
    domain: "toy",
    migrations: &[Migration { version: 1, name: "toy", sql: include_str!("../migrations/0001_toy.sql") }],
};

pub enum ThingKind {}
impl Kind for ThingKind {
    const PREFIX: &'static str = "thg";
    const NAME: &'static str = "thing";
}
pub type ThingId = Id<ThingKind>;

pub struct ThingCreate;
impl Action for ThingCreate {
    const NAME: &'static str = "toy.thing.create";
    const TITLE: &'static str = "Create things";
}

pub struct ThingRead;
impl Action for ThingRead {
    const NAME: &'static str = "toy.thing.read";
    const TITLE: &'static str = "See things";
}

#[derive(Serialize, JsonSchema)]
pub struct ThingCreated {
    pub name: String,
}
impl Event for ThingCreated {
    const TYPE: &'static str = "gpuaas.toy.thing.created";
    const TITLE: &'static str = "A thing was made";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    pub id: ThingId,
    pub org: Uuid,
    pub name: String,
}

/// Allows everything to everyone who is signed in, under policy version 7.
pub struct AllowAll;
impl Decider for AllowAll {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn decide(&self, _: &Question<'_>) -> Decision {
        Decision::Allow { policy_version: 7 }
    }
}

pub const INSERT: &str = "INSERT INTO toy.thing (id, org_id, name) VALUES ($1, $2, $3)";
pub const NAMES: &str = "SELECT name FROM toy.thing ORDER BY name";

/// An organization by number.
pub fn org(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub fn resource(org: Uuid) -> Resource {
    Resource::in_organization(ThingKind::NAME, org, None)
}

/// The whole path: authorize, insert, record, commit.
pub async fn create(db: &Db, context: &Context, org: Uuid, name: &str) -> types::Result<Thing> {
    let permit = authorize::<ThingCreate>(&AllowAll, context, resource(org))?;
    db.change(context, permit, async |tx| {
        let thing = insert(tx, org, name).await?;
        Ok(tx.record(created(&thing)).with(thing))
    })
    .await
}

pub async fn insert(tx: &mut Tx<'_>, org: Uuid, name: &str) -> Result<Thing, db::DbError> {
    let thing = Thing { id: tx.make_id(), org, name: name.to_owned() };
    tx.execute(INSERT, &[thing.id.as_uuid(), &org, &name]).await?;
    Ok(thing)
}

pub fn created(thing: &Thing) -> Change {
    Change::new(ThingCreate::NAME, thing.id, 1)
        .in_organization(&thing.org)
        .after(thing)
        .event(&ThingCreated { name: thing.name.clone() })
}
