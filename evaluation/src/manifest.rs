//! What a run was made of, so that it can be made again.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::catalog;
use crate::figure::Figure;
use crate::preset::Preset;

/// What a run was made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub version: String,
    /// The commit of the code, with "-dirty" where files differ from it, or "unknown".
    pub commit: String,
    /// Windows, streams, seeds, questions, values.
    pub preset: Preset,
    pub figures: Vec<String>,
    /// The files of those figures that this program does not bring, by their names.
    #[serde(default)]
    pub own_figures: BTreeMap<String, String>,
    /// The SHA-256 of the items of each stream, as 64-bit little-endian integers.
    pub streams: BTreeMap<String, String>,
    /// The SHA-256 of each file that was read, by its place in the data folder.
    pub files: BTreeMap<String, String>,
    /// Seconds from start to end; those of points that were kept from an earlier run are not in it.
    pub seconds: f64,
    /// Cores, system and processor, which times depend on.
    pub machine: String,
}

impl Manifest {
    /// Before anything was run.
    pub fn new(preset: &Preset, figures: &[&Figure]) -> Self {
        let own = figures.iter().filter(|figure| catalog::figure(&figure.name).is_err());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(),
            preset: preset.clone(),
            figures: figures.iter().map(|figure| figure.name.clone()).collect(),
            own_figures: own.map(|figure| (figure.name.clone(), figure.text.clone())).collect(),
            streams: BTreeMap::new(),
            files: BTreeMap::new(),
            seconds: 0.0,
            machine: format!("{cores} cores, {} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }

    /// Reads one, from its own file or from the JSON of a figure.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{}: dpsw-eval all writes it", path.display()))?;
        let wrong = || format!("{} is no manifest; dpsw-eval all writes one", path.display());
        let mut json: serde_json::Value = serde_json::from_str(&text).with_context(wrong)?;
        let inner = json.get_mut("manifest").map(serde_json::Value::take);
        serde_json::from_value(inner.unwrap_or(json)).with_context(wrong)
    }

    pub fn figures(&self) -> Result<Vec<Figure>> {
        let figure = |name: &String| match self.own_figures.get(name) {
            Some(text) => Figure::parse(name, text).with_context(|| format!("{name} of the manifest")),
            None => catalog::figure(name).cloned().context("figures of the manifest"),
        };
        self.figures.iter().map(figure).collect()
    }
}

/// The commit that this program was built from, whatever the source folder holds by now.
pub fn commit() -> String {
    env!("DPSW_COMMIT").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_survives_its_file() {
        let mut manifest = Manifest::new(&Preset::tiny(), &[catalog::figure("window").expect("a figure")]);
        manifest.streams.insert("zipf".to_owned(), "abc".to_owned());
        let text = serde_json::to_string(&manifest).expect("json");
        assert_eq!(serde_json::from_str::<Manifest>(&text).expect("a manifest"), manifest);
    }

    #[test]
    fn an_unknown_parameter_is_refused() {
        let text = serde_json::to_string(&Preset::tiny()).expect("json").replacen('{', "{\"more\":1,", 1);
        assert!(serde_json::from_str::<Preset>(&text).is_err());
    }
}
