//! `dpsw-server --check CONFIG`: says what a settings file means, without starting anything.

use std::path::Path;

use dpsw::privacy::{Cost, Ledger};
use dpsw::{Claim, Plan};
use dpsw_server::config::{Protects, SourceConfig};
use dpsw_server::settings::Settings;
use dpsw_server::tls::Tls;

use crate::Failure;

pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let settings = Settings::load(path)?;
    settings.check_address()?;
    settings.tls.clone().map(Tls::open).transpose()?;
    settings.sources.iter().try_for_each(check_source)?;
    let streams = || settings.sources.iter().flat_map(|source| &source.streams);
    let is_unknown = |name: &&String| !streams().any(|stream| stream.name == **name);
    if let Some(name) = settings.prometheus.iter().find(is_unknown) {
        println!("note: prometheus names {name:?}, which is no stream of this file");
    }
    println!(
        "{} is in order: {} sources, {} streams",
        path.display(),
        settings.sources.len(),
        streams().count()
    );
    Ok(())
}

/// Plans the streams of a source and adds up what they spend.
fn check_source(source: &SourceConfig) -> Result<(), Failure> {
    let (epsilon, delta) = source.budget()?;
    let mut ledger = Ledger::new(epsilon, delta);
    println!("source {} protects one {}, with {}", source.name, unit(source), budget(source));
    for stream in &source.streams {
        let settings = stream.settings(source)?;
        let plan = stream.plan(settings).map_err(|error| format!("stream {:?}: {error}", stream.name))?;
        ledger.charge(&format!("stream {:?}", stream.name), cost(&plan)?)?;
        println!("  stream {}: {}", stream.name, plan.contract());
    }
    Ok(())
}

fn cost(plan: &Plan) -> Result<Cost, Failure> {
    match plan.claim() {
        Claim::Pure(epsilon) => Ok(Cost::Pure(epsilon.ratio())),
        Claim::Approximate(epsilon, delta) => Ok(Cost::Approximate(epsilon.ratio(), delta.get())),
        _ => Err("a stream with reproducible noise claims no privacy and is not served".into()),
    }
}

fn unit(source: &SourceConfig) -> &'static str {
    match source.protects {
        Protects::Event => "event's item",
        Protects::Presence => "event's presence",
        Protects::Users => "user",
    }
}

fn budget(source: &SourceConfig) -> String {
    let delta = source.delta.map_or(String::new(), |delta| format!(" and delta {delta:e}"));
    format!("epsilon {}{delta} for all its streams", source.epsilon)
}
