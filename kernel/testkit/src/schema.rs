//! A database's schema as SQL to read: sorted, without partitions, the same from every version of PostgreSQL.
//!
//! Not `pg_dump`: its text differs from version to version, and tells about owners and settings what nobody reads here.

use db::Login;
use tokio_postgres::Client;

use crate::TestDb;
use crate::template::PREFIX;

/// Tables that are not partitions of others.
const TABLES: &str = "
SELECT c.oid, n.nspname || '.' || c.relname,
       coalesce(' PARTITION BY ' || pg_get_partkeydef(c.oid), ''), c.relforcerowsecurity
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname = ANY($1)
ORDER BY 2";

const COLUMNS: &str = "
SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
       || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
       || CASE WHEN a.attgenerated = 's' THEN ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ') STORED'
               WHEN d.adbin IS NOT NULL THEN ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) ELSE '' END
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

const CONSTRAINTS: &str = "
SELECT 'CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = $1 AND contype IN ('p', 'u', 'f', 'c') AND conislocal ORDER BY contype DESC, conname";

/// What follows a table: indexes that no constraint made, policies, triggers, rights.
const BESIDE: &str = "
SELECT pg_get_indexdef(i.indexrelid) || ';' FROM pg_index i
WHERE i.indrelid = $1 AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)
UNION ALL
SELECT format('CREATE POLICY %s ON %s FOR %s TO %s USING (%s);', p.policyname, $1::oid::regclass, p.cmd,
              array_to_string(p.roles, ', '), p.qual)
FROM pg_policies p WHERE format('%I.%I', p.schemaname, p.tablename)::regclass = $1
UNION ALL
SELECT pg_get_triggerdef(oid) || ';' FROM pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal
UNION ALL
SELECT format('GRANT %s ON %s TO %s;', string_agg(privilege, ', ' ORDER BY privilege), $1::oid::regclass, role)
FROM (SELECT grantee::regrole::text AS role, privilege_type AS privilege
      FROM pg_class c, aclexplode(c.relacl) WHERE c.oid = $1 AND grantee <> c.relowner
      UNION ALL
      SELECT grantee::regrole::text, format('%s (%s)', privilege_type, string_agg(attname, ', ' ORDER BY attnum))
      FROM pg_attribute a, aclexplode(a.attacl) WHERE a.attrelid = $1 GROUP BY grantee, privilege_type) AS granted
GROUP BY role
ORDER BY 1";

const ROUTINES: &str = "
SELECT pg_get_functiondef(p.oid) || ';' || coalesce((
    SELECT string_agg(format(E'\\nGRANT EXECUTE ON ROUTINE %s TO %s;', p.oid::regproc,
                             CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END), '' ORDER BY grantee)
    FROM aclexplode(p.proacl) WHERE grantee <> p.proowner), '')
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = ANY($1)
ORDER BY n.nspname, p.proname";

/// The schemas' tables and routines, with the logins as `${app}` and so on.
pub async fn describe(test: &TestDb, schemas: &[&str]) -> String {
    let client = test.superuser().await;
    let mut text = String::new();
    for table in client.query(TABLES, &[&schemas]).await.expect("list tables") {
        let (oid, name, partitions, forced): (u32, String, String, bool) =
            (table.get(0), table.get(1), table.get(2), table.get(3));
        let mut inside = lines(&client, COLUMNS, oid).await;
        inside.extend(lines(&client, CONSTRAINTS, oid).await);
        text += &format!("CREATE TABLE {name} (\n    {}\n){partitions};\n", inside.join(",\n    "));
        if forced {
            text += &format!("ALTER TABLE {name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;\n");
        }
        for line in lines(&client, BESIDE, oid).await {
            text += &format!("{line}\n");
        }
        text.push('\n');
    }
    for routine in client.query(ROUTINES, &[&schemas]).await.expect("list routines") {
        text += &format!("{}\n\n", routine.get::<_, &str>(0));
    }
    Login::ALL
        .iter()
        .fold(text, |text, login| text.replace(&login.role_name(PREFIX), &format!("${{{}}}", login.suffix())))
}

async fn lines(client: &Client, sql: &str, table: u32) -> Vec<String> {
    let rows = client.query(sql, &[&table]).await.expect("describe a table");
    rows.iter().map(|row| row.get(0)).collect()
}
