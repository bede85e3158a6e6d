//! The service `dpsw-server`: settings in, answers out.

mod args;
mod check;
mod run;
mod tokens;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

/// The error of anything, for people.
type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match (&args.check, &args.command) {
        (Some(path), _) => check::check(path),
        (None, Some(Command::Token(command))) => {
            args.settings().and_then(|settings| tokens::run(&settings, command))
        }
        (None, None) => args.settings().and_then(|settings| run::run(&settings, args.end())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dpsw-server: {error}");
            if error.is::<run::ThreadFailed>() { run::THREAD_FAILED.into() } else { ExitCode::FAILURE }
        }
    }
}
