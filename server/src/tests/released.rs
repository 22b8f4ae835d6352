//! Every released version goes on writing while its database is migrated to the present one.
//!
//! `db/released/VERSION.sql` is a freshly migrated database of that version, `VERSION.writes.sql` a change as its binary
//! made it. Both are written when the version is released, and never edited.

use std::path::{Path, PathBuf};

use db::Login;
use testkit::TestDb;
use testkit::released::{dump, upgrade_under_load};

use super::root;
use crate::{VERSION, assemble};

fn directory() -> PathBuf {
    root().join("db/released")
}

/// With GPUAAS_WRITE_RELEASE set, as the release checklist does, first keeps a dump of the present version.
#[tokio::test]
async fn released_versions_write_on_while_they_are_migrated() {
    let head = assemble::migration_sets().unwrap();
    if std::env::var_os("GPUAAS_WRITE_RELEASE").is_some() {
        let text = dump(&TestDb::with(&head).await).await;
        std::fs::write(directory().join(format!("{VERSION}.sql")), text).unwrap();
    }
    let releases = releases();
    assert!(!releases.is_empty(), "there is no dump in db/released");
    for release in releases {
        let text = std::fs::read_to_string(&release).unwrap();
        let writes = std::fs::read_to_string(release.with_extension("writes.sql")).unwrap();
        let write = async |test: &TestDb, number: usize| Ok(run_as_app(test, &writes, number).await?);
        let (test, written) = upgrade_under_load(&text, &head, write).await;
        let entries = test.count("SELECT count(*) FROM spine.audit_entry").await;
        assert_eq!(entries, i64::try_from(written).unwrap(), "{}", release.display());
    }
}

fn releases() -> Vec<PathBuf> {
    let is_dump = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.ends_with(".sql") && !name.ends_with(".writes.sql")
    };
    let entries = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| is_dump(path)).collect()
}

/// One change, in one transaction. Its `{n}` is another each time.
async fn run_as_app(test: &TestDb, writes: &str, number: usize) -> Result<(), db::DbError> {
    let client = test.client(Login::App).await;
    client.batch_execute(&writes.replace("{n}", &number.to_string())).await?;
    Ok(())
}
