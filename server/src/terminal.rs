//! Words for the person at the terminal. Everything else in the server goes to the log.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

/// A reader that went away (`| head`) is no reason to fail what was already done.
pub fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{text}");
}

pub fn fail(text: &str) -> ExitCode {
    eprintln!("gpuaasd: {text}");
    ExitCode::FAILURE
}
