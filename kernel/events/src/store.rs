//! All statements on the log, the sequencer's mark, consumers and parked events.
//!
//! A consumer's steps forward do not wait for the disk: if PostgreSQL crashes and forgets one, events are handled again,
//! as after any crash, and a projection forgets its rows with it. Taking the place does wait: a forgotten token would
//! be given out twice.

/// The sequencer's mark, and whether this transaction may move it. An advisory lock, not a row lock: a row lock would
/// give this transaction an id early, and hold back its own horizon and everybody else's.
pub(crate) const SEQUENCER_TAKE: &str = "
SELECT pg_try_advisory_xact_lock(7305804402461438), last_position, done_xid::text, done_id, cluster = system_identifier
FROM spine.sequencer, pg_control_system()";

/// What follows reads the outbox and days of the log once, and nobody waits for it: longer than the login usually may.
pub(crate) const ADOPT_PATIENCE: &str = "SELECT set_config('statement_timeout', '10min', true)";

/// First half of moving into another PostgreSQL: events that have a position leave the outbox. Told by their ids, for
/// here old and new transaction ids are mixed and do not compare. (A day, because clocks differ.)
pub(crate) const ADOPT_FORGET: &str = "
DELETE FROM spine.outbox o USING spine.log l
WHERE l.id = o.id AND l.sequenced_at >= (SELECT min(at) FROM spine.outbox) - interval '1 day'";

/// Second half: events that came here without a position get one now, in the order of the server they came from; they
/// are those whose row was not written by the transaction it names. What was written here stays and is next: the mark
/// begins below every id that this server gives out. The new epoch tells readers that their cursors are of another
/// history.
pub(crate) const ADOPT: &str = "
WITH waiting AS (
    SELECT xid, id, at, org_id, project_id, type, subject, generation, data, correlation_id, causation_id, traceparent,
           row_number() OVER (ORDER BY xid, id) AS n
    FROM spine.outbox WHERE xmin::text::bigint <> (xid::text::bigint & 4294967295)
), mark AS (
    UPDATE spine.sequencer SET epoch = epoch + 1, cluster = system_identifier, last_at = greatest(last_at, clock_timestamp()),
           last_position = last_position + (SELECT count(*) FROM waiting),
           done_xid = '1', done_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
    FROM pg_control_system()
    RETURNING last_position - (SELECT count(*) FROM waiting) AS before, last_at, epoch
), moved AS (
    INSERT INTO spine.log (position, sequenced_at, epoch, id, at, org_id, project_id, type, subject, generation, data,
                           correlation_id, causation_id, traceparent)
    SELECT mark.before + n, mark.last_at, mark.epoch, id, at, org_id, project_id, type, subject, generation, data,
           correlation_id, causation_id, traceparent
    FROM waiting, mark
), gone AS (
    DELETE FROM spine.outbox o USING waiting w WHERE o.xid = w.xid AND o.id = w.id AND o.at = w.at
)
SELECT (SELECT count(*) FROM waiting), (SELECT epoch FROM mark)";

/// Run once, by a superuser, in a database restored into another PostgreSQL, before anything else connects: what a
/// sequencer would do that found itself there.
pub const NEW_CLUSTER: [&str; 2] = [ADOPT_FORGET, ADOPT];

/// Moves final events from the outbox to the log. Final: their transaction is older than every running one.
pub(crate) const SEQUENCER_STEP: &str = "
WITH batch AS (
    SELECT xid, id, at, org_id, project_id, type, subject, generation, data, correlation_id, causation_id, traceparent,
           row_number() OVER (ORDER BY xid, id) AS n
    FROM (
        SELECT * FROM spine.outbox
        WHERE xid >= $2::text::xid8 AND (xid, id) > ($2::text::xid8, $3)
          AND xid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY xid, id LIMIT $4
    ) AS ready
), tail AS (
    SELECT xid, id, n FROM batch ORDER BY n DESC LIMIT 1
), mark AS (
    UPDATE spine.sequencer SET last_position = last_position + tail.n, last_at = greatest(last_at, $5),
           done_xid = tail.xid, done_id = tail.id
    FROM tail WHERE last_position = $1
    RETURNING last_at, epoch
), moved AS (
    INSERT INTO spine.log (position, sequenced_at, epoch, id, at, org_id, project_id, type, subject, generation, data,
                           correlation_id, causation_id, traceparent)
    SELECT $1 + n, mark.last_at, mark.epoch, id, at, org_id, project_id, type, subject, generation, data,
           correlation_id, causation_id, traceparent
    FROM batch, mark
)
SELECT (SELECT count(*) FROM batch), (SELECT count(*) FROM mark),
       EXISTS (SELECT FROM spine.outbox WHERE xid >= pg_snapshot_xmin(pg_current_snapshot()))";

pub(crate) const HEAD: &str = "
SELECT last_position, epoch, greatest(last_at, 'epoch'::timestamptz) FROM spine.sequencer";

