//! What can be done with organizations.

use authz::{Context, Resource, authorize};
use db::{Change, DbError, Tx};
use domain::{page, page_start};
use types::{Kind as _, Name, Result};
use uuid::Uuid;
use web::{Page, check_generation};

use crate::archive::{ArchiveData, ArchiveOrganization, ArchiveState};
use crate::events::{OrganizationArchiving, OrganizationCreated, OrganizationRenamed};
use crate::model::*;
use crate::policy::*;
use crate::{Iam, store, summary};

/// Which organizations to list.
#[derive(Debug, Default)]
pub struct OrganizationFilter {
    pub state: Option<OrganizationState>,
    pub name: Option<Name>,
    pub limit: u32,
    pub cursor: Option<String>,
}

impl Iam {
    pub async fn organization_create(
        &self,
        context: &Context,
        name: Name,
        labels: Labels,
    ) -> Result<Organization> {
        let permit = authorize::<OrganizationCreate>(
            &*self.decider,
            context,
            Resource::platform(OrganizationKind::NAME),
        )?;
        self.db
            .change(context, permit, async |tx| {
                let now = tx.now();
                let organization = Organization {
                    id: tx.make_id(),
                    name,
                    labels,
                    state: OrganizationState::Active,
                    state_since: now,
                    generation: 1,
                    created_at: now,
                    updated_at: now,
                };
                let labels = serde_json::json!(organization.labels);
                let params: db::Params<'_> = &[
                    organization.id.as_uuid(),
                    &organization.name.as_str(),
                    &name_key(&organization.name),
                    &labels,
                    &now,
                ];
                tx.execute(store::ORGANIZATION_INSERT, params).await.map_err(name_conflict)?;
                let change = change::<OrganizationCreate>(&organization, None)
                    .event(&OrganizationCreated { organization: &organization });
                Ok(tx.record(change).with(organization))
            })
            .await
    }

    pub async fn organization_get(&self, context: &Context, id: OrganizationId) -> Result<Organization> {
        let permit = authorize::<OrganizationRead>(&*self.decider, context, of(id))?;
        let row = self.db.read(&permit).query_opt(store::ORGANIZATION_GET, &[id.as_uuid()]).await?;
        store::organization(&row.ok_or_else(|| not_found(OrganizationKind::NAME))?)
    }

    /// Those the caller may see: all for the platform's operators, its own for a tenant.
    pub async fn organization_list(
        &self,
        context: &Context,
        home: Option<Uuid>,
        filter: &OrganizationFilter,
    ) -> Result<Page<Organization>> {
        let resource = match home {
            Some(organization) => Resource::in_organization(OrganizationKind::NAME, organization, None),
            None if context.is_of_platform() => Resource::platform(OrganizationKind::NAME),
            None => Resource::platform("own_organization"),
        };
        let permit = authorize::<OrganizationList>(&*self.decider, context, resource)?;
        let state = filter.state.map(state_name);
        let name = filter.name.as_ref().map(name_key);
        let query =
            format!("organizations?state={}&name={}", state.unwrap_or(""), name.as_deref().unwrap_or(""));
        let after = page_start::<OrganizationKind>(filter.cursor.as_deref(), &query)?;
        let (reader, limit, own) =
            (self.db.read(&permit), i64::from(filter.limit) + 1, context.standing.organizations());
        let rows = match home {
            None if !context.is_of_platform() => {
                reader.query(store::ORGANIZATION_LIST_OWN, &[&after, &state, &name, &limit, &own]).await?
            }
            _ => reader.query(store::ORGANIZATION_LIST, &[&after, &state, &name, &limit, &home]).await?,
        };
        let items: Vec<Organization> = rows.iter().map(store::organization).collect::<Result<_>>()?;
        Ok(page(items, filter.limit, &query, |organization| organization.id.to_string()))
    }

    /// How many projects it has, as of the last event that was counted.
    pub async fn organization_summary(
        &self,
        context: &Context,
        id: OrganizationId,
    ) -> Result<OrganizationSummary> {
        let permit = authorize::<OrganizationRead>(&*self.decider, context, of(id))?;
        let reader = self.db.read(&permit);
        // Asked before the row is read: the row may be newer than this says, never older.
        let (as_of_position, as_of) = ::events::projection_as_of(&reader, summary::NAME).await?;
        let row = reader.query_opt(store::SUMMARY_GET, &[id.as_uuid()]).await?;
        let row = row.ok_or_else(|| not_found(OrganizationKind::NAME))?;
        Ok(OrganizationSummary {
            org_id: id,
            projects_active: row.get(0),
            projects_archived: row.get(1),
            as_of_position,
            as_of,
        })
    }

    pub async fn organization_rename(
        &self,
        context: &Context,
        id: OrganizationId,
        name: Name,
        if_match: Option<i64>,
    ) -> Result<Organization> {
        let permit = authorize::<OrganizationRename>(&*self.decider, context, of(id))?;
        self.db
            .change(context, permit, async |tx| {
                let before = lock(tx, id).await?;
                check_generation(if_match, before.generation)?;
                require_active(&before)?;
                if before.name == name {
                    return Ok(tx.unchanged(before));
                }
                let now = tx.now();
                let after = Organization {
                    name,
                    generation: before.generation + 1,
                    updated_at: now,
                    ..before.clone()
                };
                tx.execute(
                    store::ORGANIZATION_RENAME,
                    &[id.as_uuid(), &after.name.as_str(), &name_key(&after.name), &now],
                )
                .await
                .map_err(name_conflict)?;
                let change = change::<OrganizationRename>(&after, Some(&before))
                    .event(&OrganizationRenamed { organization: &after });
                Ok(tx.record(change).with(after))
            })
            .await
    }

    /// Records the intent; a flow archives the projects one by one and then the organization itself.
    pub async fn organization_archive(
        &self,
        context: &Context,
        id: OrganizationId,
        if_match: Option<i64>,
    ) -> Result<Organization> {
        let permit = authorize::<OrganizationArchive>(&*self.decider, context, of(id))?;
        self.db
            .change(context, permit, async |tx| {
                let before = lock(tx, id).await?;
                if before.state != OrganizationState::Active {
                    return Ok(tx.unchanged(before));
                }
                check_generation(if_match, before.generation)?;
                let after =
                    set_state(tx, &before, OrganizationState::Archiving, before.generation + 1).await?;
                let key = id.to_string();
                let start = flow::Start::<ArchiveOrganization> {
                    key: &key,
                    organization: Some(*id.as_uuid()),
                    state: ArchiveState::Projects,
                    data: &ArchiveData { organization: id },
                };
                flow::start(tx, context, start).await?;
                let change = change::<OrganizationArchive>(&after, Some(&before))
                    .event(&OrganizationArchiving { organization: &after });
                Ok(tx.record(change).with(after))
            })
            .await
    }
}

