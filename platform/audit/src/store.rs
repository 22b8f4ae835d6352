//! All SQL of the audit domain, beside the mapping of its rows.
//!
//! Entries are read from `spine.audit_entry`, which every domain's changes are written to; this domain owns their
//! sealing and reading and never writes there. Everything it writes is in the schema `audit`.

use db::Row;
use merkle::{Hash, StoredHash};
use types::Timestamp;
use uuid::Uuid;

use crate::canonical::EntryRow;
use crate::model::SignedCheckpoint;

/// The columns of an entry, in the order [`entry_row`] reads them.
macro_rules! entry_columns {
    () => {
        "e.xid::text, e.id, e.at, e.org_id, e.project_id, e.actor_kind, e.actor_id, e.behalf_kind, e.behalf_id, e.credential,
         e.action, e.resource_kind, e.resource_id, e.generation, e.before::text AS before, e.after::text AS after,
         e.correlation_id, e.causation_id, e.policy_version"
    };
}
/// How many those are: further columns follow from here.
const ENTRY_COLUMNS: usize = 19;

// ------------------------------------------------------------------------------------------------------------ sealing

/// The tree's edge, and whether this transaction may move it. An advisory lock, not a row lock: a row lock would give
/// this transaction an id early and hold back the horizon, its own and everybody else's.
pub const TREE_TAKE: &str = "
SELECT pg_try_advisory_xact_lock(7305804402461439), t.size, t.frontier, t.done_xid::text, t.done_id,
       era.cluster = c.system_identifier, era.number,
       (SELECT k.verifier_key FROM audit.signing_key k ORDER BY k.from_size DESC LIMIT 1)
FROM audit.tree t, pg_control_system() c, (SELECT * FROM audit.era ORDER BY number DESC LIMIT 1) AS era";

/// The next entries in order, and only final ones: their transaction is older than every running one, so nothing can
/// still appear among them or before them. Entries sealed in an earlier era may have any transaction id: they are left
/// out by their leaf. The running sum of bytes bounds what comes back; one entry always does.
pub const SEAL_BATCH: &str = concat!(
    "SELECT * FROM (
         SELECT ready.*, row_number() OVER w AS n,
                sum(coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0)) OVER w AS bytes
         FROM (
             SELECT ",
    entry_columns!(),
    ", e.xid AS place FROM spine.audit_entry e
             WHERE e.xid >= $1::text::xid8 AND (e.xid, e.id) > ($1::text::xid8, $2)
               AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
               AND ($5 = 1 OR NOT EXISTS (SELECT FROM audit.leaf l WHERE l.entry_id = e.id AND l.era < $5))
             ORDER BY e.xid, e.id LIMIT $3
         ) AS ready
         WINDOW w AS (ORDER BY place, id ROWS UNBOUNDED PRECEDING)
     ) AS batch
     WHERE bytes <= $4 OR n = 1 ORDER BY n"
);

/// Appends a batch, if the tree still has the size it was read at. All of it or nothing.
pub const SEAL_WRITE: &str = "
WITH mark AS (
    UPDATE audit.tree SET size = $2, frontier = $3, done_xid = $4::text::xid8, done_id = $5, sealed_at = $6
    WHERE size = $1 RETURNING size
), leaf AS (
    INSERT INTO audit.leaf (index, hash, era, xid, entry_id, at)
    SELECT $1 + l.n - 1, l.hash, $16, l.xid::xid8, l.id, l.at
    FROM mark, unnest($7::bytea[], $8::text[], $9::uuid[], $10::timestamptz[])
        WITH ORDINALITY AS l (hash, xid, id, at, n)
), node AS (
    INSERT INTO audit.node (level, index, hash)
    SELECT n.level, n.index, n.hash
    FROM mark, unnest($11::smallint[], $12::bigint[], $13::bytea[]) AS n (level, index, hash)
), signed AS (
    INSERT INTO audit.checkpoint (size, root, note, at) SELECT $2, $14, $15, $6 FROM mark
)
SELECT size FROM mark";

