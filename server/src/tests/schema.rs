//! The database as it is described, and the statements that are made for it.

use std::path::PathBuf;

use syn::{Expr, ExprLit, Item, Lit};
use testkit::TestDb;

use super::root;
use crate::assemble;

const COPY: &str = "db/schema.sql";
const HEAD: &str = "-- The schema at its newest, to be read: written by `make contracts`, compared by the tests. What makes it are the\n\
                    -- migrations of kernel/db and of the domains.\n\n";

/// With GPUAAS_WRITE_SCHEMA set, as `make contracts` does, writes the copy instead of comparing it.
#[tokio::test]
async fn the_copy_of_the_schema_is_what_the_migrations_make() {
    let sets = assemble::migration_sets().unwrap();
    let test = TestDb::with(&sets).await;
    let schemas: Vec<&str> = sets.iter().map(|set| set.domain).collect();
    let made = format!("{HEAD}{}", testkit::schema::describe(&test, &schemas).await);
    if std::env::var_os("GPUAAS_WRITE_SCHEMA").is_some() {
        std::fs::write(root().join(COPY), &made).unwrap();
    }
    let kept = std::fs::read_to_string(root().join(COPY)).unwrap_or_default();
    assert!(
        kept == made,
        "{COPY} has drifted from the migrations: run `make contracts` and review the difference"
    );
}

/// Over all domains, so that a new one's first table is looked at as well.
#[tokio::test]
async fn every_table_of_a_tenant_has_a_wall() {
    let checked = testkit::check_walls(&TestDb::with(&assemble::migration_sets().unwrap()).await).await;
    for table in ["spine.audit_entry", "iam.project", "secrets.secret"] {
        assert!(checked.iter().any(|found| found == table), "{table} was not checked, only {checked:?}");
    }
}

/// A statement that no longer fits the schema is found here, and not by the first who needs it.
#[tokio::test]
async fn postgresql_understands_every_statement() {
    let test = TestDb::with(&assemble::migration_sets().unwrap()).await;
    let client = test.superuser().await;
    let statements = statements();
    assert!(
        statements.len() > 80,
        "only {} statements were found: do they still stand where this test looks?",
        statements.len()
    );
    let mut faults = Vec::new();
    for (name, sql) in &statements {
        if let Err(error) = client.prepare(sql).await {
            faults.push(format!("{name}: {error:?}\n{sql}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Every constant that is SQL, by file and name: in each `store.rs`, and in all of kernel/db.
fn statements() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = syn::parse_file(&text).unwrap();
        for item in &file.items {
            let Item::Const(constant) = item else { continue };
            let name = format!("{}: {}", path.strip_prefix(root()).unwrap().display(), constant.ident);
            if let Some(sql) = text_of(&constant.expr, &file.items).filter(|text| can_be_prepared(text)) {
                found.push((name, sql));
            }
        }
    }
    found
}

fn sources() -> Vec<PathBuf> {
    let directories = |path: PathBuf| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let layers = ["kernel", "platform"].map(|layer| root().join(layer));
    let crates = layers.into_iter().flat_map(directories).map(|path| path.join("src"));
    let (mut whole, parts): (Vec<_>, Vec<_>) = crates.partition(|path| path.ends_with("kernel/db/src"));
    let mut files: Vec<PathBuf> = whole.drain(..).flat_map(directories).collect();
    files.extend(parts.into_iter().map(|source| source.join("store.rs")));
    files.retain(|path| path.extension().is_some_and(|ending| ending == "rs") && path.exists());
    files
}

/// A literal, or `concat!` of literals and of macros without arguments that are declared in the same file.
fn text_of(expression: &Expr, items: &[Item]) -> Option<String> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        Expr::Macro(call) if call.mac.path.is_ident("concat") => {
            let parts = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
            call.mac.parse_body_with(parts).ok()?.iter().map(|part| text_of(part, items)).collect()
        }
        Expr::Macro(call) => items.iter().find_map(|item| match item {
            Item::Macro(declared) if declared.ident.as_ref() == call.mac.path.get_ident() => {
                literal_in(declared.mac.tokens.clone())
            }
            _ => None,
        }),
        _ => None,
    }
}

/// The one literal of `() => { "…" };`.
fn literal_in(tokens: proc_macro2::TokenStream) -> Option<String> {
    tokens.into_iter().find_map(|token| match token {
        proc_macro2::TokenTree::Group(group) => literal_in(group.stream()),
        proc_macro2::TokenTree::Literal(literal) => match Lit::new(literal) {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

fn can_be_prepared(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&first)
}
