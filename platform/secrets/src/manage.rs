//! Storing, listing, rotating and retiring secrets.

use authz::{Action, Context, Permit, Subject};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use db::{Change, DbError, Tx};
use domain::{page, page_start};
use iam::{Iam, NAME_TAKEN, OrganizationId, ProjectId};
use types::{Kind as _, Name, Result, Secret};
use web::{PRECONDITION_FAILED, Page, SECRET_ALREADY_DELIVERED, check_generation};

use crate::deliver::{delivered, delivery_insert};
use crate::events::{SecretCreated, SecretRetired, SecretRotated};
use crate::model::*;
use crate::policy::*;
use crate::seal::{Binding, Sealed};
use crate::settings::{ROTATION_OVERLAP_SECONDS, VALUE_BYTES_MAX};
use crate::{Secrets, store};

/// A secret to store.
#[derive(Debug)]
pub struct NewSecret {
    pub holder: Holder,
    pub name: Name,
    pub purpose: Purpose,
    pub value: Secret,
}

/// Which secrets of a holder to list.
#[derive(Debug, Default)]
pub struct SecretFilter {
    pub state: Option<SecretState>,
    pub name: Option<Name>,
    pub purpose: Option<Purpose>,
    pub limit: u32,
    pub cursor: Option<String>,
}

/// A secret whose value we made, and the value: this is the only time it is shown.
#[derive(Debug)]
pub struct Generated {
    pub info: SecretInfo,
    pub value: Secret,
}

/// What is sealed into a new secret or version.
pub(crate) struct Content<'a> {
    pub material: Material,
    pub plaintext: &'a [u8],
    pub public_key: Option<&'a [u8]>,
}

/// Size of a generated value before it is written as text.
// fixed: 256 bits cannot be guessed; nobody needs another number
const GENERATED_BYTES: usize = 32;
/// How often a rotation seals anew because another one was faster.
// fixed: each try needs yet another rotation of the same secret in the same milliseconds
const ROTATE_ATTEMPTS: usize = 4;

impl Secrets {
    pub async fn create(&self, context: &Context, new: NewSecret) -> Result<SecretInfo> {
        self.check_size(&new.value)?;
        let permit = self.permit::<SecretCreate>(context, new.holder, None).await?;
        let content =
            Content { material: Material::Value, plaintext: new.value.expose().as_bytes(), public_key: None };
        Box::pin(self.insert(context, permit, (new.name, new.purpose), content, None)).await
    }

    /// Makes a random value, stores it and returns it once. A retry of the same request learns the secret's id and
    /// nothing more: the first reply's value is not kept anywhere it could be replayed from.
    pub async fn generate(
        &self,
        context: &Context,
        holder: Holder,
        name: Name,
        purpose: Purpose,
    ) -> Result<Generated> {
        let permit = self.permit::<SecretCreate>(context, holder, None).await?;
        let mut bytes = [0u8; GENERATED_BYTES];
        self.entropy.fill(&mut bytes);
        let bytes = Secret::new(bytes);
        let value = Secret::new(URL_SAFE_NO_PAD.encode(bytes.expose()));
        let content =
            Content { material: Material::Value, plaintext: value.expose().as_bytes(), public_key: None };
        let shown_to = Some(context.actor.subject.clone());
        let info = Box::pin(self.insert(context, permit, (name, purpose), content, shown_to)).await?;
        if context.trail.was_replayed() {
            return Err(SECRET_ALREADY_DELIVERED
                .error("the value was shown in the first reply to this request")
                .with_details(serde_json::json!({"secret_id": info.id})));
        }
        Ok(Generated { info, value })
    }

    pub async fn get(&self, context: &Context, holder: Holder, id: SecretId) -> Result<SecretInfo> {
        let permit = self.permit::<SecretRead>(context, holder, Some(id)).await?;
        self.read(&permit, holder, id).await
    }

    pub async fn list(
        &self,
        context: &Context,
        holder: Holder,
        filter: &SecretFilter,
    ) -> Result<Page<SecretInfo>> {
        let permit = self.permit::<SecretList>(context, holder, None).await?;
        let state = filter.state.map(SecretState::as_str);
        let name = filter.name.as_ref().map(name_key);
        let purpose = filter.purpose.as_ref().map(Purpose::as_str);
        let query = format!("secrets?of={:?}&{state:?}&{name:?}&{purpose:?}", holder.project());
        let after = page_start::<SecretKind>(filter.cursor.as_deref(), &query)?;
        let params: db::Params<'_> =
            &[&holder.project(), &after, &state, &name, &purpose, &(i64::from(filter.limit) + 1)];
        let rows = self.db.read(&permit).query(store::SECRET_LIST, params).await?;
        let items: Vec<SecretInfo> = rows.iter().map(store::secret).collect::<Result<_>>()?;
        Ok(page(items, filter.limit, &query, |info| info.id.to_string()))
    }

