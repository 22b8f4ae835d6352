//! The floor without `pgbench`: its tables, its statements, its distribution, over the driver gpuaasd uses.

use std::time::{Duration, Instant};

use futures::future::try_join_all;
use tokio_postgres::{Client, Config, NoTls, Statement};

use super::{Load, SCALE, SELECT_SCALE};
use crate::Result;
use crate::load::CONNECTIONS;

// fixed: pgbench's own sizes per unit of scale
const ACCOUNTS: u32 = 100_000;
// fixed: as above
const TELLERS: u32 = 10;

const FILL: &str = "
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int NOT NULL, filler char(88)) WITH (fillfactor = 100);
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int NOT NULL, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int NOT NULL, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))";

const SELECT: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";
const TRANSFER: [&str; 5] = [
    "UPDATE pgbench_accounts SET abalance = abalance + $2 WHERE aid = $1",
    SELECT,
    "UPDATE pgbench_tellers SET tbalance = tbalance + $2 WHERE tid = $1",
    "UPDATE pgbench_branches SET bbalance = bbalance + $2 WHERE bid = $1",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
];

pub async fn fill(admin: &Config) -> Result<()> {
    let client = connect(admin).await?;
    client.batch_execute(FILL).await?;
    for (table, rows, columns) in [
        ("pgbench_branches", SCALE, "n, 0"),
        ("pgbench_tellers", SCALE * TELLERS, "n, (n - 1) / 10 + 1, 0"),
        ("pgbench_accounts", SCALE * ACCOUNTS, "n, (n - 1) / 100000 + 1, 0, ''"),
    ] {
        let fill = format!("INSERT INTO {table} SELECT {columns} FROM generate_series(1, {rows}) AS n");
        client.batch_execute(&fill).await?;
    }
    client.batch_execute("VACUUM ANALYZE").await?;
    Ok(())
}

pub async fn run(admin: &Config, load: Load, time: Duration) -> Result<(u64, Duration)> {
    let clients = try_join_all((0..CONNECTIONS).map(|_| connect(admin))).await?;
    let begun = Instant::now();
    let tasks = clients.into_iter().zip(1..).map(|(client, seed)| {
        tokio::spawn(async move {
            match load {
                Load::Select => selects(&client, seed, begun, time).await,
                Load::Transfer => transfers(&client, seed, begun, time).await,
            }
        })
    });
    let mut done = 0;
    for task in tasks.collect::<Vec<_>>() {
        done += task.await??;
    }
    Ok((done, begun.elapsed()))
}

async fn selects(client: &Client, seed: u64, begun: Instant, time: Duration) -> Result<u64> {
    let select = client.prepare(SELECT).await?;
    let (mut chance, mut done) = (Chance(seed), 0);
    while begun.elapsed() < time {
        client.query_one(&select, &[&chance.up_to(SELECT_SCALE * ACCOUNTS)]).await?;
        done += 1;
    }
    Ok(done)
}

async fn transfers(client: &Client, seed: u64, begun: Instant, time: Duration) -> Result<u64> {
    let mut prepared: Vec<Statement> = Vec::new();
    for statement in TRANSFER {
        prepared.push(client.prepare(statement).await?);
    }
    let (mut chance, mut done) = (Chance(seed), 0);
    while begun.elapsed() < time {
        let account = chance.up_to(SCALE * ACCOUNTS);
        let (teller, branch) = (chance.up_to(SCALE * TELLERS), chance.up_to(SCALE));
        let delta = chance.up_to(10_001) - 5_001;
        client.batch_execute("BEGIN").await?;
        client.execute(&prepared[0], &[&account, &delta]).await?;
        client.query_one(&prepared[1], &[&account]).await?;
        client.execute(&prepared[2], &[&teller, &delta]).await?;
        client.execute(&prepared[3], &[&branch, &delta]).await?;
        client.execute(&prepared[4], &[&teller, &branch, &account, &delta]).await?;
        client.batch_execute("COMMIT").await?;
        done += 1;
    }
    Ok(done)
}

async fn connect(admin: &Config) -> Result<Client> {
    let (client, connection) = admin.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Even enough for choosing rows, and the same in every run (splitmix64).
struct Chance(u64);

impl Chance {
    /// A number from 1 to `most`.
    fn up_to(&mut self, most: u32) -> i32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let number = (mixed ^ (mixed >> 31)) % u64::from(most) + 1;
        i32::try_from(number).unwrap_or(i32::MAX)
    }
}
