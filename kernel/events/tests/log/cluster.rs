//! A database that was carried into another PostgreSQL by hand: `pg_dump` here, `psql` there, and on.

use testkit::{PrivatePostgres, TestDb, released};

use crate::{happen, logged, sequence, sequencer};

/// Takes transaction ids, so that the mark is far ahead of what a new server gives out.
const MANY_TRANSACTIONS: &str =
    "DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";

async fn epoch(test: &TestDb) -> i64 {
    test.count("SELECT epoch::bigint FROM spine.sequencer").await
}

#[tokio::test]
async fn a_dump_brought_by_hand_loses_nothing_and_repeats_nothing() {
    let (old_server, new_server) = (PrivatePostgres::start().await, PrivatePostgres::start().await);
    let old = TestDb::plan_kernel().on(&old_server).start().await;
    old.run(MANY_TRANSACTIONS).await;
    for name in ["a", "b"] {
        happen(&old, name).await;
    }
    sequence(&old, &sequencer(&old)).await;
    for name in ["c", "d"] {
        happen(&old, name).await;
    }
    // Waiting events keep the order of their transactions, whatever their ids sort like.
    old.run("UPDATE spine.outbox SET id = 'ffffffff-0000-7000-8000-000000000000' WHERE data->>'name' = 'c'")
        .await;
    let dump = released::dump(&old).await;

    let new = released::restore_into(TestDb::plan(&[]).on(&new_server), &dump).await;
    // Written here before any sequencer looked, with an id far below the mark that came along.
    happen(&new, "e").await;
    let below = "SELECT count(*) FROM spine.outbox o, spine.sequencer s WHERE data->>'name' = 'e' AND o.xid < s.done_xid";
    assert_eq!(new.count(below).await, 1, "the test shows nothing unless the new server counts from below");
    sequence(&new, &sequencer(&new)).await;
    assert_eq!(logged(&new).await, ["a", "b", "c", "d", "e"]);
    assert_eq!(epoch(&new).await, 2, "cursors of the old server have expired");
    happen(&new, "f").await;
    sequence(&new, &sequencer(&new)).await;
    assert_eq!(logged(&new).await, ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(epoch(&new).await, 2, "it moves in once");
}

/// `pg_upgrade` changes who the server is and nothing else.
#[tokio::test]
async fn a_server_that_was_upgraded_repeats_nothing() {
    let test = TestDb::kernel().await;
    let sequencer = sequencer(&test);
    for name in ["a", "b"] {
        happen(&test, name).await;
    }
    sequence(&test, &sequencer).await;
    happen(&test, "c").await;
    test.run("UPDATE spine.sequencer SET cluster = 1").await;
    sequence(&test, &sequencer).await;
    assert_eq!(logged(&test).await, ["a", "b", "c"]);
}
