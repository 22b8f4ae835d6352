//! Each login has its own password, and a process opens what its roles need and nothing else.

use testkit::db::Login;
use testkit::{Gpuaasd, Scratch, eventually};

use crate::installation::{Installation, gpuaasd, text};

const WRITE: &str = "
INSERT INTO spine.outbox (id, at, type, subject, generation, data, correlation_id)
SELECT gen_random_uuid(), now(), 'gpuaas.test.thing.changed', 'thing_1', 1, '{}', gen_random_uuid()";

#[tokio::test]
async fn the_relay_runs_with_its_own_password_alone() {
    let installation = Installation::new("logins").await;
    let only_relay = installation.passwords("relay", &[Login::Relay]);
    let config = installation.config_with("relay", &only_relay, "");
    let relay = installation.run("outbox-relay", &config).await;
    let admin = installation.superuser().await;
    admin.batch_execute(WRITE).await.unwrap();
    eventually("the event has a position", async || {
        admin.query_one("SELECT count(*) FROM spine.log", &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE usename LIKE 'gpuaas_%' AND usename <> 'gpuaas_relay'";
    assert_eq!(
        admin.query_one(sessions, &[]).await.unwrap().get::<_, i64>(0),
        0,
        "it connects as relay only"
    );
    let login = installation.client(Login::Relay).await;
    for table in ["iam.organization", "iam.api_key", "secrets.secret", "spine.audit_entry"] {
        let refused = login.batch_execute(&format!("SELECT FROM {table}")).await.unwrap_err();
        let code = refused.as_db_error().map(|error| error.code().code());
        assert_eq!(code, Some("42501"), "the relay's login reads {table}: {refused:?}");
    }
    assert!(relay.child.terminate().await.success());
    // A role whose password is not there says which one it wants, and where.
    let refused = gpuaasd(&["run", "--role", "platform-worker"], &[("--config", &config.file)]);
    let said = text(&refused);
    assert!(!refused.status.success() && said.contains("\"app\"") && said.contains("app.password"), "{said}");
}

#[tokio::test]
async fn every_login_of_up_has_its_own_password() {
    let directory = Scratch::new("own-passwords");
    let server = Gpuaasd::up(directory.path()).await;
    let data = directory.path().join("data");
    let read = |login: Login| {
        std::fs::read_to_string(data.join(format!("passwords/{}.password", login.suffix()))).unwrap()
    };
    let running = postgres_server::Running::at(&data).unwrap();
    for login in Login::ALL {
        for whose in Login::ALL {
            let mut config = tokio_postgres::Config::new();
            config.host_path(running.socket_dir()).port(running.port()).dbname("gpuaas");
            config.user(login.role_name("gpuaas")).password(read(whose));
            let opened = config.connect(tokio_postgres::NoTls).await.is_ok();
            assert_eq!(opened, login == whose, "{login:?} with the password of {whose:?}");
        }
    }
    assert!(server.child.terminate().await.success());
}

#[tokio::test]
async fn a_role_before_db_init_says_what_to_do_first() {
    let installation = Installation::bare("before-init").await;
    let config = installation.config("early", "");
    let refused = gpuaasd(&["run", "--role", "outbox-relay"], &[("--config", &config.file)]);
    let said = text(&refused);
    assert!(!refused.status.success() && said.contains("gpuaasd db init"), "{said}");
}
