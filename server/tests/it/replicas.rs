//! Two replicas of everything on one database: no work is done twice, one may die, and one may be of the next version.

use std::process::Output;

use http::Method;
use serde_json::json;
use testkit::db::migrate::{self, MigrationSet};
use testkit::db::{Login, Migration};
use testkit::{Gpuaasd, HttpClient, NatsServer, SPINE, eventually, free_port};
use tokio_postgres::Client;

use crate::installation::{Config, Installation, gpuaasd, text};

const ROLES: &str = "api,audit-sealer,outbox-relay,platform-worker";
const WAITING: &str =
    "SELECT count(*) FROM spine.outbox o, spine.sequencer s WHERE (o.xid, o.id) > (s.done_xid, s.done_id)";
const UNSEALED: &str = "SELECT count(*) FROM spine.audit_entry e WHERE NOT EXISTS (SELECT FROM audit.leaf l WHERE l.entry_id = e.id)";

/// One replica: its configuration, and where its API answers.
struct Replica {
    config: Config,
    api: HttpClient,
}

impl Replica {
    /// `further` are sections of the configuration.
    fn new(installation: &Installation, name: &str, further: &str) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let public = format!("[public]\nlisten = \"{address}\"\n");
        let config = installation.config(name, &format!("{public}{}{further}", installation.secrets()));
        let key = installation.path().join("operator.key");
        if !key.exists() {
            let made = gpuaasd(&["operator", "key"], &[("--config", &config.file), ("--out", &key)]);
            assert!(made.status.success(), "{}", text(&made));
        }
        let token = std::fs::read_to_string(key).unwrap();
        Self { config, api: HttpClient::new(&format!("http://{address}")).with_token(&token) }
    }

    async fn make(&self, name: &str) -> String {
        let made = self.api.post("/api/v1/orgs", &json!({"name": name})).await.expect(201).json();
        made["id"].as_str().unwrap().to_owned()
    }
}

