//! What can be done with the audit log.

use authz::{Action, ActionInfo, ActorKind, Decider, Decision, Question};

/// Reading an organization's entries. Recorded under the same name when the reader is not of that organization.
pub struct EntryRead;
impl Action for EntryRead {
    const NAME: &'static str = "audit.entry.read";
    const TITLE: &'static str = "Read an organization's audit log";
}

/// Reading everybody's entries, and those that belong to no organization.
pub struct LogRead;
impl Action for LogRead {
    const NAME: &'static str = "audit.log.read";
    const TITLE: &'static str = "Read the audit log of the whole platform";
}

/// Taking the whole log out. There is no request for it: only the machine's owner can.
pub struct LogExport;
impl Action for LogExport {
    const NAME: &'static str = "audit.log.export";
    const TITLE: &'static str = "Export the whole audit log";
}

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
