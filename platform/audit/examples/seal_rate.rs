//! How fast entries are sealed, on a throwaway PostgreSQL: `cargo run --release -p audit --example seal_rate`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use audit::{SealKeys, Sealer};
use db::{Internal, Login};
use merkle::SignerKey;
use testkit::{SPINE, TestDb};

const ENTRIES: u32 = 100_000;

/// Entries like those of a rename: about 900 bytes a line.
const FILL: &str = "
INSERT INTO spine.audit_entry (id, at, org_id, actor_kind, actor_id, action, resource_kind, resource_id, generation,
    before, after, correlation_id, policy_version)
SELECT gen_random_uuid(), now(), gen_random_uuid(), 'user', 'opr_test', 'iam.project.rename', 'project', 'prj_' || n, 1,
    json_build_object('name', repeat('a', 200)), json_build_object('name', repeat('b', 200)), gen_random_uuid(), 1
FROM generate_series(1, 100000) n";

#[tokio::main]
async fn main() {
    let test = TestDb::with(&[SPINE, iam::MIGRATION_SET, audit::MIGRATION_SET]).await;
    test.run(FILL).await;
    let key = SignerKey::from_seed("audit.rate", &[7; 32]).expect("a seed is 32 bytes");
    let internal = Internal::new(test.pool(Login::Sealer, 2), "rate", false);
    let sealer = Sealer::new(
        internal,
        Arc::clone(&test.clock),
        test.nudges.clone(),
        test.settings.clone(),
        Arc::new(SealKeys::from(key)),
    );
    let (begun, mut sealed, mut steps) = (Instant::now(), 0, 0);
    while sealed < ENTRIES as usize {
        sealed += sealer.step().await.expect("seal a batch").sealed;
        steps += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rate = f64::from(ENTRIES) / seconds;
    let text = format!("sealed {sealed} entries in {steps} transactions, {seconds:.2} s: {rate:.0}/s\n");
    std::io::stdout().write_all(text.as_bytes()).expect("a terminal");
}
