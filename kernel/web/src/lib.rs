//! HTTP, once: the endpoint registry and the manners every endpoint shares.
//!
//! A domain declares each operation in its `http.rs` with [`Operation`]: method, path, typed input and output,
//! permission, audit action, errors, exposure. Routing, the OpenAPI document, the API browser, and later the CLI,
//! SDKs and MCP tools are all made from that one declaration, so none of them can drift.
//!
//! What every request gets without its handler knowing: a correlation id, the caller's identity, limits on body,
//! headers, time and rate, idempotency, ETags, problem+json errors with a catalogued code, security headers, metrics,
//! and one log line. A mutating handler runs detached: a client that hangs up does not cancel a change.
//!
//! Invariants
//! - A reply of 2xx from an operation that declares a permission is sent only if that very permission was decided on,
//!   and from an operation that declares an audit action only if that action was recorded, nothing changed, or the
//!   reply is a replay. Otherwise the reply is a 500 (`dispatch.rs`): a test that forgets either cannot be green.
//! - Nothing here knows a domain.

mod browser;
mod caller;
mod context;
mod dispatch;
mod input;
mod limits;
mod openapi;
mod operation;
mod page;
mod places;
mod problem;
mod room;
mod sse;
#[cfg(test)]
mod tests;

pub use browser::{ErrorPage, asset, page, pages, shell};
pub use caller::address_key;
pub use context::{Authenticator, Credential, Found, Identity};
pub use dispatch::{Gate, router};
pub use input::{INVALID_REQUEST, PRECONDITION_FAILED, check_generation};
pub use limits::{Limits, SETTINGS};
pub use openapi::document;
pub use operation::{Call, Endpoint, Exposure, Kind, Nothing, Operation, OperationInfo, RateClass, Reply};
pub use page::{Bounded, Page, PageLimit, WaitSeconds, page_limit, patience};
pub use places::{Place, Places};
pub use problem::{Problem, SECRET_ALREADY_DELIVERED, catalogue, status_of, to_response};
pub use room::Seat;
pub use sse::{SseEvent, stream_response};

/// What handlers return for a stream: the finished response.
pub type Response = axum::response::Response;
