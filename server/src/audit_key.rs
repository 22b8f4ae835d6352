//! The audit log's signing key: kept by the secrets domain, its public half in a file for everybody.
//!
//! Made once, by the first sealer that starts. Losing it is serious: a new key cannot continue the log, because every
//! checkpoint kept elsewhere names the old one. The sealer refuses a key the log is not known by and says so.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use audit::SealKey;
use authz::{Actor, Context};
use merkle::SignerKey;
use secrets::Purpose;
use types::Name;

use crate::Failure;
use crate::assemble::{AUDIT_SEALER, App};

const KEY_NAME: &str = "audit log";
const KEY_PURPOSE: &str = "audit.checkpoints";
const READABLE: u32 = 0o644;

/// The log's key, made if there is none. Its delivery is recorded like any other secret's.
pub async fn open(app: &App, log_name: &str, publish_to: Option<&Path>) -> Result<SealKey, Failure> {
    let context = Context::new(Actor::system(AUDIT_SEALER), app.db.make_id());
    let name = Name::parse(KEY_NAME).map_err(|error| Failure::new(error.to_string()))?;
    let purpose = Purpose::parse(KEY_PURPOSE).map_err(|error| Failure::new(error.to_string()))?;
    app.secrets.ensure_signing_key(&context, &name, &purpose).await?;
    let kept = app.secrets.signing_key(&context, &name, &purpose).await?;
    let key = SignerKey::from_seed(log_name, kept.seed.expose())
        .map_err(|error| Failure::new(format!("the audit log's key cannot be used: {error}")))?;
    if let Some(path) = publish_to {
        publish(path, &format!("{}\n", key.verifier()))?;
    }
    let key = Arc::new(key);
    Ok(Arc::new(move || Arc::clone(&key)))
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
