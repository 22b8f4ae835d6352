//! What can be done with the audit log.

use authz::{Action as _, ActionInfo, ActorKind, Decider, Decision, Question, action};

action!(
    /// Reading an organization's entries. Recorded under the same name when the reader is not of that organization.
    EntryRead,
    "audit.entry.read",
    "Read an organization's audit log"
);

action!(
    /// Reading everybody's entries, and those that belong to no organization.
    LogRead,
    "audit.log.read",
    "Read the audit log of the whole platform"
);

action!(
    /// Taking the whole log out. There is no request for it: only the machine's owner can.
    LogExport,
    "audit.log.export",
    "Export the whole audit log"
);

pub fn actions() -> Vec<ActionInfo> {
    vec![ActionInfo::of::<EntryRead>(), ActionInfo::of::<LogRead>(), ActionInfo::of::<LogExport>()]
}

/// The name the export command acts under.
pub(crate) const SYSTEM_EXPORT: &str = "audit.export";

/// Decides for the command line: whoever can read the installation's password file may export, and do nothing else.
pub(crate) struct MachineOwner;

impl Decider for MachineOwner {
    fn decide(&self, question: &Question<'_>) -> Decision {
        let exporter =
            question.actor.kind() == ActorKind::System && question.actor.subject.id == SYSTEM_EXPORT;
        if exporter && question.action == LogExport::NAME {
            Decision::Allow { policy_version: RULE_VERSION }
        } else {
            Decision::Deny
        }
    }
}

const RULE_VERSION: u64 = 1;
