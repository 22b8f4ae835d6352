//! What a caller holds: roles, and where they hold.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::permit::Resource;

/// Where a role holds: everywhere, in one organization with all its projects, or in one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    Platform,
    Organization(Uuid),
    Project { organization: Uuid, project: Uuid },
}

impl Place {
    /// The innermost place that is named.
    pub const fn new(organization: Option<Uuid>, project: Option<Uuid>) -> Self {
        match (organization, project) {
            (None, _) => Self::Platform,
            (Some(organization), None) => Self::Organization(organization),
            (Some(organization), Some(project)) => Self::Project { organization, project },
        }
    }

    /// The project it is, if it is one.
    pub const fn project(&self) -> Option<Uuid> {
        match self {
            Self::Platform | Self::Organization(_) => None,
            Self::Project { project, .. } => Some(*project),
        }
    }

    /// What kind of place it is.
    pub const fn level(&self) -> Level {
        match self {
            Self::Platform => Level::Platform,
            Self::Organization(_) => Level::Organization,
            Self::Project { .. } => Level::Project,
        }
    }

    /// Itself and the places it lies in, from the outside inward.
    pub fn from_outside(self) -> impl Iterator<Item = Self> {
        let organization = self.organization().map(Self::Organization);
        let project = matches!(self, Self::Project { .. }).then_some(self);
        std::iter::once(Self::Platform).chain(organization).chain(project)
    }

    /// The organization it lies in, if it does.
    pub const fn organization(&self) -> Option<Uuid> {
        match self {
            Self::Platform => None,
            Self::Organization(organization) | Self::Project { organization, .. } => Some(*organization),
        }
    }

    /// Does what is held here hold for the resource?
    pub fn reaches(&self, resource: &Resource) -> bool {
        match self {
            Self::Platform => true,
            Self::Organization(organization) => resource.organization == Some(*organization),
            Self::Project { organization, project } => {
                resource.organization == Some(*organization) && resource.project == Some(*project)
            }
        }
    }
}

/// What somebody may do at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// One of the product's own, by name: the policies say what it gives.
    Fixed(&'static str),
    /// Composed by a tenant: the names of the actions it gives. No policy gives more than a tenant may pass on.
    Custom(Arc<[String]>),
}

/// A role at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub place: Place,
    pub role: Role,
}

impl Grant {
    pub const fn fixed(place: Place, role: &'static str) -> Self {
        Self { place, role: Role::Fixed(role) }
    }
}

/// Everything a caller holds, found out when it was identified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    pub grants: Vec<Grant>,
    /// The only actions the credential may be used for, whatever its owner may do: a key's scopes, an agent's mandate.
    pub only: Option<Arc<[String]>>,
    /// The only place the credential reaches. `grants` holds nothing beyond it.
    pub within: Option<Place>,
}

impl Standing {
    pub fn of(grants: impl IntoIterator<Item = Grant>) -> Self {
        Self { grants: grants.into_iter().collect(), ..Self::default() }
    }

    /// What is left of it for a credential that reaches one place only. A role in an organization is narrowed to the
    /// project; roles on the platform hold nowhere in particular, and are left out.
    #[must_use]
    pub fn within(mut self, place: Place) -> Self {
        let Some(organization) = place.organization() else { return self };
        self.grants.retain(|grant| match (grant.place, place) {
            (Place::Project { .. }, Place::Project { .. }) => grant.place == place,
            (held, _) => held.organization() == Some(organization),
        });
        if matches!(place, Place::Project { .. }) {
            self.grants.iter_mut().for_each(|grant| grant.place = place);
        }
        self.within = Some(place);
        self
    }

    /// The organization it belongs to, if that is one and it is not the platform's.
    pub fn home(&self) -> Option<Uuid> {
        let first = self.grants.first()?.place.organization()?;
        let elsewhere = |grant: &Grant| grant.place.organization() != Some(first);
        (!self.grants.iter().any(elsewhere)).then_some(first)
    }

    /// The organizations it holds something in, each once.
    pub fn organizations(&self) -> Vec<Uuid> {
        let mut all: Vec<Uuid> = self.grants.iter().filter_map(|grant| grant.place.organization()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Does it hold something in the organization itself, not only as one of the platform's?
    pub fn belongs_to(&self, organization: Uuid) -> bool {
        self.grants.iter().any(|grant| grant.place.organization() == Some(organization))
    }

    /// Does it hold something on the platform itself?
    pub fn is_of_platform(&self) -> bool {
        self.grants.iter().any(|grant| grant.place == Place::Platform)
    }

    /// May it know that the resource's organization exists?
    pub fn may_see(&self, resource: &Resource) -> bool {
        match resource.organization {
            None => true,
            Some(organization) => {
                self.belongs_to(organization)
                    || self.grants.iter().any(|grant| grant.place == Place::Platform)
            }
        }
    }

    /// Is the action outside of what the credential may be used for?
    pub fn is_beyond(&self, action: &str) -> bool {
        self.only.as_ref().is_some_and(|only| !only.iter().any(|allowed| allowed == action))
    }
}

/// What kind of place a role is given at, or a setting is set at. What lies in another is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Platform,
    Organization,
    Project,
}

/// One of the product's own roles.
#[derive(Debug, Clone, Copy)]
pub struct RoleInfo {
    pub name: &'static str,
    pub title: &'static str,
    pub level: Level,
    /// Roles whose rights it has as well.
    pub includes: &'static [&'static str],
}
