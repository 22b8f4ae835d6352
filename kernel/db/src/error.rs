//! What can go wrong with the database, and what a caller is told about it.

use tokio_postgres::error::SqlState;
use types::{Error, ErrorCode, ErrorKind};

use crate::tls::TlsFault;

pub static DATABASE_UNAVAILABLE: ErrorCode = ErrorCode::new(
    "database_unavailable",
    ErrorKind::Unavailable,
    "The database cannot be reached",
    "Nothing was changed. Try again in a moment; operators look at /internal/readyz and the database's log.",
);
pub static OVERLOADED: ErrorCode = ErrorCode::new(
    "overloaded",
    ErrorKind::Unavailable,
    "The server has more work than it can take",
    "Nothing was changed. Try again after the time in Retry-After.",
);
pub static ORGANIZATION_BUSY: ErrorCode = ErrorCode::new(
    "organization_busy",
    ErrorKind::RateLimited,
    "Your organization has as much work under way as it may",
    "Nothing was changed. Try again after the time in Retry-After, with fewer requests at once.",
);
pub static RESOURCE_BUSY: ErrorCode = ErrorCode::new(
    "resource_busy",
    ErrorKind::Unavailable,
    "Someone else is changing the same thing right now",
    "Nothing was changed. Try again in a moment.",
);
pub static DATABASE_TIMEOUT: ErrorCode = ErrorCode::new(
    "database_timeout",
    ErrorKind::Timeout,
    "The database took longer than allowed",
    "Nothing was changed. Narrow the request (smaller page, fewer filters) or try again.",
);
pub static COMMIT_UNKNOWN: ErrorCode = ErrorCode::new(
    "commit_unknown",
    ErrorKind::Unavailable,
    "The connection broke while the change was being committed",
    "Repeat the request with the same Idempotency-Key: it is applied at most once.",
);
pub static INTERNAL_ERROR: ErrorCode = ErrorCode::new(
    "internal_error",
    ErrorKind::Internal,
    "Something went wrong on our side",
    "Try again; if it persists, report the correlation id to the operator.",
);
pub static IDEMPOTENCY_KEY_REUSED: ErrorCode = ErrorCode::new(
    "idempotency_key_reused",
    ErrorKind::Conflict,
    "This Idempotency-Key was used for a different request",
    "Use a new key for a new request; repeat a request byte for byte to get its first answer.",
);
pub static IDEMPOTENCY_IN_PROGRESS: ErrorCode = ErrorCode::new(
    "idempotency_in_progress",
    ErrorKind::Conflict,
    "A request with this Idempotency-Key is still running",
    "Wait a moment and repeat the request: you will get the first one's answer.",
);

pub static INVALID_VALUE: ErrorCode = ErrorCode::new(
    "invalid_value",
    ErrorKind::Invalid,
    "A value is outside of what can be stored or compared",
    "Use a value within the ranges the API page shows; nothing was changed.",
);

/// The codes this crate can produce, for the catalogue.
pub fn catalogue() -> &'static [&'static ErrorCode] {
    static CODES: [&ErrorCode; 11] = [
        &INVALID_VALUE,
        &DATABASE_UNAVAILABLE,
        &OVERLOADED,
        &ORGANIZATION_BUSY,
        &RESOURCE_BUSY,
        &DATABASE_TIMEOUT,
        &COMMIT_UNKNOWN,
        &INTERNAL_ERROR,
        &IDEMPOTENCY_KEY_REUSED,
        &IDEMPOTENCY_IN_PROGRESS,
        &crate::backstop::UNRECORDED_CHANGE,
    ];
    &CODES
}

#[derive(Debug, thiserror::Error)]
pub enum DbError {
    #[error("no connection to PostgreSQL: {0}")]
    Connect(String),
    /// PostgreSQL answers, and knows no such login, password or database.
    #[error("no connection to PostgreSQL: {0}")]
    NotAdmitted(String),
    #[error("PostgreSQL answers, and no encrypted connection to it can be made: {0}")]
    Tls(TlsFault),
    #[error("all {waiting} places in the queue for a connection are taken")]
    Overloaded { waiting: usize },
    #[error("no connection became free in time")]
    QueueTimeout,
    #[error("the organization's share of the connections is in use and did not become free in time")]
    ShareUsedUp,
    #[error("PostgreSQL: {}", describe(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("connection lost during COMMIT: {}", describe(.0))]
    CommitUnknown(tokio_postgres::Error),
    #[error("expected one row, found {found}")]
    NotOneRow { found: usize },
    #[error("{0}")]
    Unexpected(String),
}

impl DbError {
    /// The violated constraint, if that is what happened; domains map it to an error of their own.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Postgres(error) => error.as_db_error().and_then(|db| db.constraint()),
            _ => None,
        }
    }

    pub fn is_lock_timeout(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
    }
}

pub(crate) fn connection_lost(error: &tokio_postgres::Error) -> bool {
    error.is_closed()
        || error.code().is_none()
        || error.code().is_some_and(|code| {
            code.code().starts_with("08")
                || code.code().starts_with("57P0")
                || *code == SqlState::CANNOT_CONNECT_NOW
        })
}

pub(crate) fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => std::error::Error::source(error)
            .map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
    }
}

impl From<DbError> for Error {
    fn from(error: DbError) -> Self {
        let mapped = match &error {
            DbError::Connect(_) | DbError::NotAdmitted(_) | DbError::Tls(_) => {
                DATABASE_UNAVAILABLE.error("the database does not answer")
            }
            DbError::Overloaded { .. } | DbError::QueueTimeout => {
                OVERLOADED.error("every database connection is in use").with_retry_after_ms(1_000)
            }
            DbError::ShareUsedUp => ORGANIZATION_BUSY
                .error("every database connection that one organization may use is in use by yours")
                .with_retry_after_ms(1_000),
            DbError::CommitUnknown(_) => {
                COMMIT_UNKNOWN.error("it is not known whether the change was committed")
            }
            DbError::Postgres(postgres) => from_postgres(postgres),
            DbError::NotOneRow { .. } | DbError::Unexpected(_) => {
                INTERNAL_ERROR.error("an internal error occurred")
            }
        };
        mapped.caused_by(error)
    }
}

fn from_postgres(error: &tokio_postgres::Error) -> Error {
    if connection_lost(error) {
        return DATABASE_UNAVAILABLE.error("the connection to the database broke").with_retry_after_ms(500);
    }
    let Some(code) = error.code() else {
        return INTERNAL_ERROR.error("an internal error occurred");
    };
    if *code == SqlState::LOCK_NOT_AVAILABLE
        || *code == SqlState::T_R_DEADLOCK_DETECTED
        || *code == SqlState::T_R_SERIALIZATION_FAILURE
    {
        return RESOURCE_BUSY
            .error("another change of the same thing is in progress")
            .with_retry_after_ms(200);
    }
    if *code == SqlState::QUERY_CANCELED || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT {
        return DATABASE_TIMEOUT.error("the statement was cancelled after its time limit");
    }
    // Text, numbers and times that a type of the database cannot hold. Other data exceptions are bugs of ours.
    if [
        &SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        &SqlState::UNTRANSLATABLE_CHARACTER,
        &SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        &SqlState::DATETIME_FIELD_OVERFLOW,
    ]
    .contains(&code)
    {
        return INVALID_VALUE.error("a value of the request cannot be stored or compared");
    }
    if *code == SqlState::DISK_FULL {
        return DATABASE_UNAVAILABLE.error("the database's disk is full");
    }
    INTERNAL_ERROR.error("an internal error occurred")
}
