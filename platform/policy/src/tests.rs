//! The decider on a toy domain with two tenants.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::{Arc, LazyLock};

use authz::{
    ActionInfo, Actor, ActorKind, Decider as _, Decision, DomainPolicy, Grant, Level, Place, Question,
    Resource, Role, RoleInfo, Standing, action,
};
use proptest::prelude::*;
use uuid::Uuid;

use crate::{Policies, PolicyFault};

action!(ShelfPut, "toy.shelf.put", "Put something on the shelf");
action!(ShelfBurn, "toy.shelf.burn", "Burn the shelf");
action!(BookList, "toy.book.list", "List books");

static ROLES: &[RoleInfo] = &[
    RoleInfo { name: "platform.operator", title: "", level: Level::Platform, includes: &[] },
    RoleInfo {
        name: "organization.owner",
        title: "",
        level: Level::Organization,
        includes: &["organization.admin"],
    },
    RoleInfo {
        name: "organization.admin",
        title: "",
        level: Level::Organization,
        includes: &["project.viewer"],
    },
    RoleInfo { name: "project.viewer", title: "", level: Level::Project, includes: &[] },
];

const SCHEMA: &str = r#"
    entity Shelf, BookList;
    action "toy.shelf.put", "toy.shelf.burn"
        appliesTo { principal: [User, Agent, Worker], resource: [Shelf], context: Asked };
    action "toy.book.list" appliesTo { principal: [User, Worker], resource: [BookList], context: Asked };
"#;
const POLICIES: &str = r#"
    @id("toy.admins") @says("Admins fill the shelf.")
    permit (principal in Role::"organization.admin", action == Action::"toy.shelf.put", resource);
    @id("toy.owners")
    permit (principal in Role::"organization.owner", action == Action::"toy.shelf.burn", resource);
    @id("toy.viewers")
    permit (principal in Role::"project.viewer", action == Action::"toy.book.list", resource);
    @id("toy.worker")
    permit (principal == Worker::"toy.keeper", action == Action::"toy.shelf.put", resource);
"#;

fn toy() -> Vec<ActionInfo> {
    vec![ActionInfo::of::<ShelfPut>(), ActionInfo::of::<ShelfBurn>(), ActionInfo::of::<BookList>()]
}

const TOY: DomainPolicy = DomainPolicy { schema: SCHEMA, policies: POLICIES, actions: toy };
const ACME: Uuid = Uuid::from_u128(1);
const RIVAL: Uuid = Uuid::from_u128(2);
const PROJECT: Uuid = Uuid::from_u128(11);
const SIBLING: Uuid = Uuid::from_u128(12);

fn policies() -> &'static Policies {
    static COMPILED: LazyLock<Policies> = LazyLock::new(|| Policies::compile(&[TOY], ROLES).unwrap());
    &COMPILED
}

fn compile(schema: &'static str, policies: &'static str) -> Result<Policies, PolicyFault> {
    Policies::compile(&[TOY, DomainPolicy { schema, policies, actions: Vec::new }], ROLES)
}

fn decide(policies: &Policies, standing: &Standing, action: &'static str, resource: &Resource) -> Decision {
    let actor = Actor::new(ActorKind::User, "usr_test");
    policies.decide(&Question { actor: &actor, standing, action, resource })
}

fn is_allowed(policies: &Policies, standing: &Standing, action: &'static str, resource: &Resource) -> bool {
    matches!(decide(policies, standing, action, resource), Decision::Allow { .. })
}

fn shelf(organization: Uuid) -> Resource {
    Resource::in_organization("shelf", organization, Some(Uuid::nil()))
}

fn books(project: Uuid) -> Resource {
    Resource::in_project("book", ACME, project, None)
}

