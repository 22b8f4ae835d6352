//! The product's roles. What they may do is written in the domains' policies.

use authz::{Level, RoleInfo};

pub const PLATFORM_OPERATOR: &str = "platform.operator";
pub const ORGANIZATION_OWNER: &str = "organization.owner";

/// All of them, in the order in which people read them. An organization's role reaches all of its projects.
pub static ROLES: &[RoleInfo] = &[
    platform(PLATFORM_OPERATOR, "Runs the platform"),
    platform("platform.finance", "Keeps the platform's books"),
    platform("platform.auditor", "Reads what happened on the platform"),
    platform("platform.support", "Helps tenants, with their consent"),
    organization(ORGANIZATION_OWNER, "Owns the organization", &["organization.admin"]),
    organization("organization.admin", "Runs the organization", &["organization.member", "project.admin"]),
    organization("organization.billing", "Looks after its money", &["organization.member"]),
    organization("organization.auditor", "Reads what happened in it", &["organization.member"]),
    organization("organization.member", "Belongs to it", &[]),
    project("project.admin", "Runs the project", &["project.developer"]),
    project("project.developer", "Works in the project", &["project.viewer"]),
    project("project.viewer", "Sees the project", &[]),
];

const fn platform(name: &'static str, title: &'static str) -> RoleInfo {
    RoleInfo { name, title, level: Level::Platform, includes: &[] }
}

const fn organization(
    name: &'static str,
    title: &'static str,
    includes: &'static [&'static str],
) -> RoleInfo {
    RoleInfo { name, title, level: Level::Organization, includes }
}

const fn project(name: &'static str, title: &'static str, includes: &'static [&'static str]) -> RoleInfo {
    RoleInfo { name, title, level: Level::Project, includes }
}

/// A role by its name.
pub fn role(name: &str) -> Option<&'static RoleInfo> {
    ROLES.iter().find(|role| role.name == name)
}
