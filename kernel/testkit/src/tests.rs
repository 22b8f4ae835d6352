//! The kit itself: isolated databases, nothing left behind.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::*;

#[tokio::test]
async fn each_test_has_a_database_of_its_own_and_it_goes_with_the_test() {
    let (one, other) = (TestDb::kernel().await, TestDb::kernel().await);
    toy::create(&one.db, &one.context("someone"), toy::org(1), "a").await.unwrap();
    assert_eq!(one.count("SELECT count(*) FROM toy.thing").await, 1);
    assert_eq!(other.count("SELECT count(*) FROM toy.thing").await, 0);

    let gone = format!("SELECT count(*) FROM pg_database WHERE datname = '{}'", one.name());
    drop(one);
    eventually("the database is dropped", async || other.count(&gone).await == 0).await;
}

#[tokio::test]
async fn the_manual_clock_is_what_the_database_handle_reads() {
    let test = TestDb::plan_kernel().at("2026-01-31T23:59:59Z").start().await;
    test.advance(std::time::Duration::from_secs(2));
    assert_eq!(test.db.now().to_string(), "2026-02-01T00:00:01Z");
}

/// What a copy costs, for whoever wonders why tests are slow. Run with `--nocapture`; never fails by the clock.
#[tokio::test]
#[allow(clippy::print_stderr)]
async fn the_cost_of_a_database() {
    drop(TestDb::kernel().await);
    let begun = Instant::now();
    let tests =
        [TestDb::kernel().await, TestDb::kernel().await, TestDb::kernel().await, TestDb::kernel().await];
    eprintln!("a database: {:?}", begun.elapsed() / 4);
    let begun = Instant::now();
    for test in &tests {
        test.client(db::Login::App).await;
    }
    eprintln!("a connection: {:?}", begun.elapsed() / 4);
}

/// A child that a killed test process started must not survive it; nor its directory.
#[test]
fn nothing_survives_a_killed_test_process() {
    if let Some(marker) = std::env::var_os("TESTKIT_VICTIM") {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let server = PrivatePostgres::start().await;
            std::fs::write(&marker, server.directory().to_str().unwrap()).unwrap();
            std::future::pending::<()>().await;
        });
    }
    let scratch = Scratch::new("victim");
    let marker = scratch.path().join("directory");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::nothing_survives_a_killed_test_process"])
        .env("TESTKIT_VICTIM", &marker)
        .spawn()
        .unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let directory = runtime.block_on(eventually_some("the victim has a server", async || {
        std::fs::read_to_string(&marker).ok().filter(|text| !text.is_empty())
    }));
    assert!(Path::new(&directory).exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    runtime.block_on(eventually("its directory is gone", async || !Path::new(&directory).exists()));
}

#[tokio::test]
async fn the_proxy_counts_waiting_and_not_statements() {
    let proxy = Proxy::start().await;
    let test = TestDb::plan_kernel().through(&proxy).start().await;
    let client = proxy.redirect(&test.target(db::Login::App)).connect().await.unwrap();
    let pipelined =
        async { futures::join!(client.simple_query("SELECT 1"), client.simple_query("SELECT 2")) };
    assert_eq!(proxy.round_trips(pipelined).await.1, 1);
    let one_by_one = async {
        client.simple_query("SELECT 1").await.unwrap();
        client.simple_query("SELECT 2").await.unwrap();
    };
    assert_eq!(proxy.round_trips(one_by_one).await.1, 2);
}

#[tokio::test]
async fn a_future_is_cut_at_each_of_its_awaits() {
    let cuts = cut_at_every_await(
        async || {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        },
        async |_| {},
    );
    assert_eq!(cuts.await, 2);
}

#[tokio::test]
async fn nats_comes_back_with_what_it_had_and_can_lose_it() {
    let mut nats = NatsServer::start().await;
    let greeting = async |nats: &NatsServer| {
        let address = nats.url().replace("nats://", "");
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut text = vec![0u8; 4096];
        let length = tokio::io::AsyncReadExt::read(&mut stream, &mut text).await.unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    assert!(greeting(&nats).await.contains("\"jetstream\":true"));
    nats.start_again().await;
    nats.start_again_empty().await;
    assert!(greeting(&nats).await.contains("\"jetstream\":true"));
}
