//! `make bench`: what the spine costs, as ratios to floors measured in the same run.
//!
//! A rate on a shared machine means little: the same pgbench run has varied eightfold on ours. What does carry over is
//! the ratio to a floor that ran a second earlier on the same server, and CPU time per request, which waiting for a
//! busy neighbour does not change. So every round measures a floor and what stands on it side by side, in alternating
//! order, and the table gives medians over the rounds.
//!
//! Everything runs against a real `gpuaasd up` with its own PostgreSQL in a temporary directory: the product as it is
//! shipped, its settings untouched but for the rate limits, which exist to stop exactly what this program does.
//!
//! Nothing here asserts a time. The program fails when something broke (a refused request, a lost event), never because
//! the machine was slow: aims that are missed are printed as missed.

// A command line tool: the table is its output, progress goes to standard error.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod client;
mod cpu;
mod event_stream;
mod floor;
mod flow_steps;
mod gpuaasd;
mod hello;
mod load;
mod machine;
mod report;
mod requests;
mod revoking;
mod round;
mod run;
mod sample;
mod sealing;
mod sequencing;
mod spine;
mod table;
mod verifying;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// Whatever broke, in words.
type Broken = Box<dyn std::error::Error + Send + Sync>;
type Result<T, E = Broken> = std::result::Result<T, E>;

/// Measures gpuaasd against floors in the same run, and prints the table as Markdown.
#[derive(Parser)]
#[command(name = "bench", args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Subcommand)]
enum Command {
    /// Hold one load on a fresh server for a while: to profile it
    Load(LoadArguments),
    /// Serve "hello" with axum and nothing else: the floor of any HTTP server (started by the bench itself)
    #[command(hide = true)]
    Hello,
}

#[derive(Args)]
struct RunArguments {
    /// How often everything is measured; medians are over these
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long each load runs in each round
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Short waits and small data: to see that it works, not what it costs
    #[arg(long)]
    quick: bool,
    /// The server to measure [default: the gpuaasd beside this program]
    #[arg(long, value_name = "FILE")]
    gpuaasd: Option<PathBuf>,
}

#[derive(Args)]
struct LoadArguments {
    #[arg(value_enum)]
    what: What,
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// The server to load [default: the gpuaasd beside this program]
    #[arg(long, value_name = "FILE")]
    gpuaasd: Option<PathBuf>,
}

/// The loads through HTTP.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    ReadOneTenant,
    ReadManyTenants,
    Create,
    Rename,
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    let outcome = match line.command {
        Some(Command::Hello) => hello::serve(),
        Some(Command::Load(arguments)) => run::hold(&arguments),
        None => run::run(&line.run),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(broken) => {
            eprintln!("bench: {broken}");
            ExitCode::FAILURE
        }
    }
}
