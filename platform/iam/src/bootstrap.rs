//! What a new installation begins with: an operator, and on the embedded default the organization `demo`, which the
//! operator owns, with its project `default`, labelled as such.
//!
//! Everything here may run again on every start and changes nothing that is already there. It goes through the same
//! transaction as any request, as the system actor `bootstrap`, so the audit log begins with it.

use authz::{Actor, Context};
use types::{Name, Result, Secret};

use crate::credentials::hash;
use crate::grants::{GrantFilter, NewGrant};
use crate::keys::NewKey;
use crate::model::*;
use crate::policy::SYSTEM_BOOTSTRAP;
use crate::roles::{PLATFORM_OPERATOR, role};
use crate::{Iam, store};

/// What is there after seeding.
#[derive(Debug, Clone, Copy)]
pub struct Seeded {
    pub operator: PersonId,
    pub organization: OrganizationId,
    pub project: ProjectId,
}

/// Whose key to make.
#[derive(Debug, Clone, Copy)]
pub enum SeededKey {
    /// The platform's operator.
    Operator,
    /// The same, but only as far as it reaches in the organization, which it owns.
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
        self.seed_owner(organization, operator).await?;
        Ok(Seeded { operator, organization, project })
    }

    /// The first operator, made if there is none.
    pub async fn seed_operator(&self) -> Result<PersonId> {
        let internal = self.db.internal("iam.bootstrap");
        if let Some(row) = internal.query_opt(store::OPERATOR_FIRST, &[]).await? {
            return Ok(PersonId::from_uuid(row.get(0)));
        }
        let context = self.bootstrap_context();
        let person = self.person_create(&context, fixed_name("operator")?, None).await?;
        let role = role(PLATFORM_OPERATOR).ok_or_else(no_such_role)?;
        let new = NewGrant { person_id: person.id, role, org_id: None, project_id: None, expires_at: None };
        self.grant_create(&context, new).await?;
        Ok(person.id)
    }

    /// Makes the operator the owner of an organization that nobody holds anything in.
    async fn seed_owner(&self, organization: OrganizationId, operator: PersonId) -> Result<()> {
        let context = self.bootstrap_context();
        let anybody = GrantFilter { org_id: Some(organization), limit: 1, ..GrantFilter::default() };
        if self.grant_list(&context, &anybody).await?.items.is_empty() {
            self.owner_appoint(&context, organization, operator).await?;
        }
        Ok(())
    }

    /// A one-time link for somebody, below the address the browser uses.
    pub async fn sign_in_link(&self, person: PersonId, url: &str) -> Result<String> {
        let code = self.sign_in_link_create(&self.bootstrap_context(), person).await?;
        // After the '#': browsers keep it to themselves, so the code reaches no log and no proxy.
        Ok(format!("{url}/sign-in#{}", code.expose()))
    }

    /// Makes an API key of the operator, for a file only the machine's owner can read. It lasts until it is revoked.
    pub async fn seed_key(&self, whose: SeededKey, name: &str) -> Result<Secret> {
        let (person_id, org_id) = match whose {
            SeededKey::Operator => (self.seed_operator().await?, None),
            SeededKey::Owner(id) => {
                let operator = self.seed_operator().await?;
                self.seed_owner(id, operator).await?;
                (operator, Some(id))
            }
        };
        let name = Name::parse(name).map_err(|error| unexpected(&error))?;
        let new = NewKey { person_id, name, org_id, project_id: None, actions: None, expires_at: None };
        self.key_make(&self.bootstrap_context(), new).await.map(|(_, key)| key)
    }

    /// Does this key still open the door? A kept key file may be of an older database.
    pub async fn key_is_valid(&self, key: &Secret) -> Result<bool> {
        let params: db::Params<'_> = &[&hash(key.expose()), &self.db.now()];
        Ok(!self.db.internal("iam.bootstrap").query(store::KEY_FIND, params).await?.is_empty())
    }
}

fn fixed_name(text: &'static str) -> Result<Name> {
    Name::parse(text).map_err(|error| unexpected(&error))
}

fn no_such_role() -> types::Error {
    unexpected(&"one of the product's own roles is missing")
}

fn unexpected(why: &dyn std::fmt::Display) -> types::Error {
    types::Error::from(db::DbError::Unexpected(why.to_string()))
}
