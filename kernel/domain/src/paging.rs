//! Pages in order of creation, which is the order of ids: new rows come last, so no page moves under its reader.

use events::INVALID_CURSOR;
use types::{Cursor, Id, Kind, Result};
use uuid::Uuid;
use web::Page;

/// The id to go on after. `query` names the listing and its filters; a cursor of another one is refused.
pub fn page_start<K: Kind>(cursor: Option<&str>, query: &str) -> Result<Option<Uuid>> {
    let Some(cursor) = cursor else { return Ok(None) };
    let invalid = |error: &dyn std::fmt::Display| INVALID_CURSOR.error(error.to_string());
    let text: String = Cursor::decode(cursor, query).map_err(|error| invalid(&error))?;
    let id: Id<K> = text.parse().map_err(|error| invalid(&error))?;
    Ok(Some(*id.as_uuid()))
}

/// One more row than asked for was read: it only tells that there is a next page.
pub fn page<T>(mut items: Vec<T>, limit: u32, query: &str, key: impl Fn(&T) -> String) -> Page<T> {
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next_cursor =
        items.last().filter(|_| more).map(|last| Cursor::encode(query, &key(last)).into_string());
    Page { items, next_cursor }
}
