//! Is every tenant's row behind the wall? Asked of the catalog, so that a new table cannot be forgotten.
//!
//! For each table with a column `org_id`: row-level security is on and binds the owner; a row of organization B, put
//! there by the superuser, is out of reach for the tenant logins in the scope of A and without a scope, by SELECT,
//! UPDATE, DELETE and INSERT; and in the scope of B it is there, so that the check cannot pass by seeing nothing.

use db::Login;
use tokio_postgres::{Client, SimpleQueryMessage};
use uuid::Uuid;

use crate::TestDb;
use crate::template::PREFIX;

const A: Uuid = Uuid::from_u128(0xa);
const B: Uuid = Uuid::from_u128(0xb);

const TABLES: &str = "
SELECT format('%I.%I', n.nspname, c.relname), c.relrowsecurity AND c.relforcerowsecurity,
       EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid), a.attgenerated <> ''
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org_id' AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
ORDER BY 1";

/// Columns that a row must be given; all of them when `org_id` is derived from another.
const COLUMNS: &str = "
SELECT quote_ident(attname), format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''
  AND (attname = 'org_id' OR attnotnull AND NOT atthasdef)";

/// What a made-up row need not satisfy.
const LOOSEN: &str = "
DO $$ DECLARE found record; BEGIN
    FOR found IN SELECT conrelid::regclass AS place, conname FROM pg_constraint
        WHERE contype IN ('c', 'f') AND conrelid <> 0 AND conparentid = 0 AND coninhcount = 0
          AND connamespace::regnamespace::text NOT LIKE 'pg\\_%' AND connamespace::regnamespace::text <> 'information_schema'
    LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.place, found.conname); END LOOP;
END $$;
SET session_replication_role = replica";

struct Table {
    name: String,
    /// `(columns) VALUES (values)` of a row of B.
    row: String,
    column: String,
    movable: bool,
}

/// Fails at the first table whose wall is missing or open; returns the tables it looked at. The database is of no use
/// for anything else afterwards: its constraints are gone.
pub async fn check_walls(test: &TestDb) -> Vec<String> {
    let admin = test.superuser().await;
    let tables = tables(&admin).await;
    admin.batch_execute(LOOSEN).await.expect("drop constraints");
    for table in &tables {
        let insert = format!("INSERT INTO {} {}", table.name, table.row);
        admin.batch_execute(&insert).await.unwrap_or_else(|error| panic!("{insert}: {error:?}"));
    }
    for login in [Login::App, Login::Reader] {
        let client = test.client(login).await;
        for table in &tables {
            check_table(&client, &admin, login, table).await;
        }
    }
    tables.into_iter().map(|table| table.name).collect()
}

async fn tables(admin: &Client) -> Vec<Table> {
    let mut tables = Vec::new();
    for row in admin.query(TABLES, &[]).await.expect("read the catalog") {
        let (name, forced, has_policy, derived): (String, bool, bool, bool) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        assert!(forced, "{name} has org_id, but row-level security is not enabled and forced");
        assert!(has_policy, "{name} has org_id, but no policy");
        let columns = admin.query(COLUMNS, &[&name]).await.expect("read the catalog");
        let (names, values): (Vec<String>, Vec<String>) =
            columns.iter().map(|column| (column.get(0), value(&name, column.get(1)))).unzip();
        let row = format!("({}) VALUES ({})", names.join(", "), values.join(", "));
        tables.push(Table { column: names[0].clone(), name, row, movable: !derived });
    }
    tables
}

/// Some value of a type; for ids, organization B.
fn value(table: &str, column_type: &str) -> String {
    let literal = match column_type {
        "uuid" => B.to_string(),
        "text" => "x".to_owned(),
        "bytea" => "\\x00".to_owned(),
        "smallint" | "integer" | "bigint" | "numeric" | "xid8" | "double precision" => "1".to_owned(),
        "boolean" => "true".to_owned(),
        "timestamp with time zone" | "date" => "2026-01-01".to_owned(),
        "interval" => "1 second".to_owned(),
        "json" | "jsonb" => "{}".to_owned(),
        array if array.ends_with("[]") => "{}".to_owned(),
        other => panic!("teach testkit's walls.rs a value of type {other}, which {table} has"),
    };
    format!("'{literal}'::{column_type}")
}

async fn check_table(client: &Client, admin: &Client, login: Login, table: &Table) {
    let (name, column) = (&table.name, &table.column);
    for (scope, label) in [(A.to_string(), "the scope of another organization"), (String::new(), "no scope")] {
        set_scope(client, &scope).await;
        let at = format!("{} in {label}, {name}", login.suffix());
        for statement in [
            format!("SELECT FROM {name}"),
            format!("UPDATE {name} SET {column} = {column}"),
            format!("DELETE FROM {name}"),
        ] {
            let touched = touch(client, &statement).await;
            assert!(matches!(touched, None | Some(0)), "{at}: {statement} touched {touched:?} rows");
        }
        let insert = format!("INSERT INTO {name} {}", table.row);
        assert_eq!(touch(client, &insert).await, None, "{at}: {insert} was not refused");
    }
    set_scope(client, &B.to_string()).await;
    if may(admin, login, name, "SELECT").await {
        let seen = touch(client, &format!("SELECT FROM {name}")).await;
        assert_eq!(seen, Some(1), "{} sees its own row of {name}", login.suffix());
    }
    if table.movable && may(admin, login, name, "UPDATE").await {
        let gift = format!("UPDATE {name} SET org_id = '{A}'");
        assert_eq!(touch(client, &gift).await, None, "{}: {gift} was not refused", login.suffix());
    }
}

/// Rows a statement touches, undone afterwards; `None` if it is refused for want of a right.
async fn touch(client: &Client, statement: &str) -> Option<u64> {
    client.batch_execute("BEGIN").await.expect("begin");
    let outcome = client.simple_query(statement).await;
    client.batch_execute("ROLLBACK").await.expect("roll back");
    match outcome {
        Ok(messages) => messages.iter().find_map(|message| match message {
            SimpleQueryMessage::CommandComplete(count) => Some(*count),
            _ => None,
        }),
        Err(error) => {
            let code = error.as_db_error().map(|error| error.code().code().to_owned());
            assert_eq!(code.as_deref(), Some("42501"), "{statement}: {error:?}");
            None
        }
    }
}

async fn set_scope(client: &Client, organization: &str) {
    let sql = "SELECT set_config('gpuaas.org', $1, false), set_config('gpuaas.platform', 'off', false)";
    client.execute(sql, &[&organization]).await.expect("set the scope");
}

async fn may(admin: &Client, login: Login, table: &str, privilege: &str) -> bool {
    let role = login.role_name(PREFIX);
    let sql = "SELECT has_table_privilege($1::text, $2::text, $3::text)";
    admin.query_one(sql, &[&role, &table, &privilege]).await.expect("ask for a privilege").get(0)
}
