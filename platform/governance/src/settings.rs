//! Reading and changing settings, at the platform, an organization or a project.
//!
//! What a setting is, and which stored value counts, is `kernel/db`'s (`db::settings`): here it is offered to people. A
//! change is committed with its audit entry, then this process reads the settings anew before it answers, and a nudge
//! tells the other replicas to do the same.

use authz::{Action, Context, Permit, Place, Resource, authorize};
use db::settings::{lock, store, stored, stored_in};
use db::{Change, SettingInfo, StoredSetting, Topic, Tx};
use futures::future::BoxFuture;
use iam::{Iam, OrganizationId, ProjectId};
use serde_json::Value;
use types::Result;
use uuid::Uuid;
use web::check_generation;

use crate::model::{
    EffectiveSetting, Holder, SETTING, SETTING_NEEDS_EVIDENCE, SettingState, effective, invalid, is_shown,
    unknown,
};
use crate::policy::{SettingClear, SettingRead, SettingSet};
use crate::{Governance, events};

/// Tells whether what a setting needs was shown (`db::Setting::needs_evidence`). Given to [`Governance::new`] by the
/// setting's key; a setting that needs evidence, and for which there is none of these, cannot be set. Asked inside the
/// transaction that sets it, so it looks at rows and at nothing else.
pub trait Evidence: Send + Sync + 'static {
    /// Errs, best with `setting_needs_evidence`, if this value may not be set yet.
    fn check<'a>(&'a self, tx: &'a mut Tx<'_>, place: Place, value: &'a Value) -> BoxFuture<'a, Result<()>>;
}

impl Governance {
    /// All settings that a place can have, by key.
    pub async fn setting_list(&self, context: &Context, holder: Holder) -> Result<Vec<EffectiveSetting>> {
        let (permit, place) = self.permit::<SettingRead>(context, holder).await?;
        let rows = stored(&self.db.read(&permit), place, None).await?;
        let shown = self.settings.infos().into_iter().filter(|info| is_shown(info, place.level()));
        Ok(shown.map(|info| self.effective(info, place, &rows)).collect())
    }

    pub async fn setting_get(
        &self,
        context: &Context,
        holder: Holder,
        key: &str,
    ) -> Result<EffectiveSetting> {
        let (permit, place) = self.permit::<SettingRead>(context, holder).await?;
        let info = self.info(key, place)?;
        let rows = stored(&self.db.read(&permit), place, Some(key)).await?;
        Ok(self.effective(info, place, &rows))
    }

    /// Sets a value. The same one again changes nothing.
    pub async fn setting_set(
        &self,
        context: &Context,
        holder: Holder,
        key: &str,
        value: Value,
        if_match: Option<i64>,
    ) -> Result<EffectiveSetting> {
        self.setting_change::<SettingSet>(context, holder, key, Some(value), if_match).await
    }

    /// Takes a value back: what holds outside holds here as well.
    pub async fn setting_clear(
        &self,
        context: &Context,
        holder: Holder,
        key: &str,
        if_match: Option<i64>,
    ) -> Result<EffectiveSetting> {
        self.setting_change::<SettingClear>(context, holder, key, None, if_match).await
    }

    async fn setting_change<A: Action>(
        &self,
        context: &Context,
        holder: Holder,
        key: &str,
        value: Option<Value>,
        if_match: Option<i64>,
    ) -> Result<EffectiveSetting> {
        let (permit, place) = self.permit::<A>(context, holder).await?;
        let info = self.info(key, place)?;
        let changed = self
            .db
            .change(context, permit, async |tx| {
                require_active(tx, place).await?;
                let before = lock(tx, place, key, &context.actor.subject).await?;
                check_generation(if_match, before.generation)?;
                if let Some(value) = &value {
                    self.require_valid(tx, info, place, value).await?;
                }
                if before.value == value {
                    let same = self.effective_in(tx, info, place).await?;
                    return Ok(tx.unchanged(same));
                }
                let after = StoredSetting {
                    value,
                    generation: before.generation + 1,
                    set_by: Some(context.actor.subject.clone()),
                    set_at: tx.now(),
                    ..before.clone()
                };
                store(tx, &after).await?;
                let recorded = tx.record(change::<A>(&before, &after));
                Ok(recorded.with(self.effective_in(tx, info, place).await?))
            })
            .await?;
        self.spread(context).await;
        Ok(changed)
    }

