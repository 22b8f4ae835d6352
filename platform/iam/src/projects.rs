//! What can be done with projects.

use authz::{Context, Resource, authorize};
use db::{Change, DbError, Tx};
use domain::{page, page_start};
use types::{Kind as _, Name, Result};
use uuid::Uuid;
use web::{Page, check_generation};

use crate::events::{ProjectArchived, ProjectCreated, ProjectRenamed};
use crate::model::*;
use crate::policy::*;
use crate::{Iam, store};

/// Which projects of an organization to list.
#[derive(Debug, Default)]
pub struct ProjectFilter {
    pub state: Option<ProjectState>,
    pub name: Option<Name>,
    pub limit: u32,
    pub cursor: Option<String>,
}

impl Iam {
    pub async fn project_create(
        &self,
        context: &Context,
        org_id: OrganizationId,
        name: Name,
        labels: Labels,
    ) -> Result<Project> {
        let resource = Resource::in_organization(ProjectKind::NAME, *org_id.as_uuid(), None);
        let permit = authorize::<ProjectCreate>(&*self.decider, context, resource)?;
        self.db
            .change(context, permit, async |tx| {
                require_active_organization(tx, org_id).await?;
                let now = tx.now();
                let project = Project {
                    id: tx.make_id(),
                    org_id,
                    name,
                    labels,
                    state: ProjectState::Active,
                    state_since: now,
                    generation: 1,
                    created_at: now,
                    updated_at: now,
                };
                let labels = serde_json::json!(project.labels);
                let params: db::Params<'_> = &[
                    project.id.as_uuid(),
                    org_id.as_uuid(),
                    &project.name.as_str(),
                    &name_key(&project.name),
                    &labels,
                    &now,
                ];
                tx.execute(store::PROJECT_INSERT, params).await.map_err(name_conflict)?;
                let change =
                    change::<ProjectCreate>(&project, None).event(&ProjectCreated { project: &project });
                Ok(tx.record(change).with(project))
            })
            .await
    }

    pub async fn project_get(&self, context: &Context, id: ProjectId) -> Result<Project> {
        let permit = authorize::<ProjectRead>(&*self.decider, context, self.project_resource(id).await?)?;
        let row = self.db.read(&permit).query_opt(store::PROJECT_GET, &[id.as_uuid()]).await?;
        store::project(&row.ok_or_else(|| not_found(ProjectKind::NAME))?)
    }

    pub async fn project_list(
        &self,
        context: &Context,
        org_id: OrganizationId,
        filter: &ProjectFilter,
    ) -> Result<Page<Project>> {
        let resource = Resource::in_organization(ProjectKind::NAME, *org_id.as_uuid(), None);
        let permit = authorize::<ProjectList>(&*self.decider, context, resource)?;
        let state = filter.state.map(state_name);
        let name = filter.name.as_ref().map(name_key);
        let query = format!(
            "projects?org={org_id}&state={}&name={}",
            state.unwrap_or(""),
            name.as_deref().unwrap_or("")
        );
        let after = page_start::<ProjectKind>(filter.cursor.as_deref(), &query)?;
        let reader = self.db.read(&permit);
        let params: db::Params<'_> =
            &[org_id.as_uuid(), &after, &state, &name, &(i64::from(filter.limit) + 1)];
        let rows = reader.query(store::PROJECT_LIST, params).await?;
        // An empty list of a missing organization must not look like an empty organization.
        if rows.is_empty() && reader.query_opt(store::ORGANIZATION_GET, &[org_id.as_uuid()]).await?.is_none()
        {
            return Err(not_found(OrganizationKind::NAME));
        }
        let items: Vec<Project> = rows.iter().map(store::project).collect::<Result<_>>()?;
        Ok(page(items, filter.limit, &query, |project| project.id.to_string()))
    }

    pub async fn project_rename(
        &self,
        context: &Context,
        id: ProjectId,
        name: Name,
        if_match: Option<i64>,
    ) -> Result<Project> {
        let permit = authorize::<ProjectRename>(&*self.decider, context, self.project_resource(id).await?)?;
        self.db
            .change(context, permit, async |tx| {
                let before = lock(tx, id).await?;
                check_generation(if_match, before.generation)?;
                if before.state == ProjectState::Archived {
                    return Err(ARCHIVED.error("the project is archived"));
                }
                if before.name == name {
                    return Ok(tx.unchanged(before));
                }
                let now = tx.now();
                let after =
                    Project { name, generation: before.generation + 1, updated_at: now, ..before.clone() };
                tx.execute(
                    store::PROJECT_RENAME,
                    &[id.as_uuid(), &after.name.as_str(), &name_key(&after.name), &now],
                )
                .await
                .map_err(name_conflict)?;
                let change =
                    change::<ProjectRename>(&after, Some(&before)).event(&ProjectRenamed { project: &after });
                Ok(tx.record(change).with(after))
            })
            .await
    }

    pub async fn project_archive(
        &self,
        context: &Context,
        id: ProjectId,
        if_match: Option<i64>,
    ) -> Result<Project> {
        let permit = authorize::<ProjectArchive>(&*self.decider, context, self.project_resource(id).await?)?;
        self.db
            .change(context, permit, async |tx| {
                let before = lock(tx, id).await?;
                if before.state == ProjectState::Archived {
                    return Ok(tx.unchanged(before));
                }
                check_generation(if_match, before.generation)?;
                let after = archive(tx, &before).await?;
                Ok(tx.record(archived(&before, &after)).with(after))
            })
            .await
    }

    /// The project as a resource to ask permission for; other domains put their own kind and id in. A missing project
    /// has an organization nobody is in (the nil id), so a tenant gets the same answer for it as for a foreign one.
    pub async fn project_resource(&self, id: ProjectId) -> Result<Resource> {
        let organization = match self.organizations_of_projects.get(id.as_uuid()) {
            Some(organization) => organization,
            None => {
                let row = self
                    .db
                    .internal("iam.project_lookup")
                    .query_opt(store::PROJECT_ORGANIZATION, &[id.as_uuid()])
                    .await?;
                let Some(row) = row else { return Ok(resource(Uuid::nil(), id)) };
                let organization: Uuid = row.get(0);
                self.organizations_of_projects.insert(*id.as_uuid(), organization);
                organization
            }
        };
        Ok(resource(organization, id))
    }

    /// For other domains, inside their transaction: fails unless the organization is there and active, and keeps it from
    /// being archived until the transaction ends.
    pub async fn require_active_organization(tx: &mut Tx<'_>, id: OrganizationId) -> Result<()> {
        require_active_organization(tx, id).await
    }

    /// For other domains: is there such an organization, archived or not? Only those may be told who may see them all.
    pub async fn organization_exists(&self, id: OrganizationId) -> Result<bool> {
        let internal = self.db.internal("iam.organization_lookup");
        Ok(internal.query_opt(store::ORGANIZATION_GET, &[id.as_uuid()]).await?.is_some())
    }

    /// For other domains, inside their transaction: fails unless the project is there and active, and keeps it from
    /// being archived until the transaction ends.
    pub async fn require_active_project(tx: &mut Tx<'_>, id: ProjectId) -> Result<()> {
        match tx.query_opt(store::PROJECT_STATE_FOR_SHARE, &[id.as_uuid()]).await? {
            None => Err(not_found(ProjectKind::NAME)),
            Some(row) if row.get::<_, &str>(0) == state_name(ProjectState::Active) => Ok(()),
            Some(_) => Err(ARCHIVED.error("the project is archived")),
        }
    }
}

