//! What can be done with grants: roles are given at a place, listed and ended.
//!
//! Whoever may give roles somewhere may give all roles of that place, except the ones that somebody must always hold: an
//! organization's owner is made and unmade by owners. Nobody brings a stranger in: a grant is for members, and one becomes
//! a member by accepting an invitation, or as an organization's first owner.

use authz::{Context, Place, Resource, RoleInfo, authorize};
use db::{Change, DbError, Tx};
use domain::{page, page_start};
use types::{Kind as _, Result, Timestamp};
use uuid::Uuid;
use web::{Page, check_generation};

use crate::events::{GrantCreated, GrantEnded};
use crate::model::*;
use crate::policy::*;
use crate::revocation::revoke;
use crate::roles::{ORGANIZATION_OWNER, PLATFORM_OPERATOR};
use crate::{Iam, revocation, store};

/// A grant to make.
#[derive(Debug, Clone, Copy)]
pub struct NewGrant {
    pub person_id: PersonId,
    pub role: &'static RoleInfo,
    pub org_id: Option<OrganizationId>,
    pub project_id: Option<ProjectId>,
    pub expires_at: Option<Timestamp>,
}

/// Which grants to list.
#[derive(Debug, Default)]
pub struct GrantFilter {
    pub org_id: Option<OrganizationId>,
    pub project_id: Option<ProjectId>,
    pub person_id: Option<PersonId>,
    pub role: Option<String>,
    pub limit: u32,
    pub cursor: Option<String>,
}

impl Iam {
    pub async fn grant_create(&self, context: &Context, new: NewGrant) -> Result<Grant> {
        fits(&new, self.db.now())?;
        let resource = self.place_resource(new.org_id, new.project_id, None).await?;
        let permit = authorize::<GrantCreate>(&*self.decider, context, resource)?;
        self.may_make_owners(context, new.org_id, new.role.name)?;
        self.db
            .change(context, permit, async |tx| {
                if let Some(org_id) = new.org_id {
                    let params: db::Params<'_> = &[org_id.as_uuid(), new.person_id.as_uuid(), &tx.now()];
                    let member = tx.query_opt(store::MEMBER_FIND, params).await?;
                    member.ok_or_else(|| not_found(PersonKind::NAME))?;
                }
                let (grant, change) = give(tx, context, new).await?;
                Ok(tx.record(change).with(grant))
            })
            .await
    }

    /// Makes the first owner of an organization that has none. Later ones are made by owners.
    pub async fn owner_appoint(
        &self,
        context: &Context,
        org_id: OrganizationId,
        person_id: PersonId,
    ) -> Result<Grant> {
        let resource = Resource::in_organization("owner", *org_id.as_uuid(), None);
        let permit = authorize::<OwnerAppoint>(&*self.decider, context, resource)?;
        let Some(role) = crate::role(ORGANIZATION_OWNER) else { return Err(misplaced("no such role")) };
        let new = NewGrant { person_id, role, org_id: Some(org_id), project_id: None, expires_at: None };
        self.db
            .change(context, permit, async |tx| {
                let locked = tx.query_opt(store::ORGANIZATION_LOCK, &[org_id.as_uuid()]).await?;
                locked.ok_or_else(|| not_found(OrganizationKind::NAME))?;
                if !holders(tx, Some(org_id), ORGANIZATION_OWNER).await?.is_empty() {
                    return Err(OWNER_EXISTS.error("the organization has an owner"));
                }
                let (grant, change) = give(tx, context, new).await?;
                let change = Change { action: <OwnerAppoint as authz::Action>::NAME, ..change };
                Ok(tx.record(change).with(grant))
            })
            .await
    }

