//! `dpsw-server token`: tokens from the command line.

use std::collections::BTreeSet;
use std::path::Path;

use dpsw_server::auth::{Grant, Keeper, TokenReport};
use dpsw_server::clock::{Clock, SystemClock};
use dpsw_server::settings::Settings;

use crate::Failure;
use crate::args::{NewToken, TokenCommand};

pub(crate) fn run(settings: &Settings, command: &TokenCommand) -> Result<(), Failure> {
    check_folder(&settings.data, "data", "--data")?;
    if let TokenCommand::Delete { .. } = command {
        // Or a backup would bring the token back.
        check_folder(&settings.marker_folder(), "marker", "--marker-folder")?;
    }
    let keeper = Keeper::open(&settings.data, &settings.marker_folder(), &settings.limits)?;
    match command {
        TokenCommand::Create(new) => {
            let token = keeper.create(&new.name, new.grant(), SystemClock.now_ms())?;
            eprintln!("The token {} is shown this once; only its hash is kept.", token.id);
            println!("{}", *token.text);
        }
        TokenCommand::List => {
            for token in keeper.list() {
                println!("{}", line(&token));
            }
        }
        TokenCommand::Delete { id } => keeper.delete(id)?,
    }
    Ok(())
}

/// Tokens belong to a service whose folders are there: a folder that is made here would be another one.
fn check_folder(folder: &Path, what: &str, option: &str) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    let folder = folder.display();
    Err(format!(
        "there is no {what} folder {folder}, so nothing was changed; name the one that the service was started with by \
        {option} DIR, or its settings file by --config FILE"
    )
    .into())
}

impl NewToken {
    fn grant(&self) -> Grant {
        let some =
            |names: &[String]| (!names.is_empty()).then(|| names.iter().cloned().collect::<BTreeSet<_>>());
        Grant {
            roles: self.roles.iter().copied().collect(),
            sources: some(&self.sources),
            streams: some(&self.streams),
        }
    }
}

fn line(token: &TokenReport) -> String {
    let roles: Vec<&str> = token.grant.roles.iter().map(|role| role.name()).collect();
    let names = |what: &str, names: &Option<BTreeSet<String>>| {
        names.iter().flatten().map(|name| format!(" {what} {name}")).collect::<String>()
    };
    let places = names("source", &token.grant.sources) + &names("stream", &token.grant.streams);
    let places = if places.is_empty() { " everywhere".to_owned() } else { places };
    format!("{}  {}{places}  {}", token.id, roles.join(","), token.name)
}
