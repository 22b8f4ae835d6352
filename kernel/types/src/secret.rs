//! A value that must not be seen: prints as `***`, is wiped when dropped, and cannot be serialised.
//!
//! The missing `Serialize` is the point: a secret cannot slip into a row, an audit entry, an event or a log field.
//! The few places that must reveal one call [`Secret::expose`], which is easy to grep for.

use std::fmt;

use zeroize::Zeroize;

#[derive(Clone)]
pub struct Secret<T: Zeroize = String>(T);

impl<T: Zeroize> Secret<T> {
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Every caller is a place where it may leak.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T: Zeroize> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
