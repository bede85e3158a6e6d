//! A figure, as a small TOML file says it: what is run, and what is drawn of it.

use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::cores::Cores;
use crate::dataset::Synthetic;
use crate::method::{FINE_GRID, MethodName};
use crate::metric::Metric;
use crate::source::PaperDataset;
use crate::stream::REAL_STREAMS;

/// What a sweep varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    Epsilon,
    /// w; its values are shares of the preset's.
    Window,
    Bytes,
    /// m of a synthetic stream; a preset with a smaller domain than 25,600 scales its values down.
    Domain,
    /// |I| of the paper's structure.
    Checkpoints,
    /// Substreams of a window of the paper's structure.
    Substreams,
    /// Rows of each sketch of the paper's structure.
    Rows,
    /// Nothing but the stream; it has no values.
    Stream,
}

impl Axis {
    fn range(self) -> RangeInclusive<f64> {
        match self {
            Self::Epsilon => 1e-6..=1e6,
            Self::Window => 0.001..=1.0,
            Self::Bytes => 1.0..=1e12,
            Self::Domain => 100.0..=1e7,
            Self::Checkpoints => 2.0..=FINE_GRID as f64,
            Self::Substreams => 1.0..=1_000.0,
            Self::Rows => 1.0..=100.0,
            Self::Stream => 0.0..=0.0,
        }
    }

    fn is_whole(self) -> bool {
        !matches!(self, Self::Epsilon | Self::Window)
    }
}

/// Streams that a figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    Paper,
    Real,
    /// A synthetic stream, a data set of the paper or a real stream.
    Named(&'static str),
}

impl Streams {
    /// The names of all, whether they are there or not.
    pub fn names(all: &[Self]) -> Vec<&'static str> {
        let names = |streams: &Self| match streams {
            Self::Paper => PaperDataset::ALL.map(PaperDataset::stream_name).to_vec(),
            Self::Real => REAL_STREAMS.iter().map(|real| real.name).collect(),
            Self::Named(name) => vec![*name],
        };
        all.iter().flat_map(names).collect()
    }

    fn known() -> Vec<&'static str> {
        let mut known = Self::names(&[Self::Paper, Self::Real]);
        known.extend(Synthetic::NAMES);
        known.sort_unstable();
        known.dedup();
        known
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            "paper" => Some(Self::Paper),
            "real" => Some(Self::Real),
            _ => Self::known().into_iter().find(|known| *known == name).map(Self::Named),
        }
    }
}

impl<'de> Deserialize<'de> for Streams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            let known = Self::known().join(", ");
            D::Error::custom(format!("there is no stream {name}; there are paper, real, {known}"))
        })
    }
}

/// By what the best parameters of a method are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// The absolute errors of frequent and of rare items together.
    Error,
    /// F1 of heavy hitters, and where that is equal the errors.
    F1,
}

/// Methods on streams, for every value of an axis.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The name in results; figures with the same sweep share its rows.
    pub name: String,
    pub axis: Axis,
    /// Values of the preset `quick`, ascending.
    #[serde(default)]
    pub quick: Vec<f64>,
    /// Values of the preset `full`, ascending.
    #[serde(default)]
    pub full: Vec<f64>,
    pub streams: Vec<Streams>,
    pub methods: Vec<MethodName>,
    /// Bytes of the sketches, unless varied.
    pub bytes: Option<u64>,
    pub goal: Goal,
    /// One at a time where speed is measured.
    pub cores: Cores,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shows {
    /// A panel for each metric and stream, over the values of the axis.
    Curves(Vec<Metric>),
    /// Scores over the threshold at one value of the axis.
    Thresholds(f64),
    /// Predicted against measured errors of the tuned method.
    Predictions,
    /// The share of items with at least a frequency; nothing is run for it.
    Distribution(Vec<Streams>),
    /// How often 95 % intervals hold the truth; it has cases of its own.
    Coverage,
    /// How well keys are found without a list; it has cases of its own.
    Discovery,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The name on the command line and of its files.
    pub name: String,
    pub text: String,
    pub title: String,
    /// The figure of the paper that it reproduces, if any.
    pub paper: Option<String>,
    /// How to read it, if the axes do not say it all.
    pub about: Option<String>,
    pub shows: Shows,
    /// What is run, but for distributions and what has cases of its own.
    pub sweep: Option<Sweep>,
}

