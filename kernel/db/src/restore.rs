//! What a database needs to be told after it was copied into another PostgreSQL.
//!
//! The spine orders by transaction id, and those ids mean nothing in another cluster: there they start low again, so
//! the copied rows would look as if they came from the future. After a restore everything that already had its
//! position gets the lowest id there is and everything still waiting the next one; both are lower than any id the new
//! cluster will give out. A new epoch tells readers that their cursors are of another history.

/// Run once, by a superuser, in the restored database, before anything else connects.
pub const NEW_CLUSTER: &str = "
SET session_replication_role = replica;
DELETE FROM spine.outbox o USING spine.sequencer s WHERE (o.xid, o.id) <= (s.done_xid, s.done_id);
UPDATE spine.outbox SET xid = '2';
UPDATE spine.sequencer SET epoch = epoch + 1, done_xid = '1', done_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
UPDATE spine.consumer SET lease_until = '-infinity';
UPDATE spine.flow SET lease_until = '-infinity' WHERE done_at IS NULL;
RESET session_replication_role;";

/// What a backup is as of: the exported snapshot, the time, the server, the last position, the number of audit entries.
pub const SNAPSHOT_FACTS: &str = "
SELECT pg_export_snapshot(), clock_timestamp(), current_setting('server_version'), last_position,
       (SELECT count(*) FROM spine.audit_entry)
FROM spine.sequencer";