#[test]
fn a_role_holds_where_it_was_given_and_nowhere_else() {
    let policies = policies();
    let admin = Standing::of([Grant::fixed(Place::Organization(ACME), "organization.admin")]);
    assert!(is_allowed(policies, &admin, "toy.shelf.put", &shelf(ACME)));
    assert_eq!(decide(policies, &admin, "toy.shelf.put", &shelf(RIVAL)), Decision::Conceal);
    assert_eq!(decide(policies, &admin, "toy.shelf.burn", &shelf(ACME)), Decision::Deny);
    assert!(
        is_allowed(policies, &admin, "toy.book.list", &books(PROJECT)),
        "an organization's role reaches its projects"
    );

    let place = Place::Project { organization: ACME, project: PROJECT };
    let viewer = Standing::of([Grant::fixed(place, "project.viewer")]);
    assert!(is_allowed(policies, &viewer, "toy.book.list", &books(PROJECT)));
    assert_eq!(decide(policies, &viewer, "toy.book.list", &books(SIBLING)), Decision::Deny);
    let foreign = Resource::in_project("book", RIVAL, PROJECT, None);
    assert_eq!(
        decide(policies, &viewer, "toy.book.list", &foreign),
        Decision::Conceal,
        "the id of a project is not enough"
    );
}

#[test]
fn a_role_includes_others() {
    let policies = policies();
    let owner = Standing::of([Grant::fixed(Place::Organization(ACME), "organization.owner")]);
    for action in ["toy.shelf.put", "toy.shelf.burn"] {
        assert!(is_allowed(policies, &owner, action, &shelf(ACME)));
    }
    assert!(is_allowed(policies, &owner, "toy.book.list", &books(PROJECT)));
}

#[test]
fn a_tenants_own_role_gives_no_more_than_its_bound() {
    let policies = policies();
    let actions = ["toy.shelf.put", "toy.shelf.burn", "no.such.action"].map(str::to_owned);
    let role = Role::Custom(Arc::from(actions));
    let holder = Standing::of([Grant { place: Place::Organization(ACME), role }]);
    assert!(is_allowed(policies, &holder, "toy.shelf.put", &shelf(ACME)));
    assert_eq!(
        decide(policies, &holder, "toy.shelf.burn", &shelf(ACME)),
        Decision::Deny,
        "an admin could not"
    );
    assert_eq!(decide(policies, &holder, "no.such.action", &shelf(ACME)), Decision::Deny);
    assert_eq!(decide(policies, &holder, "toy.shelf.put", &shelf(RIVAL)), Decision::Conceal);
    let custom: Vec<_> =
        policies.matrix().into_iter().filter(|row| row.custom).map(|row| row.action.name).collect();
    assert_eq!(custom, ["toy.book.list", "toy.shelf.put"]);
}

#[test]
fn a_credential_goes_no_further_than_its_scope() {
    let policies = policies();
    let mut owner = Standing::of([Grant::fixed(Place::Organization(ACME), "organization.owner")]);
    owner.only = Some(Arc::from(["toy.book.list".to_owned()]));
    assert!(is_allowed(policies, &owner, "toy.book.list", &books(PROJECT)));
    assert_eq!(decide(policies, &owner, "toy.shelf.put", &shelf(ACME)), Decision::Deny);
    let question = |resource| {
        let actor = Actor::new(ActorKind::User, "usr_test");
        policies.explain(&Question { actor: &actor, standing: &owner, action: "toy.shelf.put", resource })
    };
    assert_eq!(question(&shelf(ACME)).reasons[0].policy, "credential-scope");
}

#[test]
fn a_decision_is_explained_by_the_policies_that_made_it() {
    let policies = policies();
    let actor = Actor::new(ActorKind::User, "usr_test");
    let standing = Standing::of([
        Grant::fixed(Place::Organization(ACME), "organization.admin"),
        Grant::fixed(Place::Organization(RIVAL), "organization.owner"),
    ]);
    let explain = |action, resource: &Resource| {
        policies.explain(&Question { actor: &actor, standing: &standing, action, resource })
    };
    let yes = explain("toy.shelf.put", &shelf(ACME));
    assert_eq!((yes.roles.as_slice(), yes.custom_role), (&["organization.admin"][..], false));
    assert_eq!(
        (yes.reasons[0].policy.as_str(), yes.reasons[0].says.as_str()),
        ("toy.admins", "Admins fill the shelf.")
    );
    let no = explain("toy.shelf.burn", &shelf(ACME));
    assert_eq!((no.decision, no.reasons.len()), (Decision::Deny, 0));
}

#[test]
fn workers_are_known_by_name_and_hold_no_role() {
    let policies = policies();
    let standing = Standing::of([Grant::fixed(Place::Platform, "organization.owner")]);
    let ask = |name: &str, action| {
        let actor = Actor::system(name);
        policies.decide(&Question { actor: &actor, standing: &standing, action, resource: &shelf(ACME) })
    };
    assert!(matches!(ask("toy.keeper", "toy.shelf.put"), Decision::Allow { .. }));
    assert_eq!(ask("toy.stranger", "toy.shelf.put"), Decision::Deny);
    assert_eq!(ask("toy.keeper", "toy.shelf.burn"), Decision::Deny, "a worker's standing counts for nothing");
}