/// A figure as its file says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    paper: Option<String>,
    about: Option<String>,
    shows: Shows,
    sweep: Option<Sweep>,
}

impl Figure {
    /// A figure from the text of its file.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        check_name(name)?;
        let File { title, paper, about, shows, sweep } =
            toml::from_str(text).map_err(|error| place(text, &error))?;
        match (&shows, &sweep) {
            (Shows::Distribution(streams), None) => check_streams("distribution", streams)?,
            (Shows::Distribution(_), Some(_)) => bail!("a distribution runs nothing; leave out [sweep]"),
            (Shows::Coverage | Shows::Discovery, None) => {}
            (Shows::Coverage | Shows::Discovery, Some(_)) => {
                bail!("coverage and discovery have cases of their own; leave out [sweep]")
            }
            (_, None) => bail!("[sweep] is absent; it says what is run"),
            (shows, Some(sweep)) => sweep.check().and_then(|()| sweep.check_shows(shows))?,
        }
        Ok(Self { name: name.to_owned(), text: text.to_owned(), title, paper, about, shows, sweep })
    }

    /// A figure from a file; its name is the file's, without the ending.
    pub fn read(path: &Path) -> Result<Self> {
        let context = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(context)?;
        let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Self::parse(&name, &text).with_context(context)
    }

    /// The names of its streams, whether they are there or not.
    pub fn streams(&self) -> Vec<&'static str> {
        match (&self.shows, &self.sweep) {
            (Shows::Distribution(streams), _) => Streams::names(streams),
            (Shows::Coverage | Shows::Discovery, _) => {
                Synthetic::NAMES.into_iter().chain(Streams::names(&[Streams::Real])).collect()
            }
            (_, Some(sweep)) => Streams::names(&sweep.streams),
            (_, None) => Vec::new(),
        }
    }

    /// The metrics that it shows, but for those at every threshold.
    pub fn metrics(&self) -> &[Metric] {
        if let Shows::Curves(metrics) = &self.shows { metrics } else { &[] }
    }
}

/// What is wrong, and the line that says it.
fn place(text: &str, error: &toml::de::Error) -> Error {
    let start = error.span().map_or(0, |span| span.start);
    let number = text.bytes().take(start).filter(|&byte| byte == b'\n').count();
    let line = text.lines().nth(number).unwrap_or_default().trim();
    anyhow!("line {} ({line}): {}", number + 1, error.message())
}

/// Names become files and parts of pages.
fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_good = !name.is_empty() && name.chars().all(is_plain);
    ensure!(is_good, "a name consists of letters, digits, - and _, got {name:?}");
    Ok(())
}

fn check_streams(field: &str, streams: &[Streams]) -> Result<()> {
    let names = Streams::names(streams);
    ensure!(!names.is_empty(), "{field} must name at least one stream, got none");
    check_unique(field, &names)
}

fn check_unique(field: &str, names: &[&str]) -> Result<()> {
    for (index, name) in names.iter().enumerate() {
        ensure!(!names[..index].contains(name), "{field} must name each once, got {name} twice");
    }
    Ok(())
}

