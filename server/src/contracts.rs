//! The contracts, from the same registry the server routes by.

use std::path::Path;
use std::sync::Arc;

use db::{Pool, PoolOptions, Target};
use serde_json::Value;

use crate::assemble::{App, Parts};
use crate::{Failure, VERSION};

/// An app over a pool that is never used: only its declarations are read.
pub fn described() -> Result<App, Failure> {
    // fixed: no connection is ever opened
    let options = PoolOptions { connections_max: 1, waiting_max: 1, wait_timeout: std::time::Duration::ZERO };
    let pool = Pool::new(Target::plain(tokio_postgres::Config::new()), options)?;
    Ok(App::new(Parts {
        pool,
        nudges: db::Nudges::default(),
        keys: Arc::new(secrets::Keyring::empty()),
        tls: false,
        stop: Default::default(),
        backstop: false,
    }))
}

pub fn openapi(app: &App) -> Result<Value, Failure> {
    web::document(&app.endpoints(), &app.tags(), VERSION).map_err(Failure::new)
}

pub fn asyncapi(app: &App) -> Value {
    events::asyncapi_document(&app.events(), VERSION)
}

pub fn write(directory: &Path) -> Result<(), Failure> {
    let app = described()?;
    let failed =
        |error: std::io::Error| Failure::new(format!("cannot write to {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    for (name, document) in [("openapi.json", openapi(&app)?), ("asyncapi.json", asyncapi(&app))] {
        let mut text =
            serde_json::to_string_pretty(&document).map_err(|error| Failure::new(error.to_string()))?;
        text.push('\n');
        std::fs::write(directory.join(name), text).map_err(failed)?;
    }
    Ok(())
}
