//! What can be done with invitations: an offer of a role, for whoever has its code.
//!
//! The code is shown once, to whoever invites, and handed on by them; we keep its hash. It works once and for a time.
//! Unknown, used, expired and withdrawn are one answer, so that a code can be tried but nothing learned.

use authz::{Context, Resource, RoleInfo, authorize};
use db::{Change, Setting};
use domain::{page, page_start};
use types::{Kind as _, Result, Secret};
use web::{Page, check_generation};

use crate::credentials::{CredentialKind, hash};
use crate::events::{InvitationAccepted, InvitationCreated, InvitationWithdrawn};
use crate::grants::{NewGrant, fits, give};
use crate::model::*;
use crate::policy::*;
use crate::{Iam, store};

pub static INVITATION_SECONDS: Setting<u64> = Setting::new(
    "iam.invitation_seconds",
    7 * 24 * 3600,
    "How long an invitation can be accepted, in seconds.",
)
.between(60, 90 * 24 * 3600);

impl Iam {
    /// Offers a role; returns the code to hand on, which is never seen again.
    pub async fn invitation_create(
        &self,
        context: &Context,
        org_id: OrganizationId,
        project_id: Option<ProjectId>,
        role: &'static RoleInfo,
    ) -> Result<(Invitation, Secret)> {
        // Nobody in particular: only whether the role can be held there.
        let offered = NewGrant {
            person_id: PersonId::from_uuid(uuid::Uuid::nil()),
            role,
            org_id: Some(org_id),
            project_id,
            expires_at: None,
        };
        fits(&offered, self.db.now())?;
        let resource = self.invitation_resource(org_id, project_id, None).await?;
        let permit = authorize::<InvitationCreate>(&*self.decider, context, resource)?;
        self.may_make_owners(context, Some(org_id), role.name)?;
        let code = CredentialKind::Invitation.make(&*self.entropy);
        let code_hash = hash(code.expose());
        let seconds = INVITATION_SECONDS.seconds(&self.settings);
        let invitation = self
            .db
            .change(context, permit, async |tx| {
                let row = tx.query_opt(store::ORGANIZATION_STATE_FOR_SHARE, &[org_id.as_uuid()]).await?;
                let row = row.ok_or_else(|| not_found(OrganizationKind::NAME))?;
                if row.get::<_, &str>(0) != "active" {
                    return Err(ARCHIVED.error("the organization is archived or being archived"));
                }
                let now = tx.now();
                let invitation = Invitation {
                    id: tx.make_id(),
                    org_id,
                    project_id,
                    role: role.name.to_owned(),
                    generation: 1,
                    created_at: now,
                    created_by: context.actor.subject.id.clone(),
                    expires_at: now.checked_add(seconds).unwrap_or(now),
                    accepted_at: None,
                    accepted_by: None,
                    withdrawn_at: None,
                };
                let params: db::Params<'_> = &[
                    invitation.id.as_uuid(),
                    org_id.as_uuid(),
                    &project_id.map(|id| *id.as_uuid()),
                    &invitation.role,
                    &code_hash,
                    &now,
                    &invitation.created_by,
                    &invitation.expires_at,
                ];
                tx.execute(store::INVITATION_INSERT, params).await?;
                let change = change::<InvitationCreate>(&invitation, None)
                    .event(&InvitationCreated { invitation: &invitation });
                Ok(tx.record(change).with(invitation))
            })
            .await?;
        if context.trail.was_replayed() {
            let details = serde_json::json!({"invitation_id": invitation.id});
            return Err(web::SECRET_ALREADY_DELIVERED
                .error("the invitation's code was given once")
                .with_details(details));
        }
        Ok((invitation, code))
    }

    pub async fn invitation_list(
        &self,
        context: &Context,
        org_id: OrganizationId,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<Invitation>> {
        let resource = self.invitation_resource(org_id, None, None).await?;
        let permit = authorize::<InvitationList>(&*self.decider, context, resource)?;
        let query = format!("invitations?org={org_id}");
        let after = page_start::<InvitationKind>(cursor, &query)?;
        let reader = self.db.read(&permit);
        let params: db::Params<'_> = &[org_id.as_uuid(), &after, &(i64::from(limit) + 1)];
        let rows = reader.query(store::INVITATION_LIST, params).await?;
        if rows.is_empty() && reader.query_opt(store::ORGANIZATION_GET, &[org_id.as_uuid()]).await?.is_none()
        {
            return Err(not_found(OrganizationKind::NAME));
        }
        let items = rows.iter().map(store::invitation).collect();
        Ok(page(items, limit, &query, |invitation| invitation.id.to_string()))
    }

    pub async fn invitation_withdraw(
        &self,
        context: &Context,
        org_id: OrganizationId,
        id: InvitationId,
        if_match: Option<i64>,
    ) -> Result<Invitation> {
        let resource = self.invitation_resource(org_id, None, Some(id)).await?;
        let permit = authorize::<InvitationWithdraw>(&*self.decider, context, resource)?;
        self.db
            .change(context, permit, async |tx| {
                let row = tx.query_opt(store::INVITATION_LOCK, &[id.as_uuid(), org_id.as_uuid()]).await?;
                let before = store::invitation(&row.ok_or_else(|| not_found(InvitationKind::NAME))?);
                if before.withdrawn_at.is_some() {
                    return Ok(tx.unchanged(before));
                }
                check_generation(if_match, before.generation)?;
                if before.accepted_at.is_some() {
                    return Err(INVITATION_INVALID.error("somebody has accepted it; end the grant instead"));
                }
                let now = tx.now();
                tx.execute(store::INVITATION_WITHDRAW, &[id.as_uuid(), &now]).await?;
                let after = Invitation {
                    withdrawn_at: Some(now),
                    generation: before.generation + 1,
                    ..before.clone()
                };
                let change = change::<InvitationWithdraw>(&after, Some(&before))
                    .event(&InvitationWithdrawn { invitation: &after });
                Ok(tx.record(change).with(after))
            })
            .await
    }

    /// The caller takes the role that is offered.
    pub async fn invitation_accept(&self, context: &Context, code: &str) -> Result<Grant> {
        let invalid = || INVITATION_INVALID.error("the code cannot be used");
        let resource = Resource::platform(InvitationKind::NAME);
        let permit = authorize::<InvitationAccept>(&*self.decider, context, resource)?;
        let person: PersonId = context.actor.subject.id.parse().map_err(|_| invalid())?;
        if context.standing.within.is_some() {
            return Err(KEY_TOO_WIDE.error("the key you use reaches one organization or project only"));
        }
        let code_hash = hash(code);
        self.db
            .change(context, permit, async |tx| {
                let params: db::Params<'_> = &[&code_hash, &tx.now(), person.as_uuid()];
                let row = tx.query_opt(store::INVITATION_ACCEPT, params).await?.ok_or_else(invalid)?;
                let after = store::invitation(&row);
                let role = crate::role(&after.role).ok_or_else(invalid)?;
                let new = NewGrant {
                    person_id: person,
                    role,
                    org_id: Some(after.org_id),
                    project_id: after.project_id,
                    expires_at: None,
                };
                let (grant, given) = give(tx, context, new).await?;
                let before = Invitation {
                    accepted_at: None,
                    accepted_by: None,
                    generation: after.generation - 1,
                    ..after.clone()
                };
                let accepted = change::<InvitationAccept>(&after, Some(&before))
                    .event(&InvitationAccepted { invitation: &after });
                Ok(tx.record_many([accepted, given]).with(grant))
            })
            .await
    }

    async fn invitation_resource(
        &self,
        org_id: OrganizationId,
        project_id: Option<ProjectId>,
        id: Option<InvitationId>,
    ) -> Result<Resource> {
        let place = self.place_resource(Some(org_id), project_id, id.map(|id| *id.as_uuid())).await?;
        Ok(Resource { kind: InvitationKind::NAME, ..place })
    }
}

fn change<A: authz::Action>(after: &Invitation, before: Option<&Invitation>) -> Change {
    let change =
        Change::new(A::NAME, after.id, after.generation).in_organization(after.org_id.as_uuid()).after(after);
    match before {
        Some(before) => change.before(before),
        None => change,
    }
}
