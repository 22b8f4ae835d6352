//! Words for the person at the terminal. Everything else in the server goes to the log.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

pub fn say(text: &str) {
    println!("{text}");
}

pub fn fail(text: &str) -> ExitCode {
    eprintln!("gpuaasd: {text}");
    ExitCode::FAILURE
}
