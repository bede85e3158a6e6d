//! `dpsw serve`: the service is a program of its own, so that this one stays small and is built soon.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::args::Serve;
use crate::fault::{Fault, Kind};

const NAME: &str = "dpsw-server";

/// Becomes the service, with everything that was typed behind `serve`.
pub(crate) fn run(command: &Serve) -> Result<ExitCode> {
    become_it(program()?.args(&command.arguments))
}

/// The program of the service: beside this one, else where programs are looked for.
pub(crate) fn program() -> Result<Command> {
    let file = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    let this = std::env::current_exe().context("this program cannot tell where it lies")?;
    let beside = this.parent().map(|folder| folder.join(&file));
    let path = beside.filter(|path| path.is_file()).or_else(|| on_the_path(Path::new(&file)));
    path.map(Command::new).ok_or_else(|| missing(&this))
}

fn on_the_path(file: &Path) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(file)).find(|path| path.is_file())
}

fn missing(this: &Path) -> anyhow::Error {
    let folder = this.parent().unwrap_or(this).display();
    Fault::of(
        Kind::Data,
        format!(
            "the service is a program of its own, {NAME}, which lies neither in {folder} nor on the PATH; \
            in the sources of dpsw, cargo build --release -p {NAME} builds it as target/release/{NAME}, and \
            cargo install --path crates/{NAME} installs it"
        ),
    )
}

/// Signals and the exit code are then the service's own.
#[cfg(unix)]
fn become_it(command: &mut Command) -> Result<ExitCode> {
    let error = std::os::unix::process::CommandExt::exec(command);
    Err(unstarted(command, error))
}

#[cfg(not(unix))]
fn become_it(command: &mut Command) -> Result<ExitCode> {
    let status = command.status().map_err(|error| unstarted(command, error))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or(Kind::Failure as u8).into())
}

/// Says which program could not be started.
pub(crate) fn unstarted(command: &Command, error: std::io::Error) -> anyhow::Error {
    let program = Path::new(command.get_program()).display().to_string();
    anyhow::Error::new(error).context(format!("{program} cannot be started"))
}
