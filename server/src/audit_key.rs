//! The audit log's signing key: kept by the secrets domain, its public half in a file for everybody.
//!
//! Made once, by the first sealer that starts. Losing it is serious: a new key cannot continue the log by itself, because
//! every checkpoint kept elsewhere names the old one. It is replaced by `gpuaasd audit rotate-key`: the secrets domain
//! makes a new version, and the next seal is signed with both, in which the old key hands over to the new one. Every
//! sealer looks for a newer version now and then, and when the log turns out to be known by one it does not have.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use audit::{KeySource, SealKeys};
use authz::{Actor, Context};
use futures::future::BoxFuture;
use merkle::{SignerKey, VerifierKey};
use secrets::{PublicKey, Purpose};
use types::Name;

use crate::Failure;
use crate::assemble::{AUDIT_SEALER, App};

const KEY_NAME: &str = "audit log";
const KEY_PURPOSE: &str = "audit.checkpoints";
const READABLE: u32 = 0o644;

/// The log's keys, as the secrets domain has them.
pub struct LogKeys {
    app: Arc<App>,
    log_name: String,
    publish_to: Option<PathBuf>,
    held: Mutex<Held>,
}

/// What was taken delivery of.
struct Held {
    versions: Versions,
    keys: SealKeys,
}

/// Which versions of the key are needed: the newest, and the one the log is known by if that is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Versions {
    current: i32,
    former: Option<i32>,
}

impl LogKeys {
    /// The log's keys, made if there are none. Each delivery is recorded like any other secret's.
    pub async fn open(app: &Arc<App>, log_name: &str, publish_to: Option<&Path>) -> Result<Self, Failure> {
        let context = Context::new(Actor::system(AUDIT_SEALER), app.db.make_id());
        app.secrets.ensure_signing_key(&context, &key_name()?, &key_purpose()?).await?;
        let (versions, _) = needed(app, log_name).await?;
        let held = Mutex::new(Held { versions, keys: deliver(app, log_name, versions).await? });
        let app = Arc::clone(app);
        let keys =
            Self { app, log_name: log_name.to_owned(), publish_to: publish_to.map(Path::to_owned), held };
        keys.look().await?;
        Ok(keys)
    }

    /// Is the log still known by an older key than the newest?
    pub fn is_handing_over(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).versions.former.is_some()
    }

    /// Makes a new key. The next seal hands over to it.
    pub async fn rotate(&self, context: &Context) -> Result<(), Failure> {
        self.app.secrets.signing_key_rotate(context, &key_name()?).await?;
        self.look().await
    }

    /// Takes delivery of what is new, and drops what is no longer needed.
    pub async fn look(&self) -> Result<(), Failure> {
        let (versions, settled) = needed(&self.app, &self.log_name).await?;
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).versions;
        if held != versions {
            let keys = deliver(&self.app, &self.log_name, versions).await?;
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Held { versions, keys };
        }
        match &self.publish_to {
            Some(path) if settled => publish(path, &format!("{}\n", self.keys().current.verifier())),
            _ => Ok(()),
        }
    }
}

impl KeySource for LogKeys {
    fn keys(&self) -> SealKeys {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).keys.clone()
    }

    fn renew(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.look().await.map_err(|failure| failure.to_string()) })
    }
}

/// The versions needed now, and whether the log is known by the newest.
async fn needed(app: &App, log_name: &str) -> Result<(Versions, bool), Failure> {
    let public = app.secrets.public_keys(&key_name()?).await?;
    let newest = public.first().ok_or_else(|| Failure::new("the audit log's signing key is gone"))?;
    let known = audit::newest_key(&app.db.internal("audit.key"))
        .await
        .map_err(|error| Failure::new(error.to_string()))?;
    let is = |key: &&PublicKey, known: &VerifierKey| {
        VerifierKey::new(log_name, key.public_key).is_ok_and(|key| key == *known)
    };
    let former = known.as_ref().and_then(|known| public.iter().find(|key| is(key, known)));
    let former = former.map(|key| key.version).filter(|version| *version != newest.version);
    let settled = known.as_ref().is_none_or(|known| is(&newest, known));
    Ok((Versions { current: newest.version, former }, settled))
}

async fn deliver(app: &App, log_name: &str, versions: Versions) -> Result<SealKeys, Failure> {
    let former = match versions.former {
        Some(version) => Some(signer(app, log_name, version).await?),
        None => None,
    };
    Ok(SealKeys { current: signer(app, log_name, versions.current).await?, former })
}

async fn signer(app: &App, log_name: &str, version: i32) -> Result<Arc<SignerKey>, Failure> {
    let context = Context::new(Actor::system(AUDIT_SEALER), app.db.make_id());
    let (name, purpose) = (key_name()?, key_purpose()?);
    let kept = app.secrets.signing_key_version(&context, &name, &purpose, Some(version)).await?;
    let key = SignerKey::from_seed(log_name, kept.seed.expose())
        .map_err(|error| Failure::new(format!("the audit log's key cannot be used: {error}")))?;
    Ok(Arc::new(key))
}

fn key_name() -> Result<Name, Failure> {
    Name::parse(KEY_NAME).map_err(|error| Failure::new(error.to_string()))
}

fn key_purpose() -> Result<Purpose, Failure> {
    Purpose::parse(KEY_PURPOSE).map_err(|error| Failure::new(error.to_string()))
}

/// The public half is written anew whenever it differs: it follows from the key and is not a secret.
fn publish(path: &Path, text: &str) -> Result<(), Failure> {
    if std::fs::read_to_string(path).is_ok_and(|kept| kept == text) {
        return Ok(());
    }
    let part = path.with_added_extension(format!("part-{}", std::process::id()));
    std::fs::write(&part, text)
        .and_then(|()| std::fs::set_permissions(&part, std::fs::Permissions::from_mode(READABLE)))
        .and_then(|()| std::fs::rename(&part, path))
        .map_err(|error| Failure::new(format!("the audit log's public key {}: {error}", path.display())))
}