    pub async fn grant_list(&self, context: &Context, filter: &GrantFilter) -> Result<Page<Grant>> {
        let resource = self.place_resource(filter.org_id, filter.project_id, None).await?;
        let permit = authorize::<GrantList>(&*self.decider, context, resource)?;
        let text = |id: Option<String>| id.unwrap_or_default();
        let query = format!(
            "grants?org={}&project={}&person={}&role={}",
            text(filter.org_id.map(|id| id.to_string())),
            text(filter.project_id.map(|id| id.to_string())),
            text(filter.person_id.map(|id| id.to_string())),
            text(filter.role.clone())
        );
        let after = page_start::<GrantKind>(filter.cursor.as_deref(), &query)?;
        let params: db::Params<'_> = &[
            &filter.org_id.map(|id| *id.as_uuid()),
            &filter.project_id.map(|id| *id.as_uuid()),
            &filter.person_id.map(|id| *id.as_uuid()),
            &filter.role,
            &after,
            &self.db.now(),
            &(i64::from(filter.limit) + 1),
        ];
        let reader = self.db.read(&permit);
        let rows = reader.query(store::GRANT_LIST, params).await?;
        if let (true, Some(org_id)) = (rows.is_empty(), filter.org_id)
            && reader.query_opt(store::ORGANIZATION_GET, &[org_id.as_uuid()]).await?.is_none()
        {
            return Err(not_found(OrganizationKind::NAME));
        }
        Ok(page(rows.iter().map(store::grant).collect(), filter.limit, &query, |grant| grant.id.to_string()))
    }

    /// Ends a grant of the organization, or of the platform if none is named. People may end what they hold themselves.
    pub async fn grant_end(
        &self,
        context: &Context,
        org_id: Option<OrganizationId>,
        id: GrantId,
        if_match: Option<i64>,
    ) -> Result<Grant> {
        let found = self.db.internal("iam.grant_lookup").query_opt(store::GRANT_GET, &[id.as_uuid()]).await?;
        let found = found.map(|row| store::grant(&row)).filter(|grant| grant.org_id == org_id);
        let project_id = found.as_ref().and_then(|grant| grant.project_id);
        let resource = self.place_resource(org_id, project_id, Some(*id.as_uuid())).await?;
        // As far as the credential reaches: a key for one organization cannot give up what is held elsewhere.
        let own = found.as_ref().is_some_and(|grant| {
            let within_reach = context.standing.grants.iter().any(|held| held.place == grant.place());
            grant.person_id.to_string() == context.actor.subject.id && within_reach
        });
        let resource = if own { Resource { kind: "own_grant", ..resource } } else { resource };
        let permit = authorize::<GrantEnd>(&*self.decider, context, resource)?;
        let grant = found.ok_or_else(|| not_found(GrantKind::NAME))?;
        if !own {
            self.may_make_owners(context, org_id, &grant.role)?;
        }
        self.db.change(context, permit, async |tx| end(tx, id, if_match).await).await
    }

    /// Owners are made and unmade by owners only.
    pub(crate) fn may_make_owners(
        &self,
        context: &Context,
        org_id: Option<OrganizationId>,
        role: &str,
    ) -> Result<()> {
        if let (Some(org_id), ORGANIZATION_OWNER) = (org_id, role) {
            let resource = Resource::in_organization("owner", *org_id.as_uuid(), None);
            authorize::<OwnerChange>(&*self.decider, context, resource)?;
        }
        Ok(())
    }

    /// The grants of a place, or one of them, as a resource. A project of another organization is as good as missing.
    pub(crate) async fn place_resource(
        &self,
        org_id: Option<OrganizationId>,
        project_id: Option<ProjectId>,
        id: Option<Uuid>,
    ) -> Result<Resource> {
        let Some(org_id) = org_id else {
            return Ok(Resource { id, ..Resource::platform("platform_grant") });
        };
        let Some(project_id) = project_id else {
            return Ok(Resource::in_organization(GrantKind::NAME, *org_id.as_uuid(), id));
        };
        let project = self.project_resource(project_id).await?;
        let organization =
            if project.organization == Some(*org_id.as_uuid()) { *org_id.as_uuid() } else { Uuid::nil() };
        Ok(Resource::in_project(GrantKind::NAME, organization, *project_id.as_uuid(), id))
    }
}

/// Roles that somebody must always hold: they cannot expire, and the last one cannot be ended.
fn must_be_held(role: &str) -> bool {
    [PLATFORM_OPERATOR, ORGANIZATION_OWNER].contains(&role)
}

fn misplaced(why: &str) -> types::Error {
    ROLE_MISPLACED.error(why.to_owned())
}