impl Sweep {
    fn check(&self) -> Result<()> {
        check_name(&self.name).context("name of [sweep]")?;
        check_streams("streams", &self.streams)?;
        ensure!(!self.methods.is_empty(), "methods must name at least one method, got none");
        let methods: Vec<&str> = self.methods.iter().map(|method| method.name()).collect();
        check_unique("methods", &methods)?;
        self.check_values("quick", &self.quick)?;
        self.check_values("full", &self.full)?;
        match (self.axis, self.bytes) {
            (Axis::Bytes, Some(bytes)) => bail!("bytes are varied; leave out bytes = {bytes}"),
            (_, Some(0)) => bail!("bytes must be at least 1, got 0"),
            (Axis::Bytes, None) | (_, Some(_)) => self.check_domains(),
            (_, None) => bail!("bytes are absent; only axis = \"bytes\" goes without"),
        }
    }

    /// The domain of a real stream is what it is.
    fn check_domains(&self) -> Result<()> {
        let real = Streams::names(&self.streams).into_iter().find(|name| Synthetic::named(name).is_none());
        match real.filter(|_| self.axis == Axis::Domain) {
            Some(real) => {
                bail!("streams must be of {:?} with axis = \"domain\", got {real}", Synthetic::NAMES)
            }
            None => Ok(()),
        }
    }

    fn check_values(&self, field: &str, values: &[f64]) -> Result<()> {
        if self.axis == Axis::Stream {
            ensure!(values.is_empty(), "{field} must be left out with axis = \"stream\", got {values:?}");
            return Ok(());
        }
        ensure!(!values.is_empty(), "{field} must hold at least one value of the axis, got none");
        let (range, is_whole) = (self.axis.range(), self.axis.is_whole());
        let is_good = |value: &f64| range.contains(value) && (!is_whole || value.fract() == 0.0);
        if let Some(bad) = values.iter().find(|value| !is_good(value)) {
            let kind = if is_whole { "whole numbers" } else { "numbers" };
            let (low, high) = range.into_inner();
            bail!("{field} must hold {kind} between {low} and {high}, got {bad}");
        }
        ensure!(values.is_sorted_by(|a, b| a < b), "{field} must ascend, got {values:?}");
        Ok(())
    }

    /// Whether what is run gives what is shown.
    fn check_shows(&self, shows: &Shows) -> Result<()> {
        let needed = match shows {
            Shows::Curves(metrics) if metrics.iter().any(|metric| metric.is_price()) => {
                Some(MethodName::MICROSCOPE)
            }
            Shows::Predictions => Some(MethodName::Tuned),
            _ => None,
        };
        if let Some(needed) = needed.filter(|needed| !self.methods.contains(needed)) {
            bail!("methods must name {}, which is shown", needed.name());
        }
        match shows {
            Shows::Curves(metrics) => {
                ensure!(!metrics.is_empty(), "curves must name at least one metric, got none");
            }
            Shows::Thresholds(x) => self.check_thresholds(*x)?,
            Shows::Predictions | Shows::Distribution(_) | Shows::Coverage | Shows::Discovery => {}
        }
        Ok(())
    }

