//! Handing a value out, and the log of it.
//!
//! The order is the point: open the envelope, commit the delivery, return the value. Whatever fails, no value leaves
//! without its line in the log, and no line stands for a value that could not be opened. A crash after the commit
//! leaves a line too many, which errs on the right side.

use authz::{Action as _, Context, CorrelationId, Permit, Subject};
use db::{Change, Tx};
use domain::{page, page_start};
use types::{Kind as _, Result, Secret};
use web::Page;

use crate::events::SecretDelivered;
use crate::manage::placed;
use crate::model::*;
use crate::policy::{DeliveryList, SecretDeliver};
use crate::seal::Binding;
use crate::{Secrets, store};

/// Who wants which secret, for what.
#[derive(Debug)]
pub struct DeliveryRequest<'a> {
    pub holder: Holder,
    pub secret: SecretId,
    /// Must be the one the secret was stored for.
    pub purpose: &'a Purpose,
    /// Who will have the value: often not the caller but a node or a program it acts for.
    pub recipient: Subject,
    /// The current version if none is named. An older one can be had while its overlap lasts.
    pub version: Option<i32>,
}

/// A value, on its way to its recipient.
#[derive(Debug)]
pub struct Delivered {
    pub value: Secret,
    pub version: i32,
    pub delivery: DeliveryId,
}

/// An opened version and what the log says about it.
pub(crate) struct Opened {
    pub plaintext: Secret<Vec<u8>>,
    pub public_key: Option<Vec<u8>>,
    pub delivery: Delivery,
}

impl Secrets {
    pub async fn deliver(&self, context: &Context, request: DeliveryRequest<'_>) -> Result<Delivered> {
        let DeliveryRequest { holder, secret, purpose, recipient, version } = request;
        let permit = self.permit::<SecretDeliver>(context, holder, Some(secret)).await?;
        let info = self.read(&permit, holder, secret).await?;
        if info.material != Material::Value {
            return Err(not_found(SecretKind::NAME));
        }
        info.require_purpose(purpose)?;
        let opened = self.hand_out(context, permit, holder, &info, version, recipient).await?;
        // Only text comes in; bytes that are none were put there by somebody else.
        let text = String::from_utf8(opened.plaintext.expose().clone())
            .map_err(|_| SECRET_UNREADABLE.error("the stored value is not text"))?;
        Ok(Delivered {
            value: Secret::new(text),
            version: opened.delivery.version,
            delivery: opened.delivery.id,
        })
    }

    /// Opens a version and returns it once its delivery is committed.
    pub(crate) async fn hand_out(
        &self,
        context: &Context,
        permit: Permit<SecretDeliver>,
        holder: Holder,
        info: &SecretInfo,
        version: Option<i32>,
        recipient: Subject,
    ) -> Result<Opened> {
        let context = &Self::apart(context);
        info.require_active()?;
        let version = version.unwrap_or(info.version);
        let ended = || SECRET_VERSION_ENDED.error(format!("version {version} was destroyed"));
        let params: db::Params<'_> = &[info.id.as_uuid(), &version];
        let row = self.db.read(&permit).query_opt(store::VERSION_GET, params).await?;
        let stored = store::version(&row.ok_or_else(|| not_found("secret_version"))?);
        require_readable(stored.readable_until, version, self.db.now())?;
        let sealed = stored.sealed.ok_or_else(ended)?;
        let plaintext = self.open(&Binding::of(info, version), &sealed).await?;
        let delivery = self
            .db
            .change(context, permit, async |tx| {
                let now_info = lock_shared(tx, holder, info.id).await?;
                now_info.require_active()?;
                let row = tx.query_one(store::VERSION_READABLE_UNTIL, params).await?;
                require_readable(row.get(0), version, tx.now())?;
                let delivery =
                    delivery_insert(tx, &now_info, version, recipient, context.correlation_id).await?;
                Ok(tx.record(delivered(&now_info, &delivery)).with(delivery))
            })
            .await?;
        Ok(Opened { plaintext, public_key: stored.public_key, delivery })
    }

    /// Who was given a secret, in order.
    pub async fn delivery_list(
        &self,
        context: &Context,
        holder: Holder,
        id: SecretId,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<Delivery>> {
        let permit = self.permit::<DeliveryList>(context, holder, Some(id)).await?;
        // The look at the secret is what keeps another project's log out of reach.
        self.read(&permit, holder, id).await?;
        let query = format!("deliveries?of={id}");
        let after = page_start::<DeliveryKind>(cursor, &query)?;
        let params: db::Params<'_> = &[id.as_uuid(), &after, &(i64::from(limit) + 1)];
        let rows = self.db.read(&permit).query(store::DELIVERY_LIST, params).await?;
        let items: Vec<Delivery> = rows.iter().map(store::delivery).collect::<Result<_>>()?;
        Ok(page(items, limit, &query, |delivery| delivery.id.to_string()))
    }
}

pub(crate) async fn delivery_insert(
    tx: &mut Tx<'_>,
    info: &SecretInfo,
    version: i32,
    recipient: Subject,
    correlation_id: CorrelationId,
) -> Result<Delivery> {
    let delivery = Delivery {
        id: tx.make_id(),
        secret_id: info.id,
        version,
        purpose: info.purpose.clone(),
        recipient,
        correlation_id,
        delivered_at: tx.now(),
    };
    let params: db::Params<'_> = &[
        delivery.id.as_uuid(),
        info.id.as_uuid(),
        &info.org_id.map(|id| *id.as_uuid()),
        &version,
        &delivery.purpose.as_str(),
        &store::kind_text(delivery.recipient.kind),
        &delivery.recipient.id,
        correlation_id.as_uuid(),
        &delivery.delivered_at,
    ];
    tx.execute(store::DELIVERY_INSERT, params).await?;
    Ok(delivery)
}

pub(crate) fn delivered(info: &SecretInfo, delivery: &Delivery) -> Change {
    placed(Change::new(SecretDeliver::NAME, info.id, info.generation), info)
        .after(delivery)
        .event(&SecretDelivered { delivery })
}

async fn lock_shared(tx: &mut Tx<'_>, holder: Holder, id: SecretId) -> Result<SecretInfo> {
    let row = tx.query_opt(store::SECRET_LOCK_SHARED, &[id.as_uuid(), &holder.project()]).await?;
    store::secret(&row.ok_or_else(|| not_found(SecretKind::NAME))?)
}
