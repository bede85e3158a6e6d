//! The command line of dpsw: what is typed, what is meant, what is done.

mod fault;
mod arguments;
mod remark;
mod input;
mod csv_rows;
mod harmless;
mod table;
mod output;
mod answer;
mod words;
mod why;
mod headline;
mod domain;
mod same_file;
mod ledger;
mod trailing;
mod structure;
mod interrupt;
mod progress;
mod feed;
mod line_count;
mod survey;
mod said;
mod run;
mod unasked;
mod chart;
mod watch;
mod view_file;
mod stream_command;
mod plan_command;
mod dry_run;
mod audit_command;
mod inspect;
mod serve;
mod demo;
mod schema;
mod manual;
mod completions;

use std::process::ExitCode;

use anyhow::Result;

use arguments::{Arguments, Command};

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
    readings.iter().for_each(remark::note);
    let done = match command {
        Command::Top(command) => stream_command::top(&command),
        Command::Count(command) => stream_command::count(&command),
        Command::Plan(command) => plan_command::run(&command),
        Command::Audit(command) => audit_command::run(&command),
        Command::Inspect(command) => inspect::run(&command),
        Command::Ledger(command) => ledger::run(&command),
        Command::Demo(command) => demo::run(&command),
        Command::Serve(command) => return serve::run(&command),
        Command::Completions(command) => completions::run(&command),
    };
    done.map(|()| ExitCode::SUCCESS)
}
