//! How a version of a secret is sealed and opened: the envelope, and what it is bound to.

use types::{Error, Secret};
use uuid::Uuid;

use crate::Secrets;
use crate::cipher;
use crate::key_encryption::Wrapped;
use crate::model::{Material, Purpose, SECRET_UNREADABLE, SecretId, SecretInfo};

/// Everything a ciphertext belongs to. It is not stored with it but taken from the row that claims it, so a ciphertext
/// that was copied to another row, or whose row was relabelled, does not open.
pub(crate) struct Binding<'a> {
    pub secret: SecretId,
    pub version: i32,
    pub material: Material,
    pub purpose: &'a Purpose,
    pub organization: Option<Uuid>,
    pub project: Option<Uuid>,
}

impl<'a> Binding<'a> {
    pub(crate) fn of(info: &'a SecretInfo, version: i32) -> Self {
        Self {
            secret: info.id,
            version,
            material: info.material,
            purpose: &info.purpose,
            organization: info.org_id.map(|id| *id.as_uuid()),
            project: info.project_id.map(|id| *id.as_uuid()),
        }
    }

    /// Fixed widths, and the one variable part last: no two bindings have the same bytes.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"gpuaas secret 1\0".to_vec();
        bytes.extend(self.secret.as_uuid().as_bytes());
        bytes.extend(self.version.to_be_bytes());
        bytes.push(match self.material {
            Material::Value => 1,
            Material::SigningKey => 2,
        });
        for id in [self.organization, self.project] {
            bytes.push(u8::from(id.is_some()));
            bytes.extend(id.unwrap_or_default().as_bytes());
        }
        bytes.extend(self.purpose.as_str().as_bytes());
        bytes
    }
}

/// A version of a secret as it is stored.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub version: i32,
    pub sealed: Vec<u8>,
    pub wrapped: Wrapped,
}

impl Secrets {
    /// Seals a value with a data key made for it. Asks the key service, so never inside a transaction.
    pub(crate) async fn seal(&self, binding: &Binding<'_>, plaintext: &[u8]) -> types::Result<Sealed> {
        let (data_key, wrapped) = self.keys.make_data_key(&*self.entropy).await?;
        let sealed = cipher::seal(&data_key, &*self.entropy, &binding.bytes(), plaintext)
            .map_err(|error| unreadable(binding, error))?;
        Ok(Sealed { version: binding.version, sealed, wrapped })
    }

    pub(crate) async fn open(
        &self,
        binding: &Binding<'_>,
        stored: &Sealed,
    ) -> types::Result<Secret<Vec<u8>>> {
        let data_key = self.keys.unwrap(&stored.wrapped).await?;
        cipher::open(&data_key, &binding.bytes(), &stored.sealed).map_err(|error| unreadable(binding, error))
    }
}

fn unreadable(binding: &Binding<'_>, error: cipher::DoesNotOpen) -> Error {
    let (secret, version) = (binding.secret, binding.version);
    SECRET_UNREADABLE
        .error(format!("version {version} of {secret} does not open"))
        .with_details(serde_json::json!({"secret_id": secret, "version": version}))
        .caused_by(error)
}