/// Gives no row if a key is known from there already: another sealer was first.
pub const KEY_PUBLISH: &str = "
INSERT INTO audit.signing_key (from_size, verifier_key, at) VALUES ($1, $2, $3)
ON CONFLICT (from_size) DO NOTHING RETURNING from_size";

/// A PostgreSQL with another identity and the same transaction ids going on, as pg_upgrade leaves it: every entry up
/// to the mark is sealed, and the counter is beyond the mark. Only then do old and new ids sort as they should.
pub const ERA_ADOPT: &str = "
INSERT INTO audit.era (number, from_size, cluster)
SELECT $1 + 1, t.size, c.system_identifier FROM audit.tree t, pg_control_system() c
WHERE t.done_xid < pg_snapshot_xmin(pg_current_snapshot())
  AND NOT EXISTS (
      SELECT FROM spine.audit_entry e
      WHERE (e.xid, e.id) <= (t.done_xid, t.done_id)
        AND NOT EXISTS (SELECT FROM audit.leaf l WHERE l.entry_id = e.id))
RETURNING number";

/// Run once, by a superuser, in a database restored into another PostgreSQL, before anything else connects. What was not
/// sealed yet gets a transaction id below any the new server will give out; what was keeps its own, which is part of the
/// sealed bytes. The mark begins again below them all.
pub const NEW_CLUSTER: &str = "
SET session_replication_role = replica;
UPDATE spine.audit_entry e SET xid = '2' WHERE NOT EXISTS (SELECT FROM audit.leaf l WHERE l.entry_id = e.id);
INSERT INTO audit.era SELECT max(e.number) + 1, max(t.size), max(c.system_identifier)
    FROM audit.era e, audit.tree t, pg_control_system() c;
UPDATE audit.tree SET done_xid = '1', done_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
RESET session_replication_role;";

/// When the oldest entry that is not sealed was written. Above the next transaction id lie only entries of an earlier era,
/// all of them sealed: after a restore these may be the whole log.
pub const OLDEST_UNSEALED: &str = "
SELECT e.at FROM audit.tree t CROSS JOIN LATERAL (
    SELECT e.at FROM spine.audit_entry e
    WHERE e.xid >= t.done_xid AND (e.xid, e.id) > (t.done_xid, t.done_id)
      AND e.xid < pg_snapshot_xmax(pg_current_snapshot())
      AND NOT EXISTS (SELECT FROM audit.leaf l WHERE l.entry_id = e.id)
    ORDER BY e.xid, e.id LIMIT 1) e";

/// How many entries there are behind the first `$1`, sealed or not.
pub const NEWER_COUNT: &str = "
SELECT t.size - $1 + (
    SELECT count(*) FROM spine.audit_entry e
    WHERE e.xid >= t.done_xid AND (e.xid, e.id) > (t.done_xid, t.done_id)
      AND e.xid < pg_snapshot_xmax(pg_current_snapshot())
      AND NOT EXISTS (SELECT FROM audit.leaf l WHERE l.entry_id = e.id))
FROM audit.tree t";

// ------------------------------------------------------------------------------------------------------------ reading

