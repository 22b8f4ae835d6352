//! What can be done with people: they are made, seen, and listed as members of an organization.

use authz::{Context, Resource, authorize};
use db::Change;
use domain::{page, page_start};
use types::{Kind as _, Name, Result};
use web::Page;

use crate::events::PersonCreated;
use crate::model::*;
use crate::policy::*;
use crate::{Iam, store};

impl Iam {
    /// Somebody new, who holds nothing yet.
    pub async fn person_create(
        &self,
        context: &Context,
        name: Name,
        email: Option<String>,
    ) -> Result<Person> {
        let resource = Resource::platform(PersonKind::NAME);
        let permit = authorize::<PersonCreate>(&*self.decider, context, resource)?;
        self.db
            .change(context, permit, async |tx| {
                let now = tx.now();
                let person = Person {
                    id: tx.make_id(),
                    name,
                    email,
                    state: PersonState::Active,
                    state_since: now,
                    generation: 1,
                    created_at: now,
                    updated_at: now,
                };
                let params: db::Params<'_> =
                    &[person.id.as_uuid(), &person.name.as_str(), &person.email, &now];
                tx.execute(store::PERSON_INSERT, params).await?;
                let facts = PersonFacts::from(&person);
                let change = Change::new(<PersonCreate as authz::Action>::NAME, person.id, 1)
                    .after(&facts)
                    .event(&PersonCreated { person: &facts });
                Ok(tx.record(change).with(person))
            })
            .await
    }

    pub async fn person_get(&self, context: &Context, id: PersonId) -> Result<Person> {
        let resource = Resource { id: Some(*id.as_uuid()), ..Resource::platform(PersonKind::NAME) };
        let permit = authorize::<PersonRead>(&*self.decider, context, resource)?;
        let row = self.db.read(&permit).query_opt(store::PERSON_GET, &[id.as_uuid()]).await?;
        store::person(&row.ok_or_else(|| not_found(PersonKind::NAME))?)
    }

    pub async fn person_list(
        &self,
        context: &Context,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<Person>> {
        let resource = Resource::platform(PersonKind::NAME);
        let permit = authorize::<PersonList>(&*self.decider, context, resource)?;
        let after = page_start::<PersonKind>(cursor, PEOPLE)?;
        let rows =
            self.db.read(&permit).query(store::PERSON_LIST, &[&after, &(i64::from(limit) + 1)]).await?;
        let items: Vec<Person> = rows.iter().map(store::person).collect::<Result<_>>()?;
        Ok(page(items, limit, PEOPLE, |person| person.id.to_string()))
    }

    /// Everybody who holds something in the organization.
    pub async fn member_list(
        &self,
        context: &Context,
        org_id: OrganizationId,
        limit: u32,
        cursor: Option<&str>,
    ) -> Result<Page<Person>> {
        let resource = Resource::in_organization("member", *org_id.as_uuid(), None);
        let permit = authorize::<MemberList>(&*self.decider, context, resource)?;
        let query = format!("members?org={org_id}");
        let after = page_start::<PersonKind>(cursor, &query)?;
        let reader = self.db.read(&permit);
        let params: db::Params<'_> = &[org_id.as_uuid(), &after, &self.db.now(), &(i64::from(limit) + 1)];
        let rows = reader.query(store::MEMBER_LIST, params).await?;
        if rows.is_empty() && reader.query_opt(store::ORGANIZATION_GET, &[org_id.as_uuid()]).await?.is_none()
        {
            return Err(not_found(OrganizationKind::NAME));
        }
        let items: Vec<Person> = rows.iter().map(store::person).collect::<Result<_>>()?;
        Ok(page(items, limit, &query, |person| person.id.to_string()))
    }
}

/// The listing a cursor belongs to.
const PEOPLE: &str = "people";