/// The time bound prunes partitions: positions and `sequenced_at` grow together.
pub(crate) const EVENTS_AFTER: &str = "
SELECT position, sequenced_at, epoch, id, at, org_id, project_id, type, subject, generation, data::text,
       correlation_id, causation_id, traceparent
FROM spine.log WHERE position > $1 AND sequenced_at >= $2 ORDER BY position LIMIT $3";

/// The same of one organization, by `log_by_org`.
pub(crate) const EVENTS_OF_ORGANIZATION_AFTER: &str = "
SELECT position, sequenced_at, epoch, id, at, org_id, project_id, type, subject, generation, data::text,
       correlation_id, causation_id, traceparent
FROM spine.log WHERE org_id = $4 AND position > $1 AND sequenced_at >= $2 ORDER BY position LIMIT $3";

pub(crate) const OLDEST: &str = "SELECT position FROM spine.log ORDER BY position LIMIT 1";

/// The last position before a time, else the one before the oldest event kept, else the log's end.
pub(crate) const POSITION_BEFORE: &str = "
SELECT coalesce(
    (SELECT position FROM spine.log WHERE sequenced_at < $1 ORDER BY position DESC LIMIT 1),
    (SELECT position - 1 FROM spine.log ORDER BY position LIMIT 1),
    (SELECT last_position FROM spine.sequencer))";

pub(crate) const CONSUMER_ADD: &str =
    "INSERT INTO spine.consumer (name, position) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";

/// A new consumer begins with the oldest event kept: what went before it was made is not its to miss.
pub(crate) const CONSUMER_ADD_AT_OLDEST: &str = "
INSERT INTO spine.consumer (name, position)
SELECT $1, coalesce((SELECT position - 1 FROM spine.log ORDER BY position LIMIT 1), (SELECT last_position FROM spine.sequencer))
WHERE NOT EXISTS (SELECT FROM spine.consumer WHERE name = $1)
ON CONFLICT (name) DO NOTHING";

pub(crate) const CONSUMER_TAKE: &str = "
UPDATE spine.consumer SET lease_token = lease_token + 1, lease_until = clock_timestamp() + make_interval(secs => $2)
WHERE name = $1 AND lease_until < clock_timestamp()
RETURNING lease_token, position, position_at, attempts";

pub(crate) const CONSUMER_ADVANCE: &str = "
UPDATE spine.consumer SET position = $3, position_at = $4, attempts = 0, updated_at = clock_timestamp(),
       lease_until = clock_timestamp() + make_interval(secs => $5)
WHERE name = $1 AND lease_token = $2 AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
RETURNING position";

pub(crate) const CONSUMER_RENEW: &str = "
UPDATE spine.consumer SET lease_until = clock_timestamp() + make_interval(secs => $3), attempts = $4
WHERE name = $1 AND lease_token = $2 AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
RETURNING position";

pub(crate) const CONSUMER_FREE: &str = "
UPDATE spine.consumer SET lease_until = '-infinity'
WHERE name = $1 AND lease_token = $2 AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'";

pub(crate) const CONSUMER_RESET: &str = "
UPDATE spine.consumer SET position = $2, position_at = $3, lease_token = lease_token + 1, lease_until = '-infinity'
WHERE name = $1";

pub(crate) const PARK: &str = "
INSERT INTO spine.parked_event (consumer, position, event_id, type, error, attempts, parked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (consumer, position) DO NOTHING";

pub(crate) const PARKED_LIST: &str = "
SELECT consumer, position, event_id, type, error, attempts, parked_at FROM spine.parked_event
ORDER BY parked_at DESC, consumer, position DESC LIMIT $1";

/// Each reader's distance to the log's end, and when the first event that it has not read got its position.
pub(crate) const CONSUMER_LAGS: &str = "
SELECT c.name, greatest(s.last_position - c.position, 0), unread.sequenced_at
FROM spine.sequencer s, spine.consumer c LEFT JOIN LATERAL (
    SELECT sequenced_at FROM spine.log l WHERE l.position > c.position AND l.sequenced_at >= c.position_at
    ORDER BY l.position LIMIT 1
) AS unread ON true
ORDER BY c.name";

/// The first event in the order of sequencing that has no position yet: the oldest, give or take a transaction.
pub(crate) const OUTBOX_OLDEST_WAITING: &str = "
SELECT o.at FROM spine.sequencer s, spine.outbox o
WHERE o.xid >= s.done_xid AND (o.xid, o.id) > (s.done_xid, s.done_id) ORDER BY o.xid, o.id LIMIT 1";

/// One at a time writes a projection's rows: two that lock them in different order would wait for each other. Not the
/// consumer's row, whose lease is renewed meanwhile.
pub(crate) const PROJECTION_LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('projection ' || $1::text, 0))";

pub(crate) const CONSUMER_AS_OF: &str = "
SELECT position, greatest(position_at, 'epoch'::timestamptz) FROM spine.consumer WHERE name = $1";
