//! What can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use dpsw_server::auth::Role;
use dpsw_server::settings::Settings;

use crate::Failure;
use crate::run::End;

/// Answers which items are frequent in the recent part of a stream, with differential privacy.
///
/// Without arguments it listens on 127.0.0.1:7878 and keeps its data in ./dpsw-data.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = false)]
pub(crate) struct Args {
    /// The settings file (TOML)
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// The folder of everything that is kept
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// Where to listen
    #[arg(long, value_name = "ADDR")]
    address: Option<SocketAddr>,
    /// The folder of the marker, which must not be in backups of the data folder
    #[arg(long, value_name = "DIR", global = true)]
    marker_folder: Option<PathBuf>,
    /// The file of the key that the data is encrypted with; the variable DPSW_KEY is taken instead, if it is set
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Ends when standard input does, so that it never outlives whoever started it
    #[arg(long, hide = true)]
    pub(crate) end_with_stdin: bool,
    /// Reads a settings file, plans its streams, says what they promise, and ends
    #[arg(long, value_name = "CONFIG")]
    pub(crate) check: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Makes, lists and deletes tokens; the service may be running
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Makes a token and prints it, this once
    Create(NewToken),
    /// Lists tokens, without what they are
    List,
    /// Deletes a token
    Delete {
        /// Its public id
        id: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct NewToken {
    /// What people call it
    #[arg(long, default_value = "")]
    pub(crate) name: String,
    /// What it may do; may be given several times
    #[arg(long = "role", value_enum, required = true)]
    pub(crate) roles: Vec<Role>,
    /// A source that it is for, with all its streams; may be given several times. Without sources and streams it is for all
    #[arg(long = "source")]
    pub(crate) sources: Vec<String>,
    /// A stream that it is for; may be given several times
    #[arg(long = "stream")]
    pub(crate) streams: Vec<String>,
}

impl Args {
    /// What ends the service beside signals.
    pub(crate) fn end(&self) -> End {
        if self.end_with_stdin { End::WithStdin } else { End::BySignals }
    }

    /// The settings of the file, with what was typed in their place.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = match &self.config {
            Some(path) => Settings::load(path)?,
            None => Settings::default(),
        };
        settings.address = self.address.unwrap_or(settings.address);
        settings.data = self.data.clone().unwrap_or(settings.data);
        settings.marker = self.marker_folder.clone().or(settings.marker);
        settings.key_file = self.key_file.clone().or(settings.key_file);
        Ok(settings)
    }
}