#[test]
fn what_does_not_fit_the_schema_is_refused() {
    let policies = policies();
    let owner = Standing::of([Grant::fixed(Place::Platform, "organization.owner")]);
    assert!(is_allowed(policies, &owner, "toy.shelf.put", &shelf(ACME)));
    let list = Resource::in_organization("shelf", ACME, None);
    assert_eq!(decide(policies, &owner, "toy.shelf.put", &list), Decision::Deny, "the list is another thing");
    let other = Resource::in_organization("book", ACME, Some(Uuid::nil()));
    assert_eq!(decide(policies, &owner, "toy.shelf.put", &other), Decision::Deny);
    let actor = Actor::anonymous();
    let question =
        Question { actor: &actor, standing: &owner, action: "toy.shelf.put", resource: &shelf(ACME) };
    assert_eq!(policies.decide(&question), Decision::Deny);
}

#[test]
fn faults_in_the_policies_are_found() {
    policies().check().unwrap();
    let fault = |schema, text| {
        compile(schema, text).and_then(|policies| policies.check()).expect_err("is wrong").to_string()
    };
    let misspelt = r#"@id("x") permit (principal, action == Action::"toy.shelf.putt", resource);"#;
    // A policy about no action is in no slice; naming one that does not exist must not pass unseen.
    assert!(fault("", misspelt).contains("toy.shelf.putt"), "{}", fault("", misspelt));
    let role = r#"@id("x") permit (principal in Role::"toy.king", action, resource);"#;
    assert!(fault("", role).contains("toy.king"));
    let unnamed = r#"permit (principal, action == Action::"toy.shelf.put", resource);"#;
    assert!(fault("", unnamed).contains("@id"));
    let doubled = r#"@id("toy.admins") permit (principal, action, resource);"#;
    assert!(fault("", doubled).contains("toy.admins"));
    let attribute = r#"@id("x") permit (principal, action, resource) when { context.strong };"#;
    assert!(fault("", attribute).contains("strong"));
    let undeclared =
        r#"action "toy.shelf.paint" appliesTo { principal: [User], resource: [Shelf], context: Asked };"#;
    assert!(fault(undeclared, "").contains("toy.shelf.paint"));
    assert!(fault("entity", "").contains("schema"));
    assert!(fault("", "permit (").contains("cannot be read"));
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::Platform),
        prop_oneof![Just(ACME), Just(RIVAL)].prop_map(Place::Organization),
        (prop_oneof![Just(ACME), Just(RIVAL)], prop_oneof![Just(PROJECT), Just(SIBLING)])
            .prop_map(|(organization, project)| Place::Project { organization, project }),
    ]
}

fn grant() -> impl Strategy<Value = Grant> {
    (place(), 0..ROLES.len() + 1).prop_map(|(place, role)| match ROLES.get(role) {
        Some(role) => Grant::fixed(place, role.name),
        None => Grant { place, role: Role::Custom(Arc::from(["toy.shelf.put".to_owned()])) },
    })
}

proptest! {
    /// What is held elsewhere changes nothing here, and no order or repetition matters.
    #[test]
    fn only_what_reaches_the_resource_counts(grants in prop::collection::vec(grant(), 0..6), which in 0..3usize) {
        let policies = policies();
        let action = ["toy.shelf.put", "toy.shelf.burn", "toy.book.list"][which];
        let resource = if which == 2 { books(PROJECT) } else { shelf(ACME) };
        let all = Standing::of(grants.clone());
        let here = Standing::of(grants.iter().rev().filter(|grant| grant.place.reaches(&resource)).cloned());
        prop_assert_eq!(is_allowed(policies, &all, action, &resource), is_allowed(policies, &here, action, &resource));
        // Asked again, now from what is remembered.
        prop_assert_eq!(decide(policies, &all, action, &resource), decide(policies, &all, action, &resource));
        if all.grants.iter().all(|grant| grant.place.organization() == Some(RIVAL)) {
            prop_assert_eq!(decide(policies, &all, action, &resource), Decision::Conceal);
        }
    }
}