    /// Gives a secret a new value. The one before can still be delivered for the overlap.
    pub async fn rotate(
        &self,
        context: &Context,
        holder: Holder,
        id: SecretId,
        value: &Secret,
        if_match: Option<i64>,
    ) -> Result<SecretInfo> {
        self.check_size(value)?;
        let content =
            Content { material: Material::Value, plaintext: value.expose().as_bytes(), public_key: None };
        self.add_version(context, holder, id, content, if_match).await
    }

    /// Ends a secret: nothing of it can be delivered any more, and its bytes are destroyed.
    pub async fn retire(
        &self,
        context: &Context,
        holder: Holder,
        id: SecretId,
        if_match: Option<i64>,
    ) -> Result<SecretInfo> {
        let permit = self.permit::<SecretRetire>(context, holder, Some(id)).await?;
        self.db
            .change(context, permit, async |tx| {
                let before = lock(tx, holder, id).await?;
                if before.state == SecretState::Retired {
                    return Ok(tx.unchanged(before));
                }
                check_generation(if_match, before.generation)?;
                let now = tx.now();
                tx.execute(store::SECRET_RETIRE, &[id.as_uuid(), &now]).await?;
                let after = SecretInfo {
                    state: SecretState::Retired,
                    state_since: now,
                    generation: before.generation + 1,
                    updated_at: now,
                    ..before.clone()
                };
                let change =
                    change::<SecretRetire>(&after, Some(&before)).event(&SecretRetired { secret: &after });
                Ok(tx.record(change).with(after))
            })
            .await
    }

    /// Stores a secret with its first version, and the delivery to whoever is shown the value in the same breath.
    pub(crate) async fn insert(
        &self,
        context: &Context,
        permit: Permit<SecretCreate>,
        (name, purpose): (Name, Purpose),
        content: Content<'_>,
        shown_to: Option<Subject>,
    ) -> Result<SecretInfo> {
        let (id, now) = (self.db.make_id(), self.db.now());
        let mut info = SecretInfo {
            id,
            org_id: permit.resource().organization.map(OrganizationId::from_uuid),
            project_id: permit.resource().project.map(ProjectId::from_uuid),
            name,
            material: content.material,
            purpose,
            owner: context.actor.subject.clone(),
            version: 1,
            state: SecretState::Active,
            state_since: now,
            generation: 1,
            created_at: now,
            updated_at: now,
        };
        let sealed = self.seal(&Binding::of(&info, info.version), content.plaintext).await?;
        self.db
            .change(context, permit, async |tx| {
                if let Some(project) = info.project_id {
                    Iam::require_active_project(tx, project).await?;
                }
                (info.state_since, info.created_at, info.updated_at) = (tx.now(), tx.now(), tx.now());
                insert_rows(tx, &info, &sealed, content.public_key).await?;
                let created = change::<SecretCreate>(&info, None).event(&SecretCreated { secret: &info });
                let mut changes = vec![created];
                if let Some(recipient) = shown_to {
                    let delivery =
                        delivery_insert(tx, &info, info.version, recipient, context.correlation_id).await?;
                    changes.push(delivered(&info, &delivery));
                }
                Ok(tx.record_many(changes).with(info))
            })
            .await
    }

    /// The version number is part of what is sealed, and sealing may ask a key service, which no transaction waits
    /// for: so the value is sealed for the version that should come next, and sealed anew if that one is taken.
    pub(crate) async fn add_version(
        &self,
        context: &Context,
        holder: Holder,
        id: SecretId,
        content: Content<'_>,
        if_match: Option<i64>,
    ) -> Result<SecretInfo> {
        for _ in 0..ROTATE_ATTEMPTS {
            let permit = self.permit::<SecretRotate>(context, holder, Some(id)).await?;
            let seen = self.read(&permit, holder, id).await?;
            if seen.material != content.material {
                return Err(not_found(SecretKind::NAME));
            }
            let sealed = self.seal(&Binding::of(&seen, seen.version + 1), content.plaintext).await?;
            let rotated =
                Box::pin(self.try_rotate(context, permit, holder, id, &sealed, &content, if_match)).await?;
            if let Some(info) = rotated {
                return Ok(info);
            }
        }
        Err(PRECONDITION_FAILED.error("others are rotating this secret at the same time"))
    }

