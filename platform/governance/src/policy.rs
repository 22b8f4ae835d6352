//! What can be done here. Who may is written in `policy.cedar`.
//!
//! The settings of a place are one thing to ask about, whichever of them is meant: a role that may set one of an
//! organization's may set all that an organization can have.

use authz::{ActionInfo, DomainPolicy, action};

action!(SettingRead, "governance.setting.read", "Read settings, with where their values come from");
action!(SettingSet, "governance.setting.set", "Set a setting");
action!(SettingClear, "governance.setting.clear", "Take a setting back, so that the value outside holds");

/// Who may do what.
pub const POLICY: DomainPolicy = DomainPolicy {
    schema: include_str!("policy.cedarschema"),
    policies: include_str!("policy.cedar"),
    actions,
};

fn actions() -> Vec<ActionInfo> {
    vec![ActionInfo::of::<SettingRead>(), ActionInfo::of::<SettingSet>(), ActionInfo::of::<SettingClear>()]
}