/// Can the role be held at that place, and for that time?
pub(crate) fn fits(new: &NewGrant, now: Timestamp) -> Result<()> {
    let place = Place::new(new.org_id.map(|id| *id.as_uuid()), new.project_id.map(|id| *id.as_uuid()));
    if new.role.level != place.level() {
        return Err(misplaced(&format!("{} is not a role of this kind of place", new.role.name)));
    }
    match new.expires_at {
        Some(_) if must_be_held(new.role.name) => {
            Err(misplaced(&format!("{} cannot end by itself: somebody has to hold it", new.role.name)))
        }
        Some(at) if at <= now => Err(misplaced("expires_at is not in the future")),
        _ => Ok(()),
    }
}

/// Writes the grant; the caller records the change, alone or with others.
pub(crate) async fn give(tx: &mut Tx<'_>, context: &Context, new: NewGrant) -> Result<(Grant, Change)> {
    let now = tx.now();
    let grant = Grant {
        id: tx.make_id(),
        person_id: new.person_id,
        role: new.role.name.to_owned(),
        org_id: new.org_id,
        project_id: new.project_id,
        generation: 1,
        created_at: now,
        created_by: context.actor.subject.id.clone(),
        expires_at: new.expires_at,
        ended_at: None,
    };
    let (organization, project) =
        (grant.org_id.map(|id| *id.as_uuid()), grant.project_id.map(|id| *id.as_uuid()));
    let person = grant.person_id.as_uuid();
    tx.execute(store::GRANT_END_EXPIRED, &[person, &organization, &project, &grant.role, &now]).await?;
    let params: db::Params<'_> = &[
        grant.id.as_uuid(),
        &organization,
        &project,
        person,
        &grant.role,
        &now,
        &grant.created_by,
        &grant.expires_at,
    ];
    tx.execute(store::GRANT_INSERT, params).await.map_err(refused)?;
    revoke(tx, revocation::Kind::Authority, *person).await?;
    let change = change::<GrantCreate>(&grant, None).event(&GrantCreated { grant: &grant });
    Ok((grant, change))
}

async fn end(tx: &mut Tx<'_>, id: GrantId, if_match: Option<i64>) -> Result<db::Recorded<Grant>> {
    // All who hold the role are locked before the one that ends: two who leave at once would else wait for each other.
    let row = tx.query_opt(store::GRANT_GET, &[id.as_uuid()]).await?;
    let found = store::grant(&row.ok_or_else(|| not_found(GrantKind::NAME))?);
    let is_last =
        must_be_held(&found.role) && holders(tx, found.org_id, &found.role).await? == [*id.as_uuid()];
    let row = tx.query_opt(store::GRANT_LOCK, &[id.as_uuid()]).await?;
    let before = store::grant(&row.ok_or_else(|| not_found(GrantKind::NAME))?);
    if before.ended_at.is_some() {
        return Ok(tx.unchanged(before));
    }
    check_generation(if_match, before.generation)?;
    if is_last {
        return Err(LAST_OWNER.error(format!("nobody else is {} here", before.role)));
    }
    let now = tx.now();
    tx.execute(store::GRANT_END, &[id.as_uuid(), &now]).await?;
    revoke(tx, revocation::Kind::Authority, *before.person_id.as_uuid()).await?;
    let after = Grant { ended_at: Some(now), generation: before.generation + 1, ..before.clone() };
    let change = change::<GrantEnd>(&after, Some(&before)).event(&GrantEnded { grant: &after });
    Ok(tx.record(change).with(after))
}

async fn holders(tx: &mut Tx<'_>, org_id: Option<OrganizationId>, role: &str) -> Result<Vec<Uuid>> {
    let rows = tx.query(store::GRANT_HOLDERS_LOCK, &[&org_id.map(|id| *id.as_uuid()), &role]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn change<A: authz::Action>(after: &Grant, before: Option<&Grant>) -> Change {
    let mut change = Change::new(A::NAME, after.id, after.generation).after(after);
    if let Some(organization) = after.place().organization() {
        change = change.in_organization(&organization);
    }
    if let Some(project) = after.place().project() {
        change = change.in_project(&project);
    }
    match before {
        Some(before) => change.before(before),
        None => change,
    }
}

fn refused(error: DbError) -> types::Error {
    match error.constraint() {
        Some("role_grant_once") => ALREADY_HELD.error("the person holds this role here"),
        Some("role_grant_person_id_fkey") => not_found(PersonKind::NAME),
        Some("role_grant_org_id_fkey") => not_found(OrganizationKind::NAME),
        _ => error.into(),
    }
}