/// A page of sealed entries by number, from `$1` up to `$2`. Not by time: that is taken before the commit, so an entry could
/// still appear before those a reader has seen. Within an era numbers and places order alike, so each era's part of the page
/// is read along an index, and no further than the page is long. The conditions are written so that PostgreSQL does not
/// think them rare, which would make it read everything and sort: a pair of plain comparisons, or five of `IS NULL OR`, do.
macro_rules! listing {
    ($whose:literal) => {
        concat!(
            "WITH span AS (
                 SELECT number AS era, greatest(from_size, $1::bigint) AS low,
                        least(lead(from_size) OVER (ORDER BY number), $2::bigint) AS high
                 FROM audit.era
             ), bound AS (
                 SELECT span.era, low.xid AS low_xid, low.entry_id AS low_id, high.xid AS high_xid, high.entry_id AS high_id
                 FROM span JOIN audit.leaf low ON low.index = span.low JOIN audit.leaf high ON high.index = span.high - 1
                 WHERE span.low < span.high
             )
             SELECT ",
            entry_columns!(),
            ", e.index FROM bound b CROSS JOIN LATERAL (
                 SELECT e.*, l.index FROM spine.audit_entry e JOIN audit.leaf l ON l.entry_id = e.id AND l.era = b.era
                 WHERE ",
            $whose,
            " (e.xid, e.id) >= (b.low_xid, b.low_id) AND (e.xid, e.id) <= (b.high_xid, b.high_id)
                   AND e.at >= coalesce($3::timestamptz, '-infinity')
                   AND (e.at, e.xid) < (coalesce($4::timestamptz, 'infinity'), '0'::xid8)
                   AND CASE WHEN e.actor_id <> $5::text THEN false
                            WHEN e.resource_id <> $6::text THEN false
                            WHEN e.action <> $7::text THEN false
                            WHEN NOT starts_with(e.action, $8::text) THEN false
                            WHEN e.correlation_id <> $9::uuid THEN false
                            ELSE true END
                 ORDER BY e.xid, e.id LIMIT $10
             ) AS e ORDER BY e.index LIMIT $10"
        )
    };
}

/// An organization's entries.
pub const ENTRY_LIST: &str = listing!("e.org_id = $11 AND");

/// Everybody's entries, and those that are nobody's.
pub const LOG_LIST: &str = listing!("");

/// Making an organization leaves an entry in it: one without any does not exist, unless old entries were pruned.
pub const ORGANIZATION_EXISTS: &str = "
(SELECT 1 FROM spine.audit_entry e WHERE e.org_id = $1 LIMIT 1) UNION ALL (SELECT 1 FROM audit.pruned) LIMIT 1";

pub const CHECKPOINT_NEWEST: &str =
    "SELECT size, root, note, at FROM audit.checkpoint ORDER BY size DESC LIMIT 1";

/// The newest checkpoint of at most that size.
pub const CHECKPOINT_UP_TO: &str =
    "SELECT size, root, note, at FROM audit.checkpoint WHERE size <= $1 ORDER BY size DESC LIMIT 1";

pub const CHECKPOINT_GET: &str = "SELECT size, root, note, at FROM audit.checkpoint WHERE size = $1";

/// At most `$2` checkpoints below a size, evenly spread over the entries: one look into the index each, however many
/// checkpoints there are.
pub const CHECKPOINT_SAMPLE: &str = "
SELECT c.note FROM (
    SELECT DISTINCT (SELECT c.size FROM audit.checkpoint c
                     WHERE c.size <= place.entries AND c.size < $1::bigint ORDER BY c.size DESC LIMIT 1) AS size
    FROM (SELECT ($1::bigint::numeric * n / least($1::bigint, $2::bigint))::bigint AS entries
          FROM generate_series(1, least($1::bigint, $2::bigint)) AS n) AS place
) AS chosen JOIN audit.checkpoint c ON c.size = chosen.size ORDER BY c.size";

/// The log's keys, each but the first with the checkpoint at which it took over.
pub const KEY_LIST: &str = "
SELECT k.verifier_key, k.from_size, c.note FROM audit.signing_key k
LEFT JOIN audit.checkpoint c ON c.size = k.from_size
    AND EXISTS (SELECT FROM audit.signing_key before WHERE before.from_size < k.from_size)
ORDER BY k.from_size";

/// Stored hashes by range: leaves, and the levels above them.
pub const HASH_RANGES: &str = "
SELECT 0::smallint, l.index, l.hash FROM unnest($1::bigint[], $2::bigint[]) AS r (low, high)
CROSS JOIN LATERAL (SELECT index, hash FROM audit.leaf WHERE index >= r.low AND index < r.high) AS l
UNION ALL
SELECT n.level, n.index, n.hash FROM unnest($3::smallint[], $4::bigint[], $5::bigint[]) AS r (level, low, high)
CROSS JOIN LATERAL (
    SELECT level, index, hash FROM audit.node WHERE level = r.level AND index >= r.low AND index < r.high) AS n";

