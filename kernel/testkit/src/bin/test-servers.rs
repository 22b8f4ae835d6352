//! `test-servers COMMAND …`: runs a command with one PostgreSQL for all test processes below it, then stops the server.
//!
//! A server that is already named stays in use, so nesting does no harm. The exit status is the command's.

#![allow(clippy::expect_used, clippy::print_stderr)]

use std::process::ExitCode;

const VARIABLE: &str = "GPUAAS_TEST_POSTGRES";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: test-servers COMMAND [ARGUMENT …]");
        return ExitCode::from(2);
    };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments);
    let runtime = tokio::runtime::Runtime::new().expect("the asynchronous runtime starts");
    runtime.block_on(async {
        let server = match std::env::var_os(VARIABLE) {
            Some(_) => None,
            None => Some(testkit::PrivatePostgres::start().await),
        };
        if let Some(server) = &server {
            command.env(VARIABLE, server.connection());
        }
        // Ctrl-C goes to the whole process group: the command ends, and then we clean up.
        let ignored = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
        let status = command.status().await;
        drop(ignored);
        if let Some(server) = server {
            server.stop().await;
        }
        match status {
            Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)),
            Err(error) => {
                eprintln!("test-servers: the command does not start: {error}");
                ExitCode::from(127)
            }
        }
    })
}
