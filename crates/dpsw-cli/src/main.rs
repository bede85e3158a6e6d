//! The command line of dpsw: what is typed, what is meant, what is done.

mod args;
mod commands;
mod count;
mod fault;
mod interrupt;
mod read;
mod show;

use std::process::ExitCode;

use anyhow::Result;

use args::{Arguments, Command};
use commands::{audit, completions, demo, inspect, ledger, plan, serve, top};
use show::remark;

fn main() -> ExitCode {
    let arguments = Arguments::typed();
    remark::set(arguments.talk);
    match run(arguments) {
        Ok(code) => code,
        Err(error) if fault::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            remark::failure(&format!("{error:#}"));
            fault::kind(&error).into()
        }
    }
}

fn run(Arguments { command, readings, .. }: Arguments) -> Result<ExitCode> {
    // The others have nothing to print before they are done, so an interrupt ends them at once.
    if matches!(command, Command::Top(_) | Command::Count(_) | Command::Demo(_)) {
        interrupt::listen()?;
    }
    for reading in readings {
        remark::note(reading);
    }
    let done = match command {
        Command::Top(command) => top::top(&command),
        Command::Count(command) => top::count(&command),
        Command::Plan(command) => plan::run(&command),
        Command::Audit(command) => audit::run(&command),
        Command::Inspect(command) => inspect::run(&command),
        Command::Ledger(command) => ledger::run(&command),
        Command::Demo(command) => demo::run(&command),
        Command::Serve(command) => return serve::run(&command),
        Command::Completions(command) => completions::run(&command),
    };
    done.map(|()| ExitCode::SUCCESS)
}
