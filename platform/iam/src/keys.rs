//! What people do with their own API keys.
//!
//! A key gives what its owner holds, at most in one organization or project, at most for the actions listed, and for a time.
//! A key can make keys, but none that reaches further than itself: a stolen one must not make itself a better one.

use authz::{Context, Place, Resource, Standing, authorize};
use db::{Change, Setting};
use domain::{page, page_start};
use types::{Kind as _, Name, Result, Secret, Timestamp};
use uuid::Uuid;
use web::Page;

use crate::credentials::{CredentialKind, hash};
use crate::events::{KeyCreated, KeyRevoked};
use crate::model::*;
use crate::policy::*;
use crate::revocation::revoke;
use crate::{Iam, revocation, store};

pub static KEY_SECONDS_MAX: Setting<u64> = Setting::new(
    "iam.api_key_seconds_max",
    365 * 24 * 3600,
    "How long an API key may last, in seconds. Keys that the machine's owner makes on the machine itself may last for ever.",
)
.at_least(60);

/// A key to make.
#[derive(Debug)]
pub struct NewKey {
    pub person_id: PersonId,
    pub name: Name,
    pub org_id: Option<OrganizationId>,
    pub project_id: Option<ProjectId>,
    pub actions: Option<Vec<String>>,
    /// Nothing: as long as allowed.
    pub expires_at: Option<Timestamp>,
}

impl Iam {
    /// A key of the caller's own; the key itself is never seen again.
    pub async fn key_create(
        &self,
        context: &Context,
        new: NewKey,
        until: Option<Timestamp>,
    ) -> Result<(ApiKey, Secret)> {
        let longest = self.db.now().checked_add(KEY_SECONDS_MAX.seconds(&self.settings)).ok();
        let wanted = new.expires_at.or(longest);
        let expires_at = [wanted, longest, until].into_iter().flatten().min();
        self.makes_sense(&new)?;
        reaches_no_further(&context.standing, &new)?;
        self.key_make(context, NewKey { expires_at, ..new }).await
    }

    fn makes_sense(&self, new: &NewKey) -> Result<()> {
        if new.project_id.is_some() && new.org_id.is_none() {
            return Err(KEY_INVALID.error("project_id wants the project's org_id beside it"));
        }
        if new.expires_at.is_some_and(|at| at <= self.db.now()) {
            return Err(KEY_INVALID.error("expires_at is not in the future"));
        }
        let mut actions = new.actions.iter().flatten();
        match actions.find(|action| !self.decider.knows(action)) {
            Some(unknown) => Err(KEY_INVALID.error(format!("there is no action {unknown:?}"))),
            None => Ok(()),
        }
    }