    /// Windows and domains are relative to a preset, so that no value of them is in every one.
    fn check_thresholds(&self, x: f64) -> Result<()> {
        let allowed: Vec<f64> = match self.axis {
            Axis::Stream => vec![0.0],
            Axis::Window | Axis::Domain => Vec::new(),
            _ => self.quick.iter().copied().filter(|value| self.full.contains(value)).collect(),
        };
        ensure!(allowed.contains(&x), "thresholds must be a value of quick and full ({allowed:?}), got {x}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
title = "Mine"
shows = { curves = ["mae_high", "f1_0.01"] }

[sweep]
name = "mine"
axis = "epsilon"
quick = [0.5, 1]
full = [0.5, 1, 2]
streams = ["paper", "drift"]
methods = ["tuned", "paper"]
bytes = 100_000
goal = "error"
cores = "all"
"#;

    #[test]
    fn a_file_says_what_is_run_and_drawn() {
        let figure = Figure::parse("mine", TEXT).expect("a figure");
        assert_eq!(figure.metrics(), [Metric::MaeHigh, Metric::F1(0.01)]);
        assert_eq!(figure.streams(), ["aol", "movielens", "worldcup", "gauss", "zipf", "drift"]);
        let sweep = figure.sweep.expect("a sweep");
        assert_eq!((sweep.axis, sweep.quick, sweep.bytes), (Axis::Epsilon, vec![0.5, 1.0], Some(100_000)));
        let distribution = "title = \"Mine\"\nshows = { distribution = [\"real\"] }\n";
        assert_eq!(Figure::parse("mine", distribution).expect("a figure").sweep, None);
        let coverage = Figure::parse("mine", "title = \"Mine\"\nshows = \"coverage\"\nabout = \"So.\"\n");
        let coverage = coverage.expect("a figure");
        assert_eq!((coverage.shows, coverage.about.as_deref()), (Shows::Coverage, Some("So.")));
    }

    #[track_caller]
    fn check_refused(from: &str, to: &str, message: &str) {
        let error = Figure::parse("mine", &TEXT.replacen(from, to, 1)).expect_err(message);
        assert!(format!("{error:#}").contains(message), "{error:#}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_value_and_what_is_allowed() {
        check_refused(
            "title",
            "titel",
            "line 2 (titel = \"Mine\"): unknown field `titel`, expected one of `title`",
        );
        check_refused("goal = \"error\"\n", "", "missing field `goal`");
        check_refused("\"epsilon\"", "\"eps\"", "unknown variant `eps`, expected one of `epsilon`, `window`");
        check_refused("mae_high", "mae", "there is no metric mae; there are mae_high");
        check_refused("\"drift\"", "\"none\"", "there is no stream none; there are paper, real, aol");
        check_refused("\"tuned\"", "\"none\"", "there is no method none; there are paper");
        check_refused("\"drift\"", "\"zipf\"", "streams must name each once, got zipf twice");
        check_refused("\"tuned\"", "\"paper\"", "methods must name each once, got paper twice");
        check_refused("\"tuned\", \"paper\"", "", "methods must name at least one method");
        check_refused("100_000", "0", "bytes must be at least 1, got 0");
        check_refused("100_000", "-1", "line 12 (bytes = -1): invalid value: integer `-1`");
        check_refused("bytes = 100_000\n", "", "bytes are absent");
        check_refused("[0.5, 1]", "[0, 1]", "quick must hold numbers between 0.000001 and 1000000, got 0");
        check_refused("[0.5, 1]", "[nan]", "got NaN");
        check_refused("[0.5, 1]", "[1, 0.5]", "quick must ascend, got [1.0, 0.5]");
        check_refused("[0.5, 1]", "[]", "quick must hold at least one value");
        check_refused("\"epsilon\"", "\"rows\"", "quick must hold whole numbers between 1 and 100, got 0.5");
        check_refused("\"epsilon\"", "\"stream\"", "quick must be left out");
        check_refused("mae_high", "price_high", "methods must name microscope, which is shown");
        check_refused(
            "{ curves = [\"mae_high\", \"f1_0.01\"] }",
            "{ thresholds = 2.0 }",
            "([0.5, 1.0]), got 2",
        );
        check_refused(
            "{ curves = [\"mae_high\", \"f1_0.01\"] }",
            "{ distribution = [\"real\"] }",
            "leave out [sweep]",
        );
        for own in ["coverage", "discovery"] {
            check_refused(
                "{ curves = [\"mae_high\", \"f1_0.01\"] }",
                &format!("{own:?}"),
                "coverage and discovery have cases of their own; leave out [sweep]",
            );
        }
        let domains = "\"domain\"\nquick = [100]\nfull = [100]\n#";
        check_refused(
            "\"epsilon\"\nquick = [0.5, 1]\nfull = ",
            domains,
            "streams must be of [\"zipf\", \"gauss\", \"drift\", \"swap\"] with axis = \"domain\", got aol",
        );
        check_refused("\"mine\"", "\"a b\"", "letters, digits, - and _, got \"a b\"");
    }
}
