//! All statements on `spine.flow`. Leases are measured by the database's clock, schedules by the injected one.
//!
//! What a crash of PostgreSQL may take back does not wait for the disk: a lease, its renewal, and giving it back. Lost,
//! they leave the flow where its last transition put it, due again, for another worker to lease. A worker that still
//! believes in a lost lease has a token no row carries: tokens are random, because a counter that the crash set back
//! would give the same one again, at the same generation, and two workers would hold it. Transitions are durable before
//! anyone acts on them.

pub(crate) const START: &str = "
INSERT INTO spine.flow (id, kind, key, org_id, state, data, wake_at, entered_at, deadline_at, correlation_id, causation_id,
                        traceparent, created_at)
VALUES ($1, $2, $3, $4, $5, $6::text::json, $7, $7, $8, $9, $10, $11, $7)
ON CONFLICT (kind, key) WHERE done_at IS NULL DO UPDATE SET wake_at = least(spine.flow.wake_at, $7), woken = true
RETURNING id";

/// A flow that a worker has leased is due already; `woken` tells that worker that its facts are old.
pub(crate) const WAKE: &str = "
UPDATE spine.flow SET wake_at = least(wake_at, $3), woken = true WHERE kind = $1 AND key = $2 AND done_at IS NULL";

/// Leases due rows in one statement; rows another worker is looking at are skipped. Each lease has a token never seen before.
pub(crate) const LEASE: &str = "
UPDATE spine.flow SET lease_token = hashtextextended(gen_random_uuid()::text, 0),
       lease_until = clock_timestamp() + make_interval(secs => $3), woken = false
WHERE id IN (
    SELECT id FROM spine.flow
    WHERE kind = $1 AND done_at IS NULL AND wake_at <= $2 AND lease_until < clock_timestamp()
    ORDER BY wake_at LIMIT $4 FOR UPDATE SKIP LOCKED)
    AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
RETURNING id, key, org_id, state, data::text, generation, lease_token, attempts, correlation_id, traceparent, entered_at, deadline_at";

/// A transition. The generation moves with every one, so a stale worker's update finds no row.
pub(crate) const ADVANCE: &str = "
UPDATE spine.flow SET state = $4, generation = generation + 1, entered_at = $5, deadline_at = $6, attempts = 0,
       last_error = NULL, waiting_for = NULL
WHERE id = $1 AND lease_token = $2 AND generation = $3 AND done_at IS NULL
RETURNING generation";

/// Keeps the lease from being taken over until the transaction ends.
pub(crate) const HOLD: &str = "
SELECT id FROM spine.flow WHERE id = $1 AND lease_token = $2 AND generation = $3 AND done_at IS NULL FOR NO KEY UPDATE";

/// Gives the lease back until `$4`; at once, if the flow was woken since it was leased. Says so.
pub(crate) const WAIT: &str = "
UPDATE spine.flow SET wake_at = CASE WHEN woken THEN wake_at ELSE $4::timestamptz END, waiting_for = $5, attempts = $6,
       last_error = $7, lease_until = '-infinity'
WHERE id = $1 AND lease_token = $2 AND generation = $3 AND done_at IS NULL
    AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
RETURNING woken";

/// Ends the flow; if it was woken since it was leased, it stays due instead, and is asked again.
pub(crate) const DONE: &str = "
UPDATE spine.flow SET done_at = CASE WHEN woken THEN NULL ELSE $4::timestamptz END, waiting_for = NULL, last_error = NULL,
       lease_until = '-infinity', generation = generation + 1
WHERE id = $1 AND lease_token = $2 AND generation = $3 AND done_at IS NULL
    AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
RETURNING woken";

/// By the token alone: an effect that has advanced the flow, but not committed yet, is ahead of the row's generation.
pub(crate) const RENEW: &str = "
UPDATE spine.flow SET lease_until = clock_timestamp() + make_interval(secs => $3)
WHERE id = $1 AND lease_token = $2 AND done_at IS NULL
    AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
RETURNING id";

pub(crate) const FORGET_DONE: &str = "DELETE FROM spine.flow WHERE done_at < $1";

pub(crate) const OVERDUE: &str = "
SELECT state, count(*) FROM spine.flow WHERE kind = $1 AND done_at IS NULL AND deadline_at < $2 GROUP BY state";