    /// For the machine's owner as well, who may make keys that last.
    pub(crate) async fn key_make(&self, context: &Context, new: NewKey) -> Result<(ApiKey, Secret)> {
        let permit = authorize::<KeyCreate>(&*self.decider, context, Resource::platform(KeyKind::NAME))?;
        let secret = CredentialKind::ApiKey.make(&*self.entropy);
        let key_hash = hash(secret.expose());
        let key = self
            .db
            .change(context, permit, async |tx| {
                let now = tx.now();
                let key = ApiKey {
                    id: tx.make_id(),
                    name: new.name,
                    person_id: new.person_id,
                    org_id: new.org_id,
                    project_id: new.project_id,
                    actions: new.actions,
                    generation: 1,
                    created_at: now,
                    expires_at: new.expires_at,
                    revoked_at: None,
                };
                let params: db::Params<'_> = &[
                    key.id.as_uuid(),
                    key.person_id.as_uuid(),
                    &key.org_id.map(|id| *id.as_uuid()),
                    &key.project_id.map(|id| *id.as_uuid()),
                    &key.actions,
                    &key.name.as_str(),
                    &key_hash,
                    &now,
                    &key.expires_at,
                ];
                tx.execute(store::KEY_INSERT, params).await?;
                let change = change::<KeyCreate>(&key, None).event(&KeyCreated { key: &key });
                Ok(tx.record(change).with(key))
            })
            .await?;
        if context.trail.was_replayed() {
            let details = serde_json::json!({"key_id": key.id});
            return Err(web::SECRET_ALREADY_DELIVERED.error("the key was given once").with_details(details));
        }
        Ok((key, secret))
    }

    pub async fn key_list(
        &self,
        context: &Context,
        person: PersonId,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<ApiKey>> {
        let permit = authorize::<KeyList>(&*self.decider, context, Resource::platform(KeyKind::NAME))?;
        let query = format!("keys?person={person}");
        let after = page_start::<KeyKind>(cursor, &query)?;
        let (organization, project) = reach(context);
        let params: db::Params<'_> =
            &[person.as_uuid(), &after, &(i64::from(limit) + 1), &organization, &project];
        let rows = self.db.read(&permit).query(store::KEY_LIST, params).await?;
        let items: Vec<ApiKey> = rows.iter().map(store::api_key).collect::<Result<_>>()?;
        Ok(page(items, limit, &query, |key| key.id.to_string()))
    }

    pub async fn key_revoke(&self, context: &Context, person: PersonId, id: KeyId) -> Result<ApiKey> {
        let resource = Resource { id: Some(*id.as_uuid()), ..Resource::platform(KeyKind::NAME) };
        let permit = authorize::<KeyRevoke>(&*self.decider, context, resource)?;
        self.db
            .change(context, permit, async |tx| {
                let (organization, project) = reach(context);
                let params: db::Params<'_> = &[id.as_uuid(), person.as_uuid(), &organization, &project];
                let row = tx.query_opt(store::KEY_LOCK, params).await?;
                let before = store::api_key(&row.ok_or_else(|| not_found(KeyKind::NAME))?)?;
                if before.revoked_at.is_some() {
                    return Ok(tx.unchanged(before));
                }
                let now = tx.now();
                tx.execute(store::KEY_REVOKE, &[id.as_uuid(), &now]).await?;
                revoke(tx, revocation::Kind::Credential, *id.as_uuid()).await?;
                let after =
                    ApiKey { revoked_at: Some(now), generation: before.generation + 1, ..before.clone() };
                let change = change::<KeyRevoke>(&after, Some(&before)).event(&KeyRevoked { key: &after });
                Ok(tx.record(change).with(after))
            })
            .await
    }
}

/// The organization and project that the caller's own credential is confined to: it deals with no key that is wider.
fn reach(context: &Context) -> (Option<Uuid>, Option<Uuid>) {
    let within = context.standing.within;
    (within.and_then(|place| place.organization()), within.and_then(|place| place.project()))
}

/// Is the new key within what the caller's own credential reaches, and within what the caller holds?
fn reaches_no_further(own: &Standing, new: &NewKey) -> Result<()> {
    let too_wide = |why: &str| Err(KEY_TOO_WIDE.error(why.to_owned()));
    if let Some(org_id) = new.org_id
        && !own.belongs_to(*org_id.as_uuid())
    {
        return Err(not_found(OrganizationKind::NAME));
    }
    if let (Some(org_id), Some(project)) = (new.org_id, new.project_id) {
        let (organization, project) = (*org_id.as_uuid(), *project.as_uuid());
        let places = [Place::Organization(organization), Place::Project { organization, project }];
        if !own.grants.iter().any(|grant| places.contains(&grant.place)) {
            return Err(not_found(ProjectKind::NAME));
        }
    }
    if let Some(within) = own.within
        && !place_of(new).from_outside().any(|outer| outer == within)
    {
        return too_wide("the key you use reaches one organization or project only");
    }
    if let Some(only) = &own.only {
        let Some(actions) = &new.actions else {
            return too_wide("the key you use is for certain actions only; name those the new one is for");
        };
        if let Some(beyond) = actions.iter().find(|action| !only.contains(action)) {
            return too_wide(&format!("the key you use is not for {beyond}"));
        }
    }
    Ok(())
}

fn place_of(new: &NewKey) -> Place {
    Place::new(new.org_id.map(|id| *id.as_uuid()), new.project_id.map(|id| *id.as_uuid()))
}

fn change<A: authz::Action>(after: &ApiKey, before: Option<&ApiKey>) -> Change {
    let mut change = Change::new(A::NAME, after.id, after.generation).after(after);
    if let Some(org_id) = after.org_id {
        change = change.in_organization(org_id.as_uuid());
    }
    match before {
        Some(before) => change.before(before),
        None => change,
    }
}
