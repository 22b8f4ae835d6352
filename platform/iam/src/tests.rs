//! The identity domain on a real database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod people;

use std::sync::Arc;

use ::events::{Feed, Sequencer, run_projection};
use authz::{Context, Grant, Place, Standing};
use db::{Line, Login};
use flow::{Fence, Machine, Runner, Step};
use testkit::{SPINE, TestDb, eventually};
use tokio_util::sync::CancellationToken;
use types::{Name, Result, Secret, SystemEntropy, Timestamp};
use web::{Authenticator as _, Credential, Found};

use crate::archive::{ArchiveData, ArchiveEffect, ArchiveFacts, ArchiveOrganization, ArchiveState};
use crate::summary::OrganizationSummary;
use crate::{Credentials, Iam, MIGRATION_SET, POLICY, ROLES, Revocations};

/// Tells who is calling. Nobody follows revocations, so everyone is looked up.
fn credentials(test: &TestDb) -> Credentials {
    let line = Line::new(test.target(Login::App), "iam.revocations", true);
    let revocations = Revocations::new(line, test.nudges.clone(), test.settings.clone());
    Credentials::new(&test.db, revocations, test.settings.clone(), false)
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

async fn domain(test: &TestDb) -> (Iam, Feed) {
    let feed = Feed::new(test.db.internal("feed"), test.nudges.clone(), test.settings.clone());
    feed.start().await.unwrap();
    let settings = test.settings.clone();
    let decider = Arc::new(policy::Policies::compile(&[POLICY], ROLES).unwrap());
    let iam = Iam::new(test.db.clone(), feed.clone(), settings, decider, Arc::new(SystemEntropy), false);
    (iam, feed)
}

/// Every row of the read model, as text.
async fn summary(test: &TestDb) -> Vec<String> {
    let sql = "SELECT s::text FROM iam.organization_summary s ORDER BY org_id";
    test.superuser().await.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_rebuilt_summary_is_the_same_to_the_byte() {
    let test = TestDb::with(&[SPINE, MIGRATION_SET]).await;
    let (iam, feed) = domain(&test).await;
    let context = iam.bootstrap_context();
    for number in 0..5 {
        let organization =
            iam.organization_create(&context, name(&format!("o{number}")), Default::default()).await.unwrap();
        for project in 0..number {
            let labels = Default::default();
            iam.project_create(&context, organization.id, name(&format!("p{project}")), labels)
                .await
                .unwrap();
        }
    }
    let relay = test.internal(Login::Relay, "sequencer");
    let sequencer = Sequencer::new(relay, test.db.clock(), test.nudges.clone(), test.settings.clone());
    eventually("every event has a position", async || {
        sequencer.step().await.unwrap();
        test.count("SELECT count(*) FROM spine.log").await == 15
    })
    .await;

    let stop = CancellationToken::new();
    let (internal, settings, stopped) = (test.db.internal("projection"), test.settings.clone(), stop.clone());
    let running = tokio::spawn(async move {
        run_projection(&OrganizationSummary, &internal, &feed, &settings, stopped).await
    });
    eventually("the summary has caught up", async || {
        test.count(
            "SELECT coalesce(max(position), 0) FROM spine.consumer WHERE name = 'iam.organization_summary'",
        )
        .await
            == 15
    })
    .await;
    stop.cancel();
    running.await.unwrap();

    let incremental = summary(&test).await;
    assert_eq!(incremental.len(), 5);
    test.run("UPDATE iam.organization_summary SET projects_active = 99").await;
    ::events::rebuild(&OrganizationSummary, &test.db.internal("rebuild")).await.unwrap();
    assert_eq!(summary(&test).await, incremental);
}

/// Which cookies count as guesses: see `web::Found`.
#[tokio::test]
async fn a_session_that_is_over_is_stale_and_one_that_never_was_is_wrong() {
    let test = TestDb::with(&[SPINE, MIGRATION_SET]).await;
    test.run(
        "INSERT INTO iam.person (id, name, state, state_since, created_at, updated_at)
         VALUES (gen_random_uuid(), 'first', 'active', now(), now(), now());
         INSERT INTO iam.session (id, person_id, token_hash, created_at, expires_at, revoked_at)
         SELECT gen_random_uuid(), o.id, sha256(convert_to(s.token, 'UTF8')), now(), s.expires_at, s.revoked_at
         FROM iam.person o, (VALUES ('gpuaas_ses_open', now() + interval '1 day', NULL::timestamptz),
                                      ('gpuaas_ses_over', now() - interval '1 day', NULL),
                                      ('gpuaas_ses_revoked', now() + interval '1 day', now())) s (token, expires_at, revoked_at)",
    )
    .await;
    let credentials = credentials(&test);
    for (token, expected) in [("open", "Good"), ("over", "Stale"), ("revoked", "Stale"), ("guessed", "Wrong")]
    {
        let credential = Credential { text: Secret::new(format!("gpuaas_ses_{token}")), optional: true };
        let found = match credentials.identify(&credential).await.unwrap() {
            Found::Good(_) => "Good",
            Found::Stale => "Stale",
            Found::Wrong => "Wrong",
        };
        assert_eq!(found, expected, "{token}");
    }
}

#[tokio::test]
async fn a_neighbours_cookie_does_not_hide_the_session() {
    let test = TestDb::kernel().await;
    let credentials = credentials(&test);
    for cookies in
        ["a=1; gpuaas_session=mine", "x=\u{e9}; gpuaas_session=mine", "gpuaas_session=mine;y=\u{1f600}"]
    {
        for bytes in [cookies.as_bytes().to_vec(), cookies.replace('\u{e9}', "?").into_bytes()] {
            let bytes: Vec<u8> =
                bytes.into_iter().map(|byte| if byte == b'?' { 0xe9 } else { byte }).collect();
            let cookie = axum::http::HeaderValue::from_bytes(&bytes).unwrap();
            let (head, ()) =
                axum::http::Request::get("/").header("cookie", cookie).body(()).unwrap().into_parts();
            let found = credentials.credential(&head).unwrap();
            assert_eq!(found.map(|credential| credential.text.expose().to_owned()).as_deref(), Some("mine"));
        }
    }
}

/// The archiver, whose lease another worker takes just before it acts.
struct Overtaken {
    archiver: ArchiveOrganization,
    test: Arc<TestDb>,
}

impl Machine for Overtaken {
    const KIND: &'static str = ArchiveOrganization::KIND;
    type State = ArchiveState;
    type Data = ArchiveData;
    type Facts = ArchiveFacts;
    type Effect = ArchiveEffect;

    async fn observe(
        &self,
        context: &Context,
        state: ArchiveState,
        data: &ArchiveData,
    ) -> Result<ArchiveFacts> {
        self.archiver.observe(context, state, data).await
    }

    fn step(
        &self,
        state: ArchiveState,
        data: &ArchiveData,
        facts: &ArchiveFacts,
        now: Timestamp,
    ) -> Step<ArchiveState, ArchiveEffect> {
        self.archiver.step(state, data, facts, now)
    }

    async fn perform(
        &self,
        context: &Context,
        data: &ArchiveData,
        effect: ArchiveEffect,
        fence: &Fence<ArchiveState>,
    ) -> Result<()> {
        self.test.run("UPDATE spine.flow SET lease_token = lease_token + 1").await;
        self.archiver.perform(context, data, effect, fence).await
    }
}

#[tokio::test]
async fn an_archiver_that_lost_its_lease_archives_nothing() {
    let test = Arc::new(TestDb::with(&[SPINE, MIGRATION_SET]).await);
    let (iam, _feed) = domain(&test).await;
    let mut context = test.context("operator");
    context.standing = Arc::new(Standing::of([Grant::fixed(Place::Platform, crate::PLATFORM_OPERATOR)]));
    for projects in [1, 0] {
        let labels = Default::default();
        let made = iam.organization_create(&context, name(&format!("o{projects}")), labels).await.unwrap();
        for number in 0..projects {
            let labels = Default::default();
            iam.project_create(&context, made.id, name(&format!("p{number}")), labels).await.unwrap();
        }
        iam.organization_archive(&context, made.id, None).await.unwrap();
        let archiver = ArchiveOrganization { iam: iam.clone() };
        let machine = Overtaken { archiver, test: Arc::clone(&test) };
        let internal = test.db.internal(Overtaken::KIND);
        let runner =
            Runner::new(machine, internal, test.db.clock(), test.nudges.clone(), test.settings.clone());
        assert_eq!(Box::pin(runner.run_once()).await.unwrap(), 1);
        let archived = "SELECT (SELECT count(*) FROM iam.project WHERE state = 'archived')
                             + (SELECT count(*) FROM iam.organization WHERE state = 'archived')";
        assert_eq!(test.count(archived).await, 0, "with {projects} projects");
    }
}
