//! What can be done with the audit log. Who may is written in `policy.cedar`.

use authz::{ActionInfo, DomainPolicy, action};

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

/// Who may do what with the audit log.
pub const POLICY: DomainPolicy = DomainPolicy {
    schema: include_str!("policy.cedarschema"),
    policies: include_str!("policy.cedar"),
    actions,
};

fn actions() -> Vec<ActionInfo> {
    vec![ActionInfo::of::<EntryRead>(), ActionInfo::of::<LogRead>(), ActionInfo::of::<LogExport>()]
}

/// The name the export command acts under.
pub(crate) const SYSTEM_EXPORT: &str = "audit.export";