/// Leaves `$1` up to `$2`, with their entries where these are still there.
pub const SEALED_RANGE: &str = concat!(
    "SELECT ",
    entry_columns!(),
    ", l.index, l.hash FROM audit.leaf l
     LEFT JOIN spine.audit_entry e ON e.xid = l.xid AND e.id = l.entry_id AND e.at = l.at
     WHERE l.index >= $1 AND l.index < $2 ORDER BY l.index"
);

pub const ERA_LIST: &str = "SELECT from_size FROM audit.era ORDER BY number";

/// The same for an export, which must also show rows that were put among the sealed ones: every entry whose place lies
/// behind the leaf before `$1` and not behind the last leaf before `$2`, sealed or not, in order. The leaves are of one
/// era; those of another have places that do not compare.
pub const EXPORT_RANGE: &str = concat!(
    "WITH high AS (
         SELECT l.era, l.xid, l.entry_id FROM audit.leaf l WHERE l.index = $2::bigint - 1
     ), low AS (
         SELECT l.xid, l.entry_id FROM audit.leaf l, high WHERE l.index = $1::bigint - 1 AND l.era = high.era
     ), bound AS (
         SELECT high.era, high.xid AS high_xid, high.entry_id AS high_id, coalesce(low.xid, '0'::xid8) AS low_xid,
                coalesce(low.entry_id, '00000000-0000-0000-0000-000000000000') AS low_id
         FROM high LEFT JOIN low ON true
     ), leaf AS (
         SELECT l.index, l.hash, l.xid, l.entry_id, l.at FROM audit.leaf l WHERE l.index >= $1 AND l.index < $2
     ), entry AS (
         SELECT e.* FROM bound b, spine.audit_entry e
         WHERE e.xid >= b.low_xid AND e.xid <= b.high_xid
           AND (e.xid, e.id) > (b.low_xid, b.low_id) AND (e.xid, e.id) <= (b.high_xid, b.high_id)
           AND NOT EXISTS (SELECT FROM audit.leaf o WHERE o.entry_id = e.id AND o.era <> b.era)
           -- In an older era's range an entry of the newest one may lie, not sealed yet: it is no intruder.
           AND (b.era = (SELECT max(number) FROM audit.era)
                OR EXISTS (SELECT FROM audit.leaf o WHERE o.entry_id = e.id)
                OR (e.xid, e.id) <= (SELECT t.done_xid, t.done_id FROM audit.tree t))
     )
     SELECT ",
    entry_columns!(),
    ", leaf.index, leaf.hash, leaf.at FROM leaf FULL JOIN entry e ON e.xid = leaf.xid AND e.id = leaf.entry_id
     ORDER BY coalesce(leaf.xid, e.xid), coalesce(leaf.entry_id, e.id), e.at"
);

// ------------------------------------------------------------------------------------------------------------ pruning

/// The oldest month of entries that ends before `$1`, and how far the second place has come; none without one.
pub const PRUNE_CANDIDATE: &str = "
SELECT p.name, p.lower_at, p.upper_at, d.size FROM audit.entry_partition p, audit.delivery d
WHERE p.upper_at <= $1 AND d.name = 'replica' ORDER BY p.upper_at LIMIT 1";

/// The entries of a span of time, each with its number and hash if it is sealed.
pub const PRUNE_PAGE: &str = "
SELECT e.at, e.id, l.index, l.hash FROM spine.audit_entry e LEFT JOIN audit.leaf l ON l.entry_id = e.id
WHERE e.at >= $1 AND (e.at, e.id) > ($1, $2) AND e.at < $3 ORDER BY e.at, e.id LIMIT $4";

pub const PRUNE: &str = "SELECT audit.partition_drop($1, $2, $3, $4, $5, $6)";

