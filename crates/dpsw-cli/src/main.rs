//! The command line of dpsw.

mod demo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Which items are frequent in the recent part of a stream, with differential privacy.
#[derive(Debug, Parser)]
#[command(version, after_help = "Example:\n  dpsw demo")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Follow a drifting stream and compare the private answers with the truth
    Demo,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Demo => demo::run(&mut std::io::stdout().lock()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dpsw: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whoever reads our output may stop early, as `head` does.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}