async fn count(admin: &Client, sql: &str) -> i64 {
    admin.query_one(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
}

async fn settled(admin: &Client) {
    for behind in [WAITING, UNSEALED] {
        eventually("everything is sequenced and sealed", async || count(admin, behind).await == 0).await;
    }
}

/// The relay to NATS and the read models have seen every event.
async fn read_to_the_end(admin: &Client) {
    let at_the_end = "SELECT count(*) FROM spine.consumer c, spine.sequencer s
                      WHERE c.position = s.last_position AND c.name IN ('nats', 'iam.organization_summary')";
    eventually("every reader of the log is at its end", async || count(admin, at_the_end).await == 2).await;
}

/// What a replica has counted of something since it began.
async fn counted(replica: &Gpuaasd, metric: &str) -> i64 {
    let text = replica.anonymous().get("/internal/metrics").await.expect(200).text();
    let values =
        text.lines().filter(|line| line.starts_with(metric)).filter_map(|line| line.rsplit_once(' '));
    values.map(|(_, value)| value.parse::<i64>().unwrap()).sum()
}

/// Every event has one position, every entry one number, every archived organization was archived once.
async fn check_nothing_twice(admin: &Client) {
    for (twice, what) in [
        ("SELECT count(*) - count(DISTINCT id) FROM spine.log", "an event has two positions"),
        ("SELECT max(position) - count(*) FROM spine.log", "positions have gaps"),
        ("SELECT count(*) - count(DISTINCT entry_id) FROM audit.leaf", "an entry is sealed twice"),
        (
            "SELECT max(t.size) - count(*) FROM audit.tree t, audit.leaf",
            "the tree has another size than its leaves",
        ),
        (
            "SELECT count(*) - count(DISTINCT subject) FROM spine.log WHERE type = 'gpuaas.iam.organization.archived'",
            "an organization was archived twice",
        ),
        ("SELECT count(*) - 1 FROM secrets.secret WHERE name = 'audit log'", "two keys of the audit log"),
        (
            "SELECT count(*) FROM iam.organization_summary s WHERE s.projects_archived <>
             (SELECT count(*) FROM iam.project p WHERE p.org_id = s.org_id AND p.state = 'archived')",
            "a read model counted something twice or not at all",
        ),
    ] {
        assert_eq!(count(admin, twice).await, 0, "{what}");
    }
}

#[tokio::test]
async fn two_replicas_of_every_role_do_nothing_twice_and_one_may_die() {
    let (installation, nats) = (Installation::new("replicas").await, NatsServer::start().await);
    let section = format!("[nats]\nurl = \"{}\"\n", nats.url());
    let replicas =
        [Replica::new(&installation, "first", &section), Replica::new(&installation, "second", &section)];
    let admin = installation.superuser().await;
    // What a dead replica held is free again within the patience of a test.
    let short = "INSERT INTO spine.setting (key, value, set_by, set_at)
                 SELECT key, '2', '{}', now() FROM unnest(ARRAY['flow.lease_seconds', 'events.consumer_lease_seconds']) AS key";
    admin.batch_execute(short).await.unwrap();
    let (before_log, before_sealed) = (
        count(&admin, "SELECT count(*) FROM spine.log").await,
        count(&admin, "SELECT count(*) FROM audit.leaf").await,
    );
    // At the same moment, so that both find the log's key missing.
    let (first, second) = tokio::join!(
        installation.run(ROLES, &replicas[0].config),
        installation.run(ROLES, &replicas[1].config)
    );
    let mut made = Vec::new();
    for number in 0..20 {
        let id = replicas[number % 2].make(&format!("org {number}")).await;
        let projects = format!("/api/v1/orgs/{id}/projects");
        replicas[(number + 1) % 2].api.post(&projects, &json!({"name": "one"})).await.expect(201);
        let archive = format!("/api/v1/orgs/{id}/archive");
        replicas[number % 2].api.send(Method::POST, &archive, &[], None).await.unwrap().expect(202);
        made.push(id);
    }
    for (number, id) in made.iter().enumerate() {
        let archived = format!("/api/v1/orgs/{id}?wait=archived&wait_seconds=20");
        let found = replicas[number % 2].api.get(&archived).await.expect(200).json();
        assert_eq!(found["state"], "archived", "{found}");
    }
    settled(&admin).await;
    read_to_the_end(&admin).await;
    check_nothing_twice(&admin).await;
    // Together they did the work once.
    let (log, sealed) = ("SELECT count(*) FROM spine.log", "SELECT count(*) FROM audit.leaf");
    for (metric, done) in [
        ("gpuaas_events_sequenced_total", count(&admin, log).await - before_log),
        ("gpuaas_audit_sealed_total", count(&admin, sealed).await - before_sealed),
    ] {
        assert_eq!(counted(&first, metric).await + counted(&second, metric).await, done, "{metric}");
    }
    // One dies in the middle of things; the other one finishes them.
    let id = replicas[0].make("orphan").await;
    let archive = format!("/api/v1/orgs/{id}/archive");
    replicas[0].api.send(Method::POST, &archive, &[], None).await.unwrap().expect(202);
    first.child.kill().await;
    eventually("what the dead one began is finished", async || {
        replicas[1].api.get(&format!("/api/v1/orgs/{id}")).await.expect(200).json()["state"] == "archived"
    })
    .await;
    settled(&admin).await;
    read_to_the_end(&admin).await;
    check_nothing_twice(&admin).await;
    assert!(second.child.terminate().await.success(), "{}", second.child.said());
}

/// What the next version might add: a column the present one does not know, a table, an index.
const EXPANDING: Migration = Migration {
    version: 3,
    name: "next",
    sql: "ALTER TABLE iam.organization ADD COLUMN note text NOT NULL DEFAULT '';
          CREATE TABLE iam.note (id uuid PRIMARY KEY, org_id uuid NOT NULL, text text NOT NULL);
          CREATE INDEX organization_by_note ON iam.organization (note);
          GRANT SELECT, INSERT ON iam.note TO ${app};",
};
/// And what it might take away a release later.
const CONTRACTING: Migration = Migration {
    version: 4,
    name: "later",
    sql: "-- contract: nobody reads it any more\nDROP TABLE iam.note;",
};

async fn migrate_iam(installation: &Installation, further: &[Migration]) {
    let migrations = [iam::MIGRATION_SET.migrations, further].concat();
    let iam = MigrationSet { domain: "iam", migrations: migrations.leak() };
    let sets = [SPINE, iam, audit::MIGRATION_SET, secrets::MIGRATION_SET];
    let owner = installation.client(Login::Owner).await;
    assert_eq!(migrate::run(&owner, "gpuaas", &sets).await.unwrap(), 1);
}

fn start_again(replica: &Replica) -> Output {
    gpuaasd(&["run", "--role", ROLES], &[("--config", &replica.config.file)])
}

/// The next version does not exist yet, so there is no second program to run. What the present one sees of it does: the
/// database, migrated by the very code that the next version will run, with its migrations in the list, and rows written
/// with what it added. (Its own half of the promise, to run on a schema that still has what the present version writes, is
/// `upgrade_under_load` over `db/released`, from the first release on.)
#[tokio::test]
async fn the_present_version_runs_beside_the_next_one() {
    let installation = Installation::new("side-by-side").await;
    let replicas = [Replica::new(&installation, "stays", ""), Replica::new(&installation, "restarts", "")];
    let stays = installation.run(ROLES, &replicas[0].config).await;
    let restarts = installation.run(ROLES, &replicas[1].config).await;
    let before = replicas[0].make("before").await;
    migrate_iam(&installation, &[EXPANDING]).await;
    // The one that runs goes on, and one that is started now starts.
    replicas[0].make("during").await;
    assert!(restarts.child.terminate().await.success(), "{}", restarts.child.said());
    let restarted = installation.run(ROLES, &replicas[1].config).await;
    let admin = installation.superuser().await;
    admin.batch_execute("UPDATE iam.organization SET note = 'of the next version'").await.unwrap();
    let after = replicas[1].make("after").await;
    for (replica, id) in [(&replicas[0], &after), (&replicas[1], &before)] {
        let path = format!("/api/v1/orgs/{id}");
        let etag = replica.api.get(&path).await.expect(200).json()["generation"].to_string();
        let renamed = json!({"name": format!("renamed {id}")});
        let headers = [("if-match", format!("\"{etag}\""))];
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        replica.api.send(Method::PATCH, &path, &headers, Some(&renamed)).await.unwrap().expect(200);
    }
    let kept = "SELECT count(*) FROM iam.organization WHERE note = 'of the next version'";
    assert_eq!(count(&admin, kept).await, 2, "a change by the present version keeps what the next one wrote");
    settled(&admin).await;
    check_nothing_twice(&admin).await;
    // Not with one that took something away: that is two versions apart.
    migrate_iam(&installation, &[EXPANDING, CONTRACTING]).await;
    assert!(restarted.child.terminate().await.success(), "{}", restarted.child.said());
    let refused = start_again(&replicas[1]);
    let said = text(&refused);
    assert!(
        !refused.status.success() && said.contains("newer version") && said.contains("migration 4"),
        "{said}"
    );
    drop(stays);
}
