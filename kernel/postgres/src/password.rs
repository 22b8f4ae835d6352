//! The superuser's password: made before the cluster, kept beside it, read at every start.
//!
//! It is written first and then kept, so that whatever interrupts the making of a cluster, the next attempt takes
//! the same one and the two still fit together.

use std::fs;
use std::io::ErrorKind;

use types::Secret;

use crate::error::{PostgresError, Result};
use crate::layout::{Layout, write_private};
use crate::random::random_hex;

const PASSWORD_BYTES: usize = 32;

pub(crate) fn read(layout: &Layout) -> Result<Secret> {
    let path = layout.password();
    match fs::read_to_string(&path).map(Secret::new) {
        Ok(text) if !text.expose().trim().is_empty() => Ok(Secret::new(text.expose().trim().to_owned())),
        Ok(_) => Err(PostgresError::PasswordLost { path }),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(PostgresError::PasswordLost { path }),
        Err(error) => Err(PostgresError::io("read", &path)(error)),
    }
}

/// Makes one unless there is one.
pub(crate) fn make(layout: &Layout) -> Result<()> {
    match read(layout) {
        Ok(_) => Ok(()),
        Err(PostgresError::PasswordLost { path }) => {
            let password = Secret::new(random_hex::<PASSWORD_BYTES>());
            write_private(&path, password.expose())
        }
        Err(error) => Err(error),
    }
}
