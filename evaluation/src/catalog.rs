//! The figures that this program brings: those of the paper and some beside.

use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result, ensure};

use crate::figure::Figure;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../figures/", $name, ".toml")))),*]
    };
}

/// Names and files, in the order of the report.
const FILES: &[(&str, &str)] = files![
    "frequency-high",
    "frequency-low",
    "heavy-hitters",
    "heavy-hitters-gamma",
    "precision-recall",
    "window",
    "sketch-size",
    "throughput",
    "distribution",
    "checkpoints",
    "substreams",
    "hash-functions",
    "domain",
    "microscopes",
    "price-of-privacy",
    "drift",
    "predictions",
    "unknown-domain",
    "real-streams",
    "coverage",
    "discovery",
];

/// What is drawn, in the order of the report.
pub static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
    let figure = |&(name, text): &(&str, &str)| Figure::parse(name, text).expect("a test reads every file");
    FILES.iter().map(figure).collect()
});

pub fn figure(name: &str) -> Result<&'static Figure> {
    let figure = FIGURES.iter().find(|figure| figure.name == name);
    figure.with_context(|| format!("there is no figure {name}; dpsw-eval figure lists them"))
}

/// A figure of the user's own.
pub fn read(path: &Path) -> Result<Figure> {
    let own = Figure::read(path)?;
    let is_taken = FIGURES.iter().any(|figure| figure.name == own.name);
    ensure!(
        !is_taken,
        "{}: there is a figure {} already; call the file something else",
        path.display(),
        own.name
    );
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed_and_equal_names_mean_equal_sweeps() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("figures");
        assert_eq!(std::fs::read_dir(folder).expect("figures").count(), FIGURES.len());
        let sweeps: Vec<_> = FIGURES.iter().filter_map(|figure| figure.sweep.as_ref()).collect();
        for (index, sweep) in sweeps.iter().enumerate() {
            let is_subset = sweep.quick.iter().all(|value| sweep.full.contains(value));
            assert!(is_subset, "{}", sweep.name);
            for other in &sweeps[..index] {
                assert_eq!(other.name == sweep.name, other == sweep, "{}", sweep.name);
            }
        }
    }
}
