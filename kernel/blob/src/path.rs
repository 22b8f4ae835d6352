//! The name of an object: segments separated by `/`, from an alphabet that needs no quoting anywhere.
//!
//! The alphabet is small on purpose. `object_store` would percent-encode the rest, and then the same object has one
//! name in the code, another on disk and a third in the bucket's listing, which is where path tricks begin.

use std::fmt;
use std::str::FromStr;

use object_store::path::Path;

/// Longest path, in bytes.
// fixed: S3 allows 1024 bytes; the rest is left to the configured prefix
const PATH_BYTES_MAX: usize = 768;
/// Longest segment, in bytes.
// fixed: file systems allow 255 bytes; an unfinished upload is called like its object with a number added
const SEGMENT_BYTES_MAX: usize = 200;

/// A path that is safe on every store. Ordered by bytes, as S3 lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobPath(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BlobPathError {
    #[error("an object's path cannot be empty")]
    Empty,
    #[error("an object's path has at most {PATH_BYTES_MAX} bytes, and {SEGMENT_BYTES_MAX} between two '/'")]
    TooLong,
    #[error(
        "an object's path has no empty segment: it neither begins nor ends with '/', and has no '/' twice in a row"
    )]
    EmptySegment,
    #[error("a segment of an object's path cannot begin with '.'")]
    DotSegment,
    #[error(
        "character {0:?} is not allowed in an object's path; use letters, digits, '.', '-', '_', '=' and '/'"
    )]
    Forbidden(char),
}

impl BlobPath {
    pub fn parse(text: &str) -> Result<Self, BlobPathError> {
        if text.is_empty() {
            return Err(BlobPathError::Empty);
        }
        if text.len() > PATH_BYTES_MAX {
            return Err(BlobPathError::TooLong);
        }
        text.split('/').try_for_each(check_segment)?;
        Ok(Self(text.to_owned()))
    }

    /// The path one segment further down.
    pub fn join(&self, segment: &str) -> Result<Self, BlobPathError> {
        Self::parse(&format!("{}/{segment}", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As the store wants it. Our alphabet is a part of what it takes unchanged.
    pub(crate) fn to_store(&self) -> Path {
        Path::from(self.0.as_str())
    }
}

/// A leading dot is refused whole: it covers `.` and `..`, and hidden files that tools leave in directories.
fn check_segment(segment: &str) -> Result<(), BlobPathError> {
    if segment.is_empty() {
        return Err(BlobPathError::EmptySegment);
    }
    if segment.len() > SEGMENT_BYTES_MAX {
        return Err(BlobPathError::TooLong);
    }
    if segment.starts_with('.') {
        return Err(BlobPathError::DotSegment);
    }
    match segment.chars().find(|&c| !is_allowed(c)) {
        Some(bad) => Err(BlobPathError::Forbidden(bad)),
        None => Ok(()),
    }
}

const fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '=')
}

impl FromStr for BlobPath {
    type Err = BlobPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for BlobPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