pub(crate) fn of(id: OrganizationId) -> Resource {
    Resource::in_organization(OrganizationKind::NAME, *id.as_uuid(), Some(*id.as_uuid()))
}

pub(crate) async fn lock(tx: &mut Tx<'_>, id: OrganizationId) -> Result<Organization> {
    let row = tx.query_opt(store::ORGANIZATION_LOCK, &[id.as_uuid()]).await?;
    store::organization(&row.ok_or_else(|| not_found(OrganizationKind::NAME))?)
}

/// `generation` is the ETag, so it moves with everything a reader sees, the state included.
pub(crate) async fn set_state(
    tx: &mut Tx<'_>,
    before: &Organization,
    state: OrganizationState,
    generation: i64,
) -> Result<Organization> {
    let now = tx.now();
    tx.execute(store::ORGANIZATION_SET_STATE, &[before.id.as_uuid(), &state_name(state), &now, &generation])
        .await?;
    Ok(Organization { state, state_since: now, generation, updated_at: now, ..before.clone() })
}

pub(crate) fn change<A: authz::Action>(after: &Organization, before: Option<&Organization>) -> Change {
    let change =
        Change::new(A::NAME, after.id, after.generation).in_organization(after.id.as_uuid()).after(after);
    match before {
        Some(before) => change.before(before),
        None => change,
    }
}

fn require_active(organization: &Organization) -> Result<()> {
    if organization.state == OrganizationState::Active {
        return Ok(());
    }
    Err(ARCHIVED.error("the organization is archived or being archived"))
}

fn state_name(state: OrganizationState) -> &'static str {
    match state {
        OrganizationState::Active => "active",
        OrganizationState::Archiving => "archiving",
        OrganizationState::Archived => "archived",
    }
}

fn name_conflict(error: DbError) -> types::Error {
    if error.constraint() == Some("organization_name_once") {
        name_taken("organization")
    } else {
        error.into()
    }
}
