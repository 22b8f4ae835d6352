//! The ways in which signing in fails.

use types::{ErrorCode, ErrorKind};

pub static PROVIDER_UNREACHABLE: ErrorCode = ErrorCode::new(
    "provider_unreachable",
    ErrorKind::Unavailable,
    "The identity provider does not answer",
    "Try again in a moment. Sessions and keys that exist go on working.",
);
pub static PROVIDER_MISCONFIGURED: ErrorCode = ErrorCode::new(
    "provider_misconfigured",
    ErrorKind::Conflict,
    "The identity provider and its settings here do not fit together",
    "Tell whoever looks after the provider what this message says; trying again does not help.",
);
pub static SIGN_IN_REJECTED: ErrorCode = ErrorCode::new(
    "sign_in_rejected",
    ErrorKind::Unauthenticated,
    "The sign-in was not accepted",
    "Start signing in again from the beginning.",
);

pub fn errors() -> Vec<&'static ErrorCode> {
    vec![&PROVIDER_UNREACHABLE, &PROVIDER_MISCONFIGURED, &SIGN_IN_REJECTED]
}
