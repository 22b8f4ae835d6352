//! Everything the policies allow, for people to review.

use authz::{ActionInfo, ActorKind};

use crate::decide::{Asker, Policies};

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
        let mut rows = Vec::new();
        for slice in self.actions() {
            let types = self.schema().resources_for_action(&slice.uid).into_iter().flatten();
            let mut types: Vec<String> = types.map(ToString::to_string).collect();
            types.sort_unstable();
            rows.extend(types.into_iter().map(|resource| self.row(slice.action, resource)));
        }
        rows
    }

    /// The actions a role may do on something.
    pub(crate) fn actions_of(&self, role: &str) -> Vec<&'static str> {
        let rows = self.matrix().into_iter().filter(|row| row.roles.contains(&role));
        let mut names: Vec<&'static str> = rows.map(|row| row.action.name).collect();
        names.dedup();
        names
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
