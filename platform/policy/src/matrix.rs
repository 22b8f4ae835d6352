//! Everything the policies allow, for people to review.

use authz::{ActionInfo, ActorKind};

use crate::decide::{Asker, Policies, Slice};

/// One action on one type of resource, and who may do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixRow {
    pub action: ActionInfo,
    /// The resource's type in Cedar.
    pub resource: String,
    /// May everybody who has signed in?
    pub anyone: bool,
    /// The roles that may, in the order in which roles are declared.
    pub roles: Vec<&'static str>,
    /// Those of our own workers that may.
    pub workers: Vec<String>,
    /// May a tenant's own role contain it?
    pub custom: bool,
}

impl Policies {
    /// Asks every action on every type of resource it applies to, as every role and every worker.
    pub fn matrix(&self) -> Vec<MatrixRow> {
        let every = self.actions().into_iter().flat_map(|slice| {
            self.resource_types(slice).into_iter().map(|resource| self.row(slice.action, resource))
        });
        every.collect()
    }

    /// The actions a role may do on something.
    pub(crate) fn actions_of(&self, role: &str) -> Vec<&'static str> {
        let holder = Asker { roles: self.bit(role), ..Asker::nobody_special(ActorKind::User) };
        let may = |slice: &&Slice| {
            let types = self.resource_types(slice);
            types.iter().any(|resource| self.is_allowed_now(slice.action.name, resource, &holder))
        };
        self.actions().into_iter().filter(may).map(|slice| slice.action.name).collect()
    }

    fn resource_types(&self, slice: &Slice) -> Vec<String> {
        let types = self.schema().resources_for_action(&slice.uid).into_iter().flatten();
        let mut types: Vec<String> = types.map(ToString::to_string).collect();
        types.sort_unstable();
        types
    }

    fn row(&self, action: ActionInfo, resource: String) -> MatrixRow {
        let may = |asker: Asker| self.is_allowed_now(action.name, &resource, &asker);
        let person = || Asker::nobody_special(ActorKind::User);
        let worker =
            |name: &String| Asker { worker: Some(name.clone()), ..Asker::nobody_special(ActorKind::System) };
        let roles = self.roles.iter().map(|role| role.name);
        MatrixRow {
            action,
            anyone: may(person()),
            roles: roles.filter(|role| may(Asker { roles: self.bit(role), ..person() })).collect(),
            workers: self.workers.iter().filter(|name| may(worker(name))).cloned().collect(),
            custom: may(Asker { permission: true, ..person() }),
            resource,
        }
    }
}
