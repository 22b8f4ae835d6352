//! A ban is a thing that must not be in the tree, with the reason and the way out; a finding is one place where it is.
//!
//! The reason is printed each time, because a rule whose reason nobody knows is worked around rather than followed.

use std::fmt;

/// Something that must not be. Declared as a `static` beside the code that looks for it.
#[derive(Debug)]
pub struct Ban {
    /// Names the ban in `architecture.toml` and in goldens.
    pub id: &'static str,
    pub why: &'static str,
    pub instead: &'static str,
    /// Holds everywhere: a debt can excuse it for a while, an exception cannot.
    pub absolute: bool,
}

impl Ban {
    pub const fn new(id: &'static str, why: &'static str, instead: &'static str) -> Self {
        Self { id, why, instead, absolute: false }
    }

    pub const fn absolute(id: &'static str, why: &'static str, instead: &'static str) -> Self {
        Self { id, why, instead, absolute: true }
    }

    /// A breach of this ban. `item` is the exact thing an exception can name.
    pub fn at(&'static self, path: &str, line: usize, item: &str, what: impl Into<String>) -> Finding {
        Finding { ban: self, path: path.to_owned(), line, item: item.to_owned(), what: what.into() }
    }
}

/// One breach.
#[derive(Debug, Clone)]
pub struct Finding {
    pub ban: &'static Ban,
    pub path: String,
    pub line: usize,
    pub item: String,
    pub what: String,
}

impl Finding {
    /// One line, as in the goldens.
    pub fn brief(&self) -> String {
        format!("{}:{}: {}: {}", self.path, self.line, self.ban.id, self.what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    why: {}\n    instead: {}", self.brief(), self.ban.why, self.ban.instead)
    }
}
