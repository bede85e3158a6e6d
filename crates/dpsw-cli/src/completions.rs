//! `dpsw completions`: for shells, and the man page.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::arguments::{Arguments, Completions, Target};
use crate::output;

/// Runs `dpsw completions`.
pub(crate) fn run(command: &Completions) -> Result<()> {
    let mut bytes = Vec::new();
    match shell(command.target) {
        Some(shell) => generate(shell, &mut Arguments::command(), "dpsw", &mut bytes),
        None => man(&mut bytes)?,
    }
    output::print(&String::from_utf8(bytes)?)
}

fn shell(target: Target) -> Option<Shell> {
    match target {
        Target::Bash => Some(Shell::Bash),
        Target::Elvish => Some(Shell::Elvish),
        Target::Fish => Some(Shell::Fish),
        Target::Powershell => Some(Shell::PowerShell),
        Target::Zsh => Some(Shell::Zsh),
        Target::Man => None,
    }
}

/// One page: the program, then each command.
fn man(bytes: &mut Vec<u8>) -> Result<()> {
    let mut command = Arguments::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(bytes)?;
    for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
        let page = clap_mangen::Man::new(part.clone());
        bytes.extend(format!(".SH DPSW {}\n", part.get_name().to_uppercase()).bytes());
        page.render_description_section(bytes)?;
        page.render_synopsis_section(bytes)?;
        page.render_options_section(bytes)?;
        if part.get_after_help().is_some() {
            page.render_extra_section(bytes)?;
        }
    }
    Ok(())
}