fn resource(organization: Uuid, id: ProjectId) -> Resource {
    Resource::in_project(ProjectKind::NAME, organization, *id.as_uuid(), Some(*id.as_uuid()))
}

pub(crate) async fn archive(tx: &mut Tx<'_>, before: &Project) -> Result<Project> {
    let now = tx.now();
    tx.execute(store::PROJECT_ARCHIVE, &[before.id.as_uuid(), &now]).await?;
    Ok(Project {
        state: ProjectState::Archived,
        state_since: now,
        generation: before.generation + 1,
        updated_at: now,
        ..before.clone()
    })
}

pub(crate) fn archived(before: &Project, after: &Project) -> Change {
    change::<ProjectArchive>(after, Some(before)).event(&ProjectArchived { project: after })
}

async fn lock(tx: &mut Tx<'_>, id: ProjectId) -> Result<Project> {
    let row = tx.query_opt(store::PROJECT_LOCK, &[id.as_uuid()]).await?;
    store::project(&row.ok_or_else(|| not_found(ProjectKind::NAME))?)
}

async fn require_active_organization(tx: &mut Tx<'_>, id: OrganizationId) -> Result<()> {
    match tx.query_opt(store::ORGANIZATION_STATE_FOR_SHARE, &[id.as_uuid()]).await? {
        None => Err(not_found(OrganizationKind::NAME)),
        Some(row) if row.get::<_, &str>(0) == "active" => Ok(()),
        Some(_) => Err(ARCHIVED.error("the organization is archived or being archived")),
    }
}

fn change<A: authz::Action>(after: &Project, before: Option<&Project>) -> Change {
    let change = Change::new(A::NAME, after.id, after.generation)
        .in_organization(after.org_id.as_uuid())
        .in_project(after.id.as_uuid())
        .after(after);
    match before {
        Some(before) => change.before(before),
        None => change,
    }
}

fn state_name(state: ProjectState) -> &'static str {
    match state {
        ProjectState::Active => "active",
        ProjectState::Archived => "archived",
    }
}

fn name_conflict(error: DbError) -> types::Error {
    if error.constraint() == Some("project_name_once") {
        name_taken("project of this organization")
    } else {
        error.into()
    }
}
