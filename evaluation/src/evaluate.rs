//! The whole evaluation: runs sweeps, writes results, figures, manifest and report into a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::catalog;
use crate::coverage;
use crate::discovery;
use crate::draw;
use crate::figure::{Figure, Shows, Sweep};
use crate::manifest::{Manifest, commit};
use crate::preset::Preset;
use crate::report;
use crate::results::{Distribution, Results, distinct};
use crate::source::table::{Entry, State};
use crate::source::{PaperDataset, Report, Statistics};
use crate::store::{Store, replace};
use crate::stream::{REAL_STREAMS, Shelf, Stream, file_hash};
use crate::sweep::{self, Runner};

/// What is asked for.
#[derive(Debug)]
pub struct Evaluation<'a> {
    pub preset: &'a Preset,
    pub figures: &'a [&'a Figure],
    /// Where files of streams are.
    pub data: Option<PathBuf>,
    pub out: &'a Path,
}

/// Points of a distribution that are drawn.
const DISTRIBUTION_POINTS: usize = 120;

impl Evaluation<'_> {
    /// Runs what is not there yet.
    pub fn run(&self) -> Result<(Manifest, Results)> {
        let start = Instant::now();
        sweep::check(self.preset).with_context(|| format!("preset {}", self.preset.name))?;
        self.check_thresholds()?;
        let sweeps = self.sweeps()?;
        self.say_what_is_absent()?;
        let shelf = Shelf::new(self.data.clone());
        let store = Store::open(&self.out.join("points"), &commit())?;
        let runner = Runner { preset: self.preset, shelf: &shelf, store: &store };
        let results = Results {
            rows: runner.run(&sweeps)?,
            distributions: self.distributions(&runner)?,
            coverage: self.asked(&Shows::Coverage, || coverage::run(self.preset, &shelf, &store))?,
            discovery: self.asked(&Shows::Discovery, || discovery::run(self.preset, &shelf, &store))?,
        };
        Ok((self.manifest(&shelf, start)?, results))
    }

    /// The rows that a figure shows, or none.
    fn asked<R>(&self, shows: &Shows, run: impl FnOnce() -> Result<Vec<R>>) -> Result<Vec<R>> {
        let is_shown = self.figures.iter().any(|figure| figure.shows == *shows);
        if is_shown { run() } else { Ok(Vec::new()) }
    }

    /// What figures share is run once.
    fn sweeps(&self) -> Result<Vec<&Sweep>> {
        let mut sweeps: Vec<&Sweep> = Vec::new();
        for sweep in self.figures.iter().filter_map(|figure| figure.sweep.as_ref()) {
            match sweeps.iter().find(|known| known.name == sweep.name) {
                None => sweeps.push(sweep),
                Some(known) => ensure!(
                    *known == sweep,
                    "two different sweeps are called {}; give one of them another name",
                    sweep.name
                ),
            }
        }
        Ok(sweeps)
    }

    /// Scores are measured at the thresholds of the preset alone.
    fn check_thresholds(&self) -> Result<()> {
        let gammas = &self.preset.gammas;
        for metric in self.figures.iter().flat_map(|figure| figure.metrics()) {
            ensure!(
                metric.gamma().is_none_or(|gamma| gammas.contains(&gamma)),
                "{}: the threshold must be one of {gammas:?}, those of the preset {}",
                metric.key(),
                self.preset.name
            );
        }
        Ok(())
    }

    fn say_what_is_absent(&self) -> Result<()> {
        let names: BTreeSet<&str> = self.figures.iter().flat_map(|figure| figure.streams()).collect();
        let folder = self.data.as_deref();
        for paper in PaperDataset::ALL.into_iter().filter(|paper| paper.url().is_some()) {
            let found = folder.map(|folder| paper.find(folder)).transpose()?.flatten();
            if names.contains(paper.stream_name()) && found.is_none() {
                eprintln!("{} is absent and left out; dpsw-eval datasets says how to get it", paper.name());
            }
        }
        let is_there = |path: &str| folder.is_some_and(|folder| folder.join(path).is_file());
        for real in REAL_STREAMS.iter().filter(|real| names.contains(real.name) && !is_there(real.path)) {
            eprintln!("{} is absent and left out: no {} in the data folder", real.name, real.path);
        }
        Ok(())
    }

    /// Of the streams whose distributions are shown and that are there.
    fn distributions(&self, runner: &Runner<'_>) -> Result<Vec<Distribution>> {
        let streams = |figure: &&Figure| match &figure.shows {
            Shows::Distribution(_) => figure.streams(),
            _ => Vec::new(),
        };
        let mut names = Vec::new();
        for name in distinct(self.figures.iter().flat_map(streams)) {
            if runner.is_present(name)? {
                names.push(name);
            }
        }
        let items = usize::try_from(self.preset.items)?;
        let distribution = |name: &str| {
            let stream = Stream::new(name, self.preset.domain, items, self.preset.window, 0);
            let dataset = runner.shelf.get(&stream)?;
            let statistics = Statistics::new(dataset.counts(), Vec::new(), Report::default());
            let points = thinned(&statistics.share_at_least());
            Ok(Distribution {
                stream: name.to_owned(),
                items: dataset.items.len(),
                domain: dataset.domain_len,
                points,
            })
        };
        names.into_iter().map(distribution).collect()
    }

    fn manifest(&self, shelf: &Shelf, start: Instant) -> Result<Manifest> {
        let mut manifest = Manifest::new(self.preset, self.figures);
        manifest.streams = shelf.hashes();
        for name in shelf.names() {
            let stream = Stream::new(&name, 0, 0, 0, 0);
            for path in stream.files(shelf.folder())? {
                let place = path.strip_prefix(shelf.folder().unwrap_or(Path::new(""))).unwrap_or(&path);
                manifest.files.insert(place.display().to_string(), file_hash(&path)?);
            }
        }
        manifest.seconds = start.elapsed().as_secs_f64();
        Ok(manifest)
    }
}

