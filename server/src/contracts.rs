//! The contracts, from the same registry the server routes by.

use std::path::Path;
use std::sync::Arc;

use db::{Pool, PoolOptions, Target};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::assemble::{App, Base, Parts};
use crate::{Failure, VERSION};

/// An app over a pool that is never used: only its declarations are read.
pub fn described() -> Result<App, Failure> {
    // fixed: no connection is ever opened
    let options = PoolOptions { connections_max: 1, waiting_max: 1, wait_timeout: std::time::Duration::ZERO };
    let pool = Pool::new(Target::plain(tokio_postgres::Config::new()), options)?;
    let base = Base::new(pool, db::Settings::default(), false);
    let keys = Arc::new(secrets::Keyring::empty());
    Ok(App::new(
        base,
        Parts { keys, decider: crate::assemble::decider()?, tls: false, stop: CancellationToken::new() },
    ))
}

pub fn openapi(app: &App) -> Result<Value, Failure> {
    web::document(&app.endpoints(), &app.tags(), VERSION).map_err(Failure::new)
}

pub fn asyncapi(app: &App) -> Value {
    events::asyncapi_document(&app.events(), VERSION)
}

/// Everything others build on, by file name: what is checked in under `contracts/` and compared by the tests.
pub fn files(app: &App) -> Result<Vec<(&'static str, String)>, Failure> {
    Ok(vec![
        ("openapi.json", pretty(&openapi(app)?)?),
        ("asyncapi.json", pretty(&asyncapi(app))?),
        ("errors.json", pretty(&errors(app))?),
        ("settings.json", pretty(&app.settings_reference())?),
        ("permissions.txt", permissions()?),
    ])
}

/// Every error code, for typed errors in SDKs.
fn errors(app: &App) -> Value {
    let mut codes = app.errors();
    codes.sort_by_key(|code| code.code);
    codes.dedup_by_key(|code| code.code);
    let describe = |code: &&types::ErrorCode| json!({"code": code.code, "status": web::status_of(code).as_u16(), "title": code.title, "remedy": code.remedy});
    codes.iter().map(describe).collect()
}

/// Who may do what: the table people review. A column per role, as `iam::ROLES` has them.
fn permissions() -> Result<String, Failure> {
    let rows = crate::assemble::decider()?.matrix();
    let mut text = String::from("Who may do what. Generated from the policies; read it in review.\n\n");
    for (column, role) in iam::ROLES.iter().enumerate() {
        text += &format!("{:>4}  {:22} {}\n", column + 1, role.name, role.title);
    }
    text += "   *  whoever is signed in\n   c  may be part of a role that an organization composes\n\n";
    let numbers: String = (1..=iam::ROLES.len()).map(|column| format!("{column:>3}")).collect();
    text += &format!("{:28}{:22}{numbers}  *  c  our own workers\n", "action", "on");
    for row in &rows {
        let mark = |is: bool| if is { "  ●" } else { "  ·" };
        let marks: String = iam::ROLES.iter().map(|role| mark(row.roles.contains(&role.name))).collect();
        let ends = format!("{}{}  {}", mark(row.anyone), mark(row.custom), row.workers.join(", "));
        text += &format!("{:28}{:22}{marks}{}\n", row.action.name, row.resource, ends.trim_end());
    }
    Ok(text)
}

fn pretty(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::new(error.to_string()))?;
    Ok(text + "\n")
}

pub fn write(directory: &Path) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::new(format!("cannot write to {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    for (name, text) in files(&described()?)? {
        std::fs::write(directory.join(name), text).map_err(failed)?;
    }
    Ok(())
}
