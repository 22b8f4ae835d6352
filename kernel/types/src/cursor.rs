//! Opaque page cursors: where the next page starts, bound to the listing and filters they came from.
//!
//! A cursor is not secret and not signed: it only holds sort keys the caller has just been shown. It is bound to
//! its query so that a cursor used with other filters is a clear error and not a silently wrong page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CursorError {
    #[error("the cursor is not one this server made")]
    Malformed,
    #[error("the cursor belongs to a listing with other filters")]
    OtherQuery,
}

impl Cursor {
    /// `query` names the listing and its filters; `key` is the sort key of the last row shown.
    pub fn encode<K: Serialize>(query: &str, key: &K) -> Self {
        let bytes = serde_json::to_vec(&(query, key)).unwrap_or_default();
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    pub fn decode<K: DeserializeOwned>(text: &str, query: &str) -> Result<K, CursorError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorError::Malformed)?;
        let (of, key): (String, serde_json::Value) =
            serde_json::from_slice(&bytes).map_err(|_| CursorError::Malformed)?;
        if of != query {
            return Err(CursorError::OtherQuery);
        }
        serde_json::from_value(key).map_err(|_| CursorError::Malformed)
    }

    pub fn into_string(self) -> String {
        self.0
    }
}
