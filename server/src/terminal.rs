//! Words for the person at the terminal. Everything else in the server goes to the log.

use std::io::Write as _;
use std::process::ExitCode;

/// A reader that hangs up early (`| head`) is no failure of ours.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

pub fn fail(text: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "gpuaasd: {text}");
    ExitCode::FAILURE
}
