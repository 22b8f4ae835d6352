//! The platform's signing keys: Ed25519, made here, kept like any secret, their public halves open to all.
//!
//! What is sealed is the 32-byte seed; whoever signs takes delivery of it and makes the key pair in memory. The public
//! half outlives rotation and retirement, because what was signed must stay verifiable.

use authz::Context;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use types::{Kind as _, Name, Result, Secret, Timestamp};

use crate::manage::Content;
use crate::model::*;
use crate::policy::{SecretCreate, SecretDeliver};
use crate::{Secrets, store};

const SEED_BYTES: usize = 32; // fixed: the size of an Ed25519 seed
const PUBLIC_KEY_BYTES: usize = 32; // fixed: the size of an Ed25519 public key

/// A key to sign with.
#[derive(Debug)]
pub struct SigningKey {
    /// Names key and version; goes with each signature.
    pub key_id: String,
    pub seed: Secret<[u8; SEED_BYTES]>,
    pub public_key: [u8; PUBLIC_KEY_BYTES],
}

/// A key to verify with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    pub key_id: String,
    pub version: i32,
    pub public_key: [u8; PUBLIC_KEY_BYTES],
    pub created_at: Timestamp,
    /// After this nothing is signed with it any more; `None` for the key in use.
    pub signs_until: Option<Timestamp>,
}

impl Secrets {
    /// Makes the platform's signing key of this name unless it is there. For every start of whoever signs.
    pub async fn ensure_signing_key(
        &self,
        context: &Context,
        name: &Name,
        purpose: &Purpose,
    ) -> Result<SecretInfo> {
        if let Some(info) = self.signing_key_find(name).await? {
            info.require_purpose(purpose)?;
            return Ok(info);
        }
        let permit = self.permit::<SecretCreate>(context, Holder::Platform, None).await?;
        let (seed, public_key) = self.make_key()?;
        let content = signing_content(&seed, &public_key);
        let context = &Self::apart(context);
        let made =
            Box::pin(self.insert(context, permit, (name.clone(), purpose.clone()), content, None)).await;
        match made {
            // Another replica was faster: its key is the key.
            Err(error) if *error.code() == iam::NAME_TAKEN => {
                let info = self.signing_key_find(name).await?.ok_or(error)?;
                info.require_purpose(purpose)?;
                Ok(info)
            }
            made => made,
        }
    }

    /// Takes delivery of the key to sign with; the caller is the recipient.
    pub async fn signing_key(&self, context: &Context, name: &Name, purpose: &Purpose) -> Result<SigningKey> {
        self.signing_key_version(context, name, purpose, None).await
    }

    /// The same for one version: a key that was rotated hands over to the new one while its overlap lasts.
    pub async fn signing_key_version(
        &self,
        context: &Context,
        name: &Name,
        purpose: &Purpose,
        version: Option<i32>,
    ) -> Result<SigningKey> {
        let found = self.signing_key_find(name).await?;
        let info = found.ok_or_else(|| not_found("signing_key"))?;
        let permit = self.permit::<SecretDeliver>(context, Holder::Platform, Some(info.id)).await?;
        info.require_purpose(purpose)?;
        let recipient = context.actor.subject.clone();
        let opened =
            Box::pin(self.hand_out(context, permit, Holder::Platform, &info, version, recipient)).await?;
        let unreadable = || SECRET_UNREADABLE.error("the stored key is not an Ed25519 seed");
        let seed: [u8; SEED_BYTES] =
            opened.plaintext.expose().as_slice().try_into().map_err(|_| unreadable())?;
        let seed = Secret::new(seed);
        let public_key = public_half(&seed)?;
        // The public half is not sealed: one that does not belong to the seed was put there to be trusted.
        if opened.public_key.as_deref() != Some(public_key.as_slice()) {
            return Err(SECRET_UNREADABLE.error("the stored public key is not the seed's"));
        }
        Ok(SigningKey { key_id: key_id(info.id, opened.delivery.version), seed, public_key })
    }

    /// Makes a new key under the same name, which signs from now on; the public half of the one before stays known.
    pub async fn signing_key_rotate(&self, context: &Context, name: &Name) -> Result<SecretInfo> {
        let found = self.signing_key_find(name).await?;
        let info = found.ok_or_else(|| not_found("signing_key"))?;
        let (seed, public_key) = self.make_key()?;
        let content = signing_content(&seed, &public_key);
        self.add_version(&Self::apart(context), Holder::Platform, info.id, content, None).await
    }

    /// All public keys there ever were under this name, newest first. They are public: no permission is asked.
    pub async fn public_keys(&self, name: &Name) -> Result<Vec<PublicKey>> {
        let rows =
            self.db.internal("secrets.public_keys").query(store::PUBLIC_KEYS, &[&name_key(name)]).await?;
        let keys = rows.iter().map(|row| {
            let stored: &[u8] = row.get(2);
            let public_key = stored
                .try_into()
                .map_err(|_| SECRET_UNREADABLE.error("a stored public key is not an Ed25519 key"))?;
            let version = row.get(1);
            let key_id = key_id(SecretId::from_uuid(row.get(0)), version);
            Ok(PublicKey { key_id, version, public_key, created_at: row.get(3), signs_until: row.get(4) })
        });
        keys.collect()
    }

    async fn signing_key_find(&self, name: &Name) -> Result<Option<SecretInfo>> {
        let params: db::Params<'_> = &[&Holder::Platform.project(), &name_key(name)];
        let row = self.db.internal("secrets.signing_key").query_opt(store::SECRET_BY_NAME, params).await?;
        match row.as_ref().map(store::secret).transpose()? {
            Some(info) if info.material != Material::SigningKey => Err(not_found(SecretKind::NAME)),
            found => Ok(found),
        }
    }

    fn make_key(&self) -> Result<(Secret<[u8; SEED_BYTES]>, [u8; PUBLIC_KEY_BYTES])> {
        let mut bytes = [0u8; SEED_BYTES];
        self.entropy.fill(&mut bytes);
        let seed = Secret::new(bytes);
        let public_key = public_half(&seed)?;
        Ok((seed, public_key))
    }
}

fn signing_content<'a>(seed: &'a Secret<[u8; SEED_BYTES]>, public_key: &'a [u8]) -> Content<'a> {
    Content { material: Material::SigningKey, plaintext: seed.expose(), public_key: Some(public_key) }
}

fn public_half(seed: &Secret<[u8; SEED_BYTES]>) -> Result<[u8; PUBLIC_KEY_BYTES]> {
    let unusable = || SECRET_UNREADABLE.error("the seed makes no Ed25519 key");
    let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose()).map_err(|_| unusable())?;
    pair.public_key().as_ref().try_into().map_err(|_| unusable())
}

fn key_id(secret: SecretId, version: i32) -> String {
    format!("{secret}.{version}")
}