/// The spans of time whose entries are in the second place only.
pub const PRUNED_LIST: &str = "SELECT lower_at, upper_at FROM audit.pruned ORDER BY lower_at";

// --------------------------------------------------------------------------------------------------------- deliveries

pub const DELIVERY_ADD: &str =
    "INSERT INTO audit.delivery (name, updated_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";

/// Where a delivery stands, and the newest checkpoint within reach: the largest at most `$2` entries further, else the
/// next one.
pub const DELIVERY_LOOK: &str = "
SELECT d.size, d.target, coalesce(
    (SELECT max(c.size) FROM audit.checkpoint c WHERE c.size > d.size AND c.size <= d.size + $2),
    (SELECT min(c.size) FROM audit.checkpoint c WHERE c.size > d.size))
FROM audit.delivery d WHERE d.name = $1";

pub const DELIVERY_MARK: &str = "SELECT size, target FROM audit.delivery WHERE name = $1";

pub const DELIVERY_BEGIN: &str = "
UPDATE audit.delivery SET target = $3, updated_at = $4 WHERE name = $1 AND size = $2 AND target = $2 RETURNING target";

/// The place is empty although something was delivered: all of it is delivered again.
pub const DELIVERY_RESTART: &str = "
UPDATE audit.delivery SET size = 0, target = 0, updated_at = $2 WHERE name = $1";

pub const DELIVERY_FINISH: &str = "
UPDATE audit.delivery SET size = $3, updated_at = $4 WHERE name = $1 AND size = $2 AND target = $3 RETURNING size";

// ---------------------------------------------------------------------------------------------------------------- rows

pub fn entry_row(row: &Row) -> EntryRow {
    EntryRow {
        xid: row.get(0),
        id: row.get(1),
        at: row.get(2),
        organization: row.get(3),
        project: row.get(4),
        actor_kind: row.get(5),
        actor_id: row.get(6),
        behalf_kind: row.get(7),
        behalf_id: row.get(8),
        credential: row.get(9),
        action: row.get(10),
        resource_kind: row.get(11),
        resource_id: row.get(12),
        generation: row.get(13),
        before: row.get(14),
        after: row.get(15),
        correlation_id: row.get(16),
        causation_id: row.get(17),
        policy_version: row.get(18),
    }
}

/// The entry of a row whose entry may be gone.
pub fn entry_row_if_there(row: &Row) -> Option<EntryRow> {
    row.get::<_, Option<Uuid>>(1).map(|_| entry_row(row))
}

/// The number of a row's entry, if it is sealed.
pub fn row_index(row: &Row) -> Option<u64> {
    row.get::<_, Option<i64>>(ENTRY_COLUMNS).map(unsigned)
}

/// The hash a row's entry was sealed with, if it is.
pub fn row_hash(row: &Row) -> Option<Hash> {
    row.get::<_, Option<&[u8]>>(ENTRY_COLUMNS + 1).and_then(hash)
}

/// When a row's entry was written, if it is sealed.
pub fn row_sealed_at(row: &Row) -> Option<Timestamp> {
    row.get(ENTRY_COLUMNS + 2)
}

pub fn stored_hash(row: &Row) -> Option<StoredHash> {
    let level = u8::try_from(row.get::<_, i16>(0)).ok()?;
    Some(StoredHash { level, index: unsigned(row.get(1)), hash: hash(row.get(2))? })
}

pub fn checkpoint(row: &Row) -> SignedCheckpoint {
    let root: &[u8] = row.get(1);
    SignedCheckpoint {
        size: unsigned(row.get(0)),
        root: hash(root).map(|root| root.to_string()).unwrap_or_default(),
        note: row.get(2),
        at: row.get::<_, Timestamp>(3),
    }
}

pub fn hash(bytes: &[u8]) -> Option<Hash> {
    bytes.try_into().ok().map(Hash::from_bytes)
}

/// Sizes and numbers are never negative; the database's type is.
pub fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// The largest log we accept is far below `i64::MAX`.
pub fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
