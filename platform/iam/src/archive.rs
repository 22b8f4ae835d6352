//! Archiving an organization: first its projects, a hundred at a time, then itself.
//!
//! ```text
//! projects -> organization
//! organization -> (done)
//! ```

use std::time::Duration;

use authz::{Context, Resource, authorize};
use flow::{Fence, Machine, State, Step};
use serde::{Deserialize, Serialize};
use types::{Kind as _, Result, Timestamp};

use crate::events::OrganizationArchived;
use crate::model::*;
use crate::organizations::{change, lock, of, set_state};
use crate::policy::{OrganizationArchive, ProjectArchive};
use crate::projects::{archive, archived};
use crate::{Iam, store};

/// The flow. It holds nothing but the way to the domain.
pub struct ArchiveOrganization {
    pub iam: Iam,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ArchiveData {
    pub organization: OrganizationId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchiveState {
    Projects,
    Organization,
}

impl State for ArchiveState {
    const ALL: &'static [Self] = &[Self::Projects, Self::Organization];
    const EDGES: &'static [(Self, Self)] = &[(Self::Projects, Self::Organization)];

    fn name(self) -> &'static str {
        match self {
            Self::Projects => "projects",
            Self::Organization => "organization",
        }
    }

    fn sla(self) -> Duration {
        Duration::from_secs(60) // fixed: the agreed time of a state, part of the flow's definition
    }

    fn owner(self) -> &'static str {
        "platform"
    }
}

#[derive(Debug)]
pub struct ArchiveFacts {
    active_projects: Vec<Project>,
    state: OrganizationState,
}

#[derive(Debug, PartialEq)]
pub enum ArchiveEffect {
    ArchiveProjects(Vec<ProjectId>),
    ArchiveOrganization,
}

impl Machine for ArchiveOrganization {
    const KIND: &'static str = crate::policy::SYSTEM_ARCHIVER;
    type State = ArchiveState;
    type Data = ArchiveData;
    type Facts = ArchiveFacts;
    type Effect = ArchiveEffect;

    async fn observe(&self, _: &Context, _: ArchiveState, data: &ArchiveData) -> Result<ArchiveFacts> {
        let internal = self.iam.db.internal(Self::KIND);
        let id = data.organization;
        let row = internal.query_opt(store::ORGANIZATION_GET, &[id.as_uuid()]).await?;
        let organization = store::organization(&row.ok_or_else(|| not_found(OrganizationKind::NAME))?)?;
        let rows = internal.query(store::PROJECT_NEXT_ACTIVE, &[id.as_uuid()]).await?;
        let active_projects = rows.iter().map(store::project).collect::<Result<_>>()?;
        Ok(ArchiveFacts { active_projects, state: organization.state })
    }

    fn step(
        &self,
        state: ArchiveState,
        _: &ArchiveData,
        facts: &ArchiveFacts,
        _: Timestamp,
    ) -> Step<ArchiveState, ArchiveEffect> {
        match state {
            ArchiveState::Projects if facts.active_projects.is_empty() => {
                Step::Goto(ArchiveState::Organization)
            }
            ArchiveState::Projects => Step::Do(ArchiveEffect::ArchiveProjects(
                facts.active_projects.iter().map(|project| project.id).collect(),
            )),
            ArchiveState::Organization if facts.state == OrganizationState::Archived => Step::Done,
            ArchiveState::Organization => Step::Do(ArchiveEffect::ArchiveOrganization),
        }
    }

    async fn perform(
        &self,
        context: &Context,
        data: &ArchiveData,
        effect: ArchiveEffect,
        fence: &Fence<ArchiveState>,
    ) -> Result<()> {
        match effect {
            ArchiveEffect::ArchiveProjects(ids) => {
                self.archive_projects(context, data.organization, ids, fence).await
            }
            ArchiveEffect::ArchiveOrganization => {
                self.archive_organization(context, data.organization, fence).await
            }
        }
    }
}

impl ArchiveOrganization {
    async fn archive_projects(
        &self,
        context: &Context,
        organization: OrganizationId,
        ids: Vec<ProjectId>,
        fence: &Fence<ArchiveState>,
    ) -> Result<()> {
        let resource = Resource::in_organization(ProjectKind::NAME, *organization.as_uuid(), None);
        let permit = authorize::<ProjectArchive>(&*self.iam.decider, context, resource)?;
        self.iam
            .db
            .change(context, permit, async |tx| {
                fence.hold(tx).await?;
                let mut changes = Vec::with_capacity(ids.len());
                for id in ids {
                    let Some(row) = tx.query_opt(store::PROJECT_LOCK, &[id.as_uuid()]).await? else {
                        continue;
                    };
                    let before = store::project(&row)?;
                    if before.state == ProjectState::Active {
                        let after = archive(tx, &before).await?;
                        changes.push(archived(&before, &after));
                    }
                }
                Ok(tx.record_many(changes))
            })
            .await
    }

    async fn archive_organization(
        &self,
        context: &Context,
        id: OrganizationId,
        fence: &Fence<ArchiveState>,
    ) -> Result<()> {
        let permit = authorize::<OrganizationArchive>(&*self.iam.decider, context, of(id))?;
        self.iam
            .db
            .change(context, permit, async |tx| {
                fence.hold(tx).await?;
                let before = lock(tx, id).await?;
                if before.state != OrganizationState::Archiving {
                    return Ok(tx.unchanged(()));
                }
                let after =
                    set_state(tx, &before, OrganizationState::Archived, before.generation + 1).await?;
                let change = change::<OrganizationArchive>(&after, Some(&before))
                    .event(&OrganizationArchived { organization: &after });
                Ok(tx.record(change))
            })
            .await
    }
}
