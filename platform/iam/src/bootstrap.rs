//! What a new installation begins with: an operator, and on the embedded default the organization `demo` with its
//! project `default`, labelled as such.
//!
//! Everything here may run again on every start and changes nothing that is already there. It goes through the same
//! transaction as any request, as the system actor `bootstrap`, so the audit log begins with it.

use authz::{Actor, Context, Resource, authorize};
use db::Change;
use types::{Kind as _, Name, Result, Secret};

use crate::credentials::{CredentialKind, hash};
use crate::events::{KeyCreated, OperatorCreated};
use crate::model::*;
use crate::policy::{KeyCreate, OperatorCreate, SYSTEM_BOOTSTRAP};
use crate::roles::{ORGANIZATION_OWNER, PLATFORM_OPERATOR};
use crate::{Iam, store};

/// What is there after seeding.
#[derive(Debug, Clone, Copy)]
pub struct Seeded {
    pub operator: OperatorId,
    pub organization: OrganizationId,
    pub project: ProjectId,
}

/// Whose key to make.
#[derive(Debug, Clone, Copy)]
pub enum SeededKey {
    /// The platform's operator.
    Operator,
    /// The owner of an organization.
    Owner(OrganizationId),
}

impl Iam {
    /// The context bootstrap acts under.
    pub fn bootstrap_context(&self) -> Context {
        Context::new(Actor::system(SYSTEM_BOOTSTRAP), self.db.make_id())
    }

    /// Makes what is missing of operator, organization `demo` and project `default`.
    pub async fn seed(&self) -> Result<Seeded> {
        let operator = self.seed_operator().await?;
        let context = self.bootstrap_context();
        let labels = Labels::from([("gpuaas.demo".to_owned(), "true".to_owned())]);
        let (demo, default) = (fixed_name("demo")?, fixed_name("default")?);
        let internal = self.db.internal("iam.bootstrap");
        let organization = match internal.query_opt(store::ORGANIZATION_BY_NAME, &[&name_key(&demo)]).await? {
            Some(row) => OrganizationId::from_uuid(row.get(0)),
            None => self.organization_create(&context, demo, labels.clone()).await?.id,
        };
        let params: db::Params<'_> = &[organization.as_uuid(), &name_key(&default)];
        let project = match internal.query_opt(store::PROJECT_BY_NAME, params).await? {
            Some(row) => ProjectId::from_uuid(row.get(0)),
            None => self.project_create(&context, organization, default, labels).await?.id,
        };
        Ok(Seeded { operator, organization, project })
    }

    /// The first operator, made if there is none.
    pub async fn seed_operator(&self) -> Result<OperatorId> {
        let internal = self.db.internal("iam.bootstrap");
        if let Some(row) = internal.query_opt(store::OPERATOR_FIRST, &[]).await? {
            return Ok(OperatorId::from_uuid(row.get(0)));
        }
        let context = self.bootstrap_context();
        let permit =
            authorize::<OperatorCreate>(&*self.decider, &context, Resource::platform(OperatorKind::NAME))?;
        self.db
            .change(&context, permit, async |tx| {
                let operator: OperatorId = tx.make_id();
                let now = tx.now();
                tx.execute(store::OPERATOR_INSERT, &[operator.as_uuid(), &"operator", &now]).await?;
                let change = Change::new(<OperatorCreate as authz::Action>::NAME, operator, 1)
                    .event(&OperatorCreated { operator_id: operator });
                Ok(tx.record(change).with(operator))
            })
            .await
    }

    /// A one-time link for an operator, below the address the browser uses.
    pub async fn sign_in_link(&self, operator: OperatorId, url: &str) -> Result<String> {
        let code = self.sign_in_link_create(&self.bootstrap_context(), operator).await?;
        // After the '#': browsers keep it to themselves, so the code reaches no log and no proxy.
        Ok(format!("{url}/sign-in#{}", code.expose()))
    }

    /// Makes an API key for a file only the machine's owner can read.
    pub async fn seed_key(&self, whose: SeededKey, name: &str) -> Result<Secret> {
        let context = self.bootstrap_context();
        let (organization, role) = match whose {
            SeededKey::Operator => (None, PLATFORM_OPERATOR),
            SeededKey::Owner(id) => (Some(id), ORGANIZATION_OWNER),
        };
        let permit = authorize::<KeyCreate>(&*self.decider, &context, Resource::platform(KeyKind::NAME))?;
        let key = CredentialKind::ApiKey.make(&*self.entropy);
        let key_hash = hash(key.expose());
        self.db
            .change(&context, permit, async |tx| {
                let id: KeyId = tx.make_id();
                let now = tx.now();
                let params: db::Params<'_> =
                    &[id.as_uuid(), &organization.map(|org| *org.as_uuid()), &name, &role, &key_hash, &now];
                tx.execute(store::KEY_INSERT, params).await?;
                let mut change = Change::new(<KeyCreate as authz::Action>::NAME, id, 1).event(&KeyCreated {
                    key_id: id,
                    org_id: organization,
                    role: role.to_owned(),
                });
                if let Some(organization) = organization {
                    change = change.in_organization(organization.as_uuid());
                }
                Ok(tx.record(change))
            })
            .await?;
        Ok(key)
    }

    /// Does this key still open the door? A kept key file may be of an older database.
    pub async fn key_is_valid(&self, key: &Secret) -> Result<bool> {
        let params: db::Params<'_> = &[&hash(key.expose()), &self.db.now()];
        Ok(self.db.internal("iam.bootstrap").query_opt(store::KEY_FIND, params).await?.is_some())
    }
}

fn fixed_name(text: &'static str) -> Result<Name> {
    Name::parse(text).map_err(|error| types::Error::from(db::DbError::Unexpected(error.to_string())))
}
