//! The one error type that crosses a domain's facade.
//!
//! A domain keeps its own `thiserror` enum inside and maps it once, at the facade, to an [`Error`]: a catalogued
//! [`ErrorCode`] (stable, documented, one page each in `docs/errors/`), a message for the caller about this very
//! case, and a cause that only the log sees. [`ErrorKind`] is what callers can act on without knowing the code; it
//! decides the HTTP status. There are at most fifteen kinds: a new situation is a new code, hardly ever a new kind.

use std::borrow::Cow;
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What sort of thing went wrong, from the caller's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The request is wrong in itself; repeating it cannot help.
    Invalid,
    /// Nobody is signed in, or the credential is not valid (any more).
    Unauthenticated,
    /// The caller is known and may not do this.
    Forbidden,
    /// There is no such thing, or the caller may not know of it.
    NotFound,
    /// The request contradicts the present state.
    Conflict,
    /// A precondition the caller stated (`If-Match`) does not hold.
    PreconditionFailed,
    /// The thing was there and is gone for good.
    Gone,
    /// The request is larger than the limit.
    TooLarge,
    /// Too many requests; `Retry-After` says when to come back.
    RateLimited,
    /// Someone else has to approve first.
    ApprovalRequired,
    /// There is not enough money, quota or capacity.
    Exhausted,
    /// A part we need is not there right now; nothing was changed, try again.
    Unavailable,
    /// It took longer than allowed; nothing was changed.
    Timeout,
    /// Our fault.
    Internal,
}

/// A catalogued error: declared once as a `static`, listed by its domain, documented on a page of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct ErrorCode {
    /// `snake_case`, unique in the product, never renamed.
    pub code: &'static str,
    pub kind: ErrorKind,
    /// A short sentence without the particulars.
    pub title: &'static str,
    /// What to do next, in the imperative.
    pub remedy: &'static str,
}

impl ErrorCode {
    pub const fn new(code: &'static str, kind: ErrorKind, title: &'static str, remedy: &'static str) -> Self {
        Self { code, kind, title, remedy }
    }

    /// An occurrence of this error with its particulars.
    pub fn error(&'static self, message: impl Into<Cow<'static, str>>) -> Error {
        Error(Box::new(Inner {
            code: self,
            message: message.into(),
            details: None,
            retry_after_ms: None,
            cause: None,
        }))
    }
}

/// An occurrence of a catalogued error. Boxed, so that `Result<T>` stays small on the path where nothing fails.
pub struct Error(Box<Inner>);

struct Inner {
    code: &'static ErrorCode,
    message: Cow<'static, str>,
    details: Option<serde_json::Value>,
    retry_after_ms: Option<u64>,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub fn code(&self) -> &'static ErrorCode {
        self.0.code
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.code.kind
    }

    /// What happened, for the caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Machine-readable particulars for the caller.
    pub fn details(&self) -> Option<&serde_json::Value> {
        self.0.details.as_ref()
    }

    pub fn retry_after_ms(&self) -> Option<u64> {
        self.0.retry_after_ms
    }

    /// What only the log may see.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync)> {
        self.0.cause.as_deref()
    }

    #[must_use]
    pub fn with_details(mut self, details: serde_json::Value) -> Self {
        self.0.details = Some(details);
        self
    }

    #[must_use]
    pub fn with_retry_after_ms(mut self, millis: u64) -> Self {
        self.0.retry_after_ms = Some(millis);
        self
    }

    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.code, self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        match &self.0.cause {
            Some(cause) => write!(f, " (cause: {cause:?})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as &(dyn std::error::Error + 'static))
    }
}
