//! `dpsw completions`: for shells, the manual, and schemas.

use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::{Generator, Shell, generate};

use crate::args::{Arguments, Completions, Target};
use crate::commands::manual::{self, SCHEMAS};
use crate::show::output;
use crate::show::remark;

/// A file that may be written: its name and what it holds.
type File = (String, Vec<u8>);

/// Runs `dpsw completions`.
pub(crate) fn run(command: &Completions) -> Result<()> {
    let files = files(command.target, command.out.is_some())?;
    match &command.out {
        Some(folder) => write(folder, &files),
        None => output::print(std::str::from_utf8(&files[0].1)?),
    }
}

/// What can be written into a folder; the first is what is printed otherwise.
fn files(target: Target, is_apart: bool) -> Result<Vec<File>> {
    let shell = match target {
        Target::Bash => Shell::Bash,
        Target::Elvish => Shell::Elvish,
        Target::Fish => Shell::Fish,
        Target::Powershell => Shell::PowerShell,
        Target::Zsh => Shell::Zsh,
        Target::Man if is_apart => return manual::pages(),
        Target::Man => return Ok(vec![(String::new(), manual::one_page()?)]),
        Target::Schema => {
            let file = |(name, schema): (&str, &str)| (format!("{name}.json"), schema.as_bytes().to_vec());
            return Ok(SCHEMAS.map(file).to_vec());
        }
    };
    let mut bytes = Vec::new();
    generate(shell, &mut Arguments::command(), "dpsw", &mut bytes);
    Ok(vec![(shell.file_name("dpsw"), bytes)])
}

fn write(folder: &Path, files: &[File]) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))?;
        remark::note(format!("wrote {}", path.display()));
    }
    Ok(())
}