    #[allow(clippy::too_many_arguments)] // one transaction's inputs; a struct for one caller would only rename them
    async fn try_rotate(
        &self,
        context: &Context,
        permit: Permit<SecretRotate>,
        holder: Holder,
        id: SecretId,
        sealed: &Sealed,
        content: &Content<'_>,
        if_match: Option<i64>,
    ) -> Result<Option<SecretInfo>> {
        let overlap = ROTATION_OVERLAP_SECONDS.seconds_in(&self.settings, permit.resource().place());
        self.db
            .change(context, permit, async |tx| {
                let before = lock(tx, holder, id).await?;
                check_generation(if_match, before.generation)?;
                before.require_active()?;
                if before.version + 1 != sealed.version {
                    return Ok(tx.unchanged(None));
                }
                let now = tx.now();
                let readable_until = now.checked_add(overlap).unwrap_or(now);
                let params: db::Params<'_> = &[
                    id.as_uuid(),
                    &sealed.version,
                    &now,
                    &readable_until,
                    &before.org_id.map(|id| *id.as_uuid()),
                    &sealed.sealed,
                    &sealed.wrapped.bytes,
                    &sealed.wrapped.key_id,
                    &content.public_key,
                ];
                tx.execute(store::SECRET_ROTATE, params).await?;
                let after = SecretInfo {
                    version: sealed.version,
                    generation: before.generation + 1,
                    updated_at: now,
                    ..before.clone()
                };
                let change =
                    change::<SecretRotate>(&after, Some(&before)).event(&SecretRotated { secret: &after });
                Ok(tx.record(change).with(Some(after)))
            })
            .await
    }

    pub(crate) async fn read<A: Action>(
        &self,
        permit: &Permit<A>,
        holder: Holder,
        id: SecretId,
    ) -> Result<SecretInfo> {
        let params: db::Params<'_> = &[id.as_uuid(), &holder.project()];
        let row = self.db.read(permit).query_opt(store::SECRET_GET, params).await?;
        store::secret(&row.ok_or_else(|| not_found(SecretKind::NAME))?)
    }

    fn check_size(&self, value: &Secret) -> Result<()> {
        let bytes_max = self.settings.get(&VALUE_BYTES_MAX);
        let bytes = value.expose().len();
        if bytes == 0 || bytes > bytes_max as usize {
            return Err(SECRET_VALUE_SIZE
                .error(format!("the value has {bytes} bytes; 1 to {bytes_max} are allowed"))
                .with_details(serde_json::json!({"bytes_min": 1, "bytes_max": bytes_max})));
        }
        Ok(())
    }
}

async fn insert_rows(
    tx: &mut Tx<'_>,
    info: &SecretInfo,
    sealed: &Sealed,
    public_key: Option<&[u8]>,
) -> Result<()> {
    let owner_kind = store::kind_text(info.owner.kind);
    let params: db::Params<'_> = &[
        info.id.as_uuid(),
        &info.org_id.map(|id| *id.as_uuid()),
        &info.project_id.map(|id| *id.as_uuid()),
        &info.name.as_str(),
        &name_key(&info.name),
        &info.material.as_str(),
        &info.purpose.as_str(),
        &owner_kind,
        &info.owner.id,
        &info.created_at,
        &sealed.sealed,
        &sealed.wrapped.bytes,
        &sealed.wrapped.key_id,
        &public_key,
    ];
    tx.execute(store::SECRET_INSERT, params).await.map_err(name_conflict)
}

async fn lock(tx: &mut Tx<'_>, holder: Holder, id: SecretId) -> Result<SecretInfo> {
    let row = tx.query_opt(store::SECRET_LOCK, &[id.as_uuid(), &holder.project()]).await?;
    store::secret(&row.ok_or_else(|| not_found(SecretKind::NAME))?)
}

fn change<A: Action>(after: &SecretInfo, before: Option<&SecretInfo>) -> Change {
    let change = placed(Change::new(A::NAME, after.id, after.generation), after).after(after);
    match before {
        Some(before) => change.before(before),
        None => change,
    }
}

/// A change with the organization and project of its secret, if it has them.
pub(crate) fn placed(mut change: Change, info: &SecretInfo) -> Change {
    if let (Some(organization), Some(project)) = (info.org_id, info.project_id) {
        change = change.in_organization(organization.as_uuid()).in_project(project.as_uuid());
    }
    change
}

fn name_conflict(error: DbError) -> types::Error {
    if error.constraint() == Some("secret_name_once") {
        NAME_TAKEN.error("another secret that is not retired has this name")
    } else {
        error.into()
    }
}
