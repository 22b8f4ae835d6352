//! Routes: declared in `http.rs`, by the domain that owns them, below the tenant they belong to, and never with a
//! secret in the URL.
//!
//! URLs are kept by proxies, browsers and access logs, so a credential in one is published. The tenant comes first in
//! the path because authorization and rate limits are decided before a handler looks at anything else.

use super::Family;
use crate::guard::architecture::is_under;
use crate::guard::finding::{Ban, Finding};
use crate::guard::project::{File, Project};
use crate::guard::rust::{Kind, RustSource};

pub const FAMILY: Family =
    Family { bans: &[&ROUTE_PLACE, &ROUTE_OWNER, &ROUTE_TENANT, &ROUTE_NODE, &ROUTE_SECRET], check };

static ROUTE_PLACE: Ban = Ban::new(
    "route-place",
    "routes in one file per domain are the domain's table of contents; elsewhere they escape the endpoint registry",
    "declare the endpoint in the domain's http.rs; inside the program call the domain's facade instead of its URL",
);

static ROUTE_OWNER: Ban = Ban::new(
    "route-owner",
    "two domains under one prefix cannot change their part of the API alone",
    "use a prefix the domain owns, or claim a longer prefix for it under [domains] in architecture.toml",
);

static ROUTE_TENANT: Ban = Ban::new(
    "route-tenant",
    "the tenant in the path is what authorization, limits and audit go by",
    "put it under /api/v1/orgs/{org_id}/… or /api/v1/projects/{project_id}/…; a route of the platform itself is an exception with a reason",
);

static ROUTE_NODE: Ban = Ban::new(
    "route-node",
    "what is under /node/v1 trusts the client certificate, so it may exist only behind the listener that checks it",
    "declare it in the file of the mTLS listener that architecture.toml lists",
);

static ROUTE_SECRET: Ban = Ban::absolute(
    "route-secret",
    "URLs end up in proxies, histories and access logs: a secret in one is published",
    "send it in a header or in the body",
);

const TENANT_PREFIXES: &[&str] = &["/api/v1/orgs/{org_id}", "/api/v1/projects/{project_id}"];
const FAMILIES: &[&str] = &["/api/v1", "/node/v1", "/v1", "/internal"];
const SECRET_NAMES: &[&str] = &["token", "key", "secret", "password"];

fn check(project: &Project, findings: &mut Vec<Finding>) {
    for (file, source) in project.rust() {
        for (index, text) in source.strings() {
            let route = text.split(['?', ' ']).next().unwrap_or(text);
            if FAMILIES.iter().any(|family| is_under(route, family)) {
                check_route(project, file, source.line(index), route, findings);
                check_secrets(file, source.line(index), text, findings);
            }
        }
        check_query_fields(file, source, findings);
    }
}

fn check_route(project: &Project, file: &File, line: usize, route: &str, findings: &mut Vec<Finding>) {
    let mut report = |ban: &'static Ban, what: String| findings.push(ban.at(&file.path, line, route, what));
    if is_under(route, "/node/v1") {
        report(&ROUTE_NODE, format!("route {route} outside of the mTLS listener"));
        return;
    }
    if !is_under(route, "/api/v1") {
        return;
    }
    let own = project.architecture.domain_of(&file.path).map(|(name, _)| name);
    if !file.is_part("http") {
        report(&ROUTE_PLACE, format!("route {route} outside of http.rs"));
    }
    // The bare family is a prefix to compare with, not a route.
    if route.trim_end_matches('/') == "/api/v1" {
        return;
    }
    match owner_of(project, route) {
        Some(owner) if Some(owner) == own => {}
        Some(owner) => report(&ROUTE_OWNER, format!("route {route} belongs to {owner}")),
        None => report(&ROUTE_OWNER, format!("route {route} belongs to no domain")),
    }
    if !TENANT_PREFIXES.iter().any(|prefix| is_under(route, prefix)) {
        report(&ROUTE_TENANT, format!("route {route} names no tenant"));
    }
}

/// The domain with the longest prefix of the route.
fn owner_of<'a>(project: &'a Project, route: &str) -> Option<&'a str> {
    let domains = project.architecture.domains.iter();
    let claims = domains.flat_map(|(name, domain)| domain.routes.iter().map(move |prefix| (name, prefix)));
    let fitting = claims.filter(|(_, prefix)| is_under(route, prefix));
    fitting.max_by_key(|(_, prefix)| prefix.len()).map(|(name, _)| name.as_str())
}

/// `{token}` in the path, `?token=` behind it.
fn check_secrets(file: &File, line: usize, text: &str, findings: &mut Vec<Finding>) {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let parameters = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let fields = query.split('&').filter_map(|pair| pair.split('=').next());
    for name in parameters.chain(fields).filter(|name| is_secret(name)) {
        findings.push(ROUTE_SECRET.at(&file.path, line, name, format!("{name} in the URL {text}")));
    }
}

/// Fields of the structs a query string is read into, by our naming: `…Query`.
fn check_query_fields(file: &File, source: &RustSource, findings: &mut Vec<Finding>) {
    for start in source.find(&["struct"]) {
        let name = source.text(start + 1);
        let open = (start..source.tokens.len()).find(|index| ["{", "(", ";"].contains(&source.text(*index)));
        let Some(open) = open.filter(|open| name.ends_with("Query") && source.text(*open) == "{") else {
            continue;
        };
        for index in open..source.closing(open) {
            let is_field = source.tokens[index].kind == Kind::Word && source.text(index + 1) == ":";
            if is_field && is_secret(source.text(index)) {
                let what = format!("{} in the query {name}", source.text(index));
                findings.push(ROUTE_SECRET.at(&file.path, source.line(index), source.text(index), what));
            }
        }
    }
}

/// `join_token` is one, `token_id` is not.
fn is_secret(name: &str) -> bool {
    name.rsplit('_').next().is_some_and(|last| SECRET_NAMES.contains(&last))
}