/// Few points that keep the shape, which is drawn on logarithmic axes; frequency 0 has no place on them.
fn thinned(points: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let last = points.last().map_or(1.0, |&(x, _)| x.max(1) as f64);
    let least = last.powf(1.0 / DISTRIBUTION_POINTS as f64);
    for &(x, y) in points.iter().filter(|&&(x, _)| 0 < x) {
        let x = x as f64;
        if kept.last().is_none_or(|&(before, _)| before * least <= x) || x == last {
            kept.push((x, y));
        }
    }
    kept
}

/// Writes results, figures, manifest and report; returns the paths of the figures and of the report.
pub fn write(out: &Path, manifest: &Manifest, results: &Results) -> Result<Vec<PathBuf>> {
    let drawn = write_figures(out, manifest, results)?;
    replace(&out.join("results.json"), &serde_json::to_string(results)?)?;
    replace(&out.join("results.csv"), &results.csv(&manifest.preset.gammas)?)?;
    replace(&out.join("manifest.json"), &serde_json::to_string_pretty(manifest)?)?;
    let path = out.join("report.html");
    replace(&path, &report::html(manifest, results, &drawn))?;
    Ok(drawn.iter().map(|drawn| drawn.path.clone()).chain([path]).collect())
}

/// A figure that was drawn.
#[derive(Debug)]
pub struct Drawn {
    pub figure: Figure,
    pub svg: String,
    pub path: PathBuf,
}

/// Writes the figures of a manifest, each as SVG and CSV.
pub fn write_figures(out: &Path, manifest: &Manifest, results: &Results) -> Result<Vec<Drawn>> {
    let folder = out.join("figures");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let mut drawn = Vec::new();
    for figure in manifest.figures()? {
        let Some(chart) = draw::chart(&figure, results) else {
            eprintln!("{}: nothing to draw, its streams are absent or no method fits", figure.name);
            continue;
        };
        let path = folder.join(format!("{}.svg", figure.name));
        let svg = chart.svg();
        replace(&path, &svg)?;
        replace(&path.with_extension("csv"), &draw::csv(&figure, &chart)?)?;
        drawn.push(Drawn { figure, svg, path });
    }
    Ok(drawn)
}

/// Writes one figure, and beside it what it was made of and every number.
pub fn write_figure(out: &Path, manifest: &Manifest, results: &Results) -> Result<Vec<PathBuf>> {
    let drawn = write_figures(out, manifest, results)?;
    let json = serde_json::json!({ "manifest": manifest, "results": results });
    for drawn in &drawn {
        replace(&drawn.path.with_extension("json"), &json.to_string())?;
    }
    Ok(drawn.into_iter().map(|drawn| drawn.path).collect())
}

/// Writes figures and report again from the results of a folder.
pub fn rewrite(out: &Path) -> Result<Vec<PathBuf>> {
    let manifest = Manifest::read(&out.join("manifest.json"))?;
    let path = out.join("results.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: dpsw-eval all writes it", path.display()))?;
    let results = serde_json::from_str(&text)
        .with_context(|| format!("{} holds no results; dpsw-eval all writes them again", path.display()))?;
    write(out, &manifest, &results)
}

/// Writes the figure of distributions of the data sets that were counted.
pub fn write_distributions(path: &Path, entries: &[Entry]) -> Result<()> {
    let distribution = |entry: &Entry| match &entry.state {
        State::Present { statistics, .. } => Some(Distribution {
            stream: entry.dataset.name().to_owned(),
            items: usize::try_from(statistics.len).ok()?,
            domain: statistics.domain_len,
            points: thinned(&statistics.share_at_least()),
        }),
        _ => None,
    };
    let distributions: Vec<Distribution> = entries.iter().filter_map(distribution).collect();
    let title = &catalog::figure("distribution")?.title;
    let chart = draw::distributions(title, &distributions).context("nothing to draw")?;
    let folder = path.parent().context("the figure has a folder")?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    replace(path, &chart.svg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_ends_and_drops_frequency_zero() {
        let points: Vec<(u64, f64)> = (0..10_000).map(|x| (x, 1.0 - x as f64 / 10_000.0)).collect();
        let kept = thinned(&points);
        assert!(kept.len() <= DISTRIBUTION_POINTS + 1, "{}", kept.len());
        assert_eq!((kept[0].0, kept.last().expect("points").0), (1.0, 9_999.0));
    }
}
