//! The statements of the system's endpoints.

pub const PARKED_LIST: &str = "
SELECT consumer, position, event_id, type, error, attempts, parked_at FROM spine.parked_event
ORDER BY parked_at DESC, consumer, position DESC LIMIT $1";
