//! The repository's own tools: `cargo xtask <command>`.
//!
//! A script that outgrows a few lines of shell becomes a command here, in the language everybody on the project
//! reads. A command is one module with a `run(arguments)`; this file only says which one was meant. Dependencies
//! stay few, because every check waits for this crate to compile.
#![allow(clippy::print_stdout, clippy::print_stderr)] // A command line tool talks to the terminal.

mod guard;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  guard [--report json] [--root DIRECTORY]   check the tree against architecture.toml";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((command, rest)) if command == "guard" => guard::run(rest).map_err(|error| error.to_string()),
        _ => Err(USAGE.to_owned()),
    };
    outcome.unwrap_or_else(|message| {
        eprintln!("{message}");
        ExitCode::from(2)
    })
}