    /// Asks for `A` on a holder's settings. A missing holder is told from a foreign one only to those who may know.
    async fn permit<A: Action>(&self, context: &Context, holder: Holder) -> Result<(Permit<A>, Place)> {
        let place = match holder {
            Holder::Platform => Place::Platform,
            Holder::Organization(id) => Place::Organization(*id.as_uuid()),
            Holder::Project(id) => self.iam.project_resource(id).await?.place(),
        };
        let permit = authorize::<A>(&*self.decider, context, Resource::list_at(SETTING, place))?;
        let missing = match holder {
            Holder::Project(_) if place.organization() == Some(Uuid::nil()) => Some("project"),
            Holder::Organization(id)
                if !context.standing.belongs_to(*id.as_uuid())
                    && !self.iam.organization_exists(id).await? =>
            {
                Some("organization")
            }
            _ => None,
        };
        match missing {
            Some(kind) => Err(authz::NOT_FOUND.error(authz::not_found_message(kind))),
            None => Ok((permit, place)),
        }
    }

    fn info(&self, key: &str, place: Place) -> Result<&SettingInfo> {
        let info = self.settings.info(key).filter(|info| is_shown(info, place.level()));
        info.ok_or_else(|| unknown(key, place.level()))
    }

    fn effective(&self, info: &SettingInfo, place: Place, rows: &[StoredSetting]) -> EffectiveSetting {
        let resolved = self.settings.resolve_in(info, place, rows);
        effective(info, place, rows, self.settings.platform_value(info.key), resolved)
    }

    async fn effective_in(
        &self,
        tx: &mut Tx<'_>,
        info: &SettingInfo,
        place: Place,
    ) -> Result<EffectiveSetting> {
        let rows = stored_in(tx, place, info.key).await?;
        Ok(self.effective(info, place, &rows))
    }

    /// May this value stand here, under what holds outside now?
    async fn require_valid(
        &self,
        tx: &mut Tx<'_>,
        info: &SettingInfo,
        place: Place,
        value: &Value,
    ) -> Result<()> {
        let mut rows = stored_in(tx, place, info.key).await?;
        if let Some(own) = rows.iter_mut().find(|row| row.place == place) {
            own.value = Some(value.clone());
        }
        let resolved = self.settings.resolve_in(info, place, &rows);
        if let Some((_, why)) = resolved.ignored.iter().find(|(level, _)| *level == place.level()) {
            return Err(invalid(info, value, why));
        }
        let Some(needed) = info.evidence else { return Ok(()) };
        match self.evidence.get(info.key) {
            Some(evidence) => evidence.check(tx, place, value).await,
            None => Err(SETTING_NEEDS_EVIDENCE.error(format!("{} needs {needed}", info.key))),
        }
    }

    /// Lets this process and the others know. What could not be read now is read with the next sweep.
    async fn spread(&self, context: &Context) {
        if context.trail.recorded().is_empty() {
            return;
        }
        self.db.nudges().nudge(Topic::Setting);
        if let Err(error) = self.settings.renew(&self.db.internal("governance.settings")).await {
            tracing::warn!(%error, "a setting was changed, but the settings could not be read anew yet");
        }
    }
}

async fn require_active(tx: &mut Tx<'_>, place: Place) -> Result<()> {
    match place {
        Place::Platform => Ok(()),
        Place::Organization(id) => Iam::require_active_organization(tx, OrganizationId::from_uuid(id)).await,
        Place::Project { project, .. } => {
            Iam::require_active_project(tx, ProjectId::from_uuid(project)).await
        }
    }
}

fn change<A: Action>(before: &StoredSetting, after: &StoredSetting) -> Change {
    let state = SettingState::of(after);
    let mut change = Change::named(A::NAME, SETTING, &after.key, after.generation).after(&state);
    if before.generation > 0 {
        change = change.before(&SettingState::of(before));
    }
    if let Some(organization) = after.place.organization() {
        change = change.in_organization(&organization);
    }
    if let Place::Project { project, .. } = after.place {
        change = change.in_project(&project);
    }
    match after.value {
        Some(_) => change.event(&events::SettingSet { setting: &state }),
        None => change.event(&events::SettingCleared { setting: &state }),
    }
}
