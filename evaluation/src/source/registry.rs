//! The data sets of the paper: what it says of them, where they come from and where they are looked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::numbering::Loaded;
use super::report::Report;
use super::statistics::Statistics;
use super::time::digits;
use super::{aol, movielens, worldcup};
use crate::dataset::Synthetic;

/// Names the data folder when the command line does not.
const DATA_VARIABLE: &str = "DPSW_DATA";
/// The data folder that nobody named.
const DATA_FOLDER: &str = "data";
/// Of the synthetic streams.
const SYNTHETIC_LEN: usize = 10_000_000;
const SYNTHETIC_SEED: u64 = 0;
/// Synthetic streams without drift do not depend on it.
const ANY_WINDOW: u64 = 1_000_000;

/// A data set of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PaperDataset {
    /// Keywords of web queries.
    Aol,
    /// Movies that are rated.
    MovieLens,
    /// URLs that are requested.
    WorldCup,
    /// 95 % normal, 5 % uniform.
    Gaussian,
    /// 95 % Zipf, 5 % uniform.
    Zipf,
}

/// The files of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Files {
    /// What holds the items, in the order of reading.
    pub logs: Vec<PathBuf>,
    /// `words.txt` of AOL, the list of movies of MovieLens, `object_mappings.sort` of WorldCup, if it is there.
    pub companion: Option<PathBuf>,
}

/// What the paper prints of a data set, after its own preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Printed {
    /// n: the items of the stream.
    pub len: u64,
    /// m: the items of the domain.
    pub domain_len: usize,
    /// What it is.
    pub description: &'static str,
}

/// The data folder: the one given, else that of the variable `DPSW_DATA` unless it is empty, else `./data`. It need not
/// exist.
pub fn data_folder(given: Option<&Path>) -> PathBuf {
    let variable = || std::env::var_os(DATA_VARIABLE).filter(|value| !value.is_empty());
    let named = given.map(Path::to_owned).or_else(|| variable().map(PathBuf::from));
    named.unwrap_or_else(|| PathBuf::from(DATA_FOLDER))
}

impl PaperDataset {
    /// In the order of the paper's table.
    pub const ALL: [Self; 5] = [Self::Aol, Self::MovieLens, Self::WorldCup, Self::Gaussian, Self::Zipf];

    /// The name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aol => "AOL",
            Self::MovieLens => "MovieLens",
            Self::WorldCup => "WorldCup",
            Self::Gaussian => "Gaussian",
            Self::Zipf => "Zipf",
        }
    }

    /// The data set of this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dataset| dataset.name().eq_ignore_ascii_case(name))
    }

    /// What the paper's table and its appendix say.
    pub fn printed(self) -> Printed {
        let (len, domain_len, description) = match self {
            Self::Aol => (10_710_880, 38_411, "Web search query logs"),
            Self::MovieLens => (25_000_095, 62_423, "Movie ratings"),
            Self::WorldCup => (1_267_670_951, 82_592, "Web server logs"),
            Self::Gaussian => (10_000_000, 25_600, "Synthetic Gaussian-distributed items"),
            Self::Zipf => (10_000_000, 25_600, "Synthetic Zipf-distributed items"),
        };
        Printed { len, domain_len, description }
    }

    /// Where it comes from, unless it is synthetic.
    pub fn url(self) -> Option<&'static str> {
        match self {
            Self::Aol => Some("https://www.cim.mcgill.ca/~dudek/206/Logs/AOL-user-ct-collection/"),
            Self::MovieLens => Some("https://grouplens.org/datasets/movielens/25m/"),
            Self::WorldCup => Some("https://ita.ee.lbl.gov/html/contrib/WorldCup.html"),
            Self::Gaussian | Self::Zipf => None,
        }
    }

    /// The name on the command line.
    pub fn stream_name(self) -> &'static str {
        match self {
            Self::Aol => "aol",
            Self::MovieLens => "movielens",
            Self::WorldCup => "worldcup",
            Self::Gaussian => "gauss",
            Self::Zipf => "zipf",
        }
    }

    /// How many files the whole set has.
    pub fn files_len(self) -> usize {
        match self {
            Self::Aol => 10,
            Self::MovieLens => 1,
            Self::WorldCup => 249,
            Self::Gaussian | Self::Zipf => 0,
        }
    }

    /// The folders that are looked into, the first one first; the data folder itself is the last.
    fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Aol => &["aol", "AOL-user-ct-collection", ""],
            Self::MovieLens => &[
                "movielens",
                "ml-25m",
                "ml-32m",
                "ml-20m",
                "ml-latest",
                "ml-10M100K",
                "ml-1m",
                "ml-latest-small",
                "ml-100k",
                "",
            ],
            Self::WorldCup => &["worldcup", "WorldCup", ""],
            Self::Gaussian | Self::Zipf => &[],
        }
    }

    fn files_text(self) -> &'static str {
        match self {
            Self::Aol => "user-ct-test-collection-01.txt.gz to -10.txt.gz (and words.txt to tell typos)",
            Self::MovieLens => "ratings.csv, ratings.dat or u.data (and movies.csv, movies.dat or u.item)",
            Self::WorldCup => "wc_day1_1.gz to wc_day92_1.gz, 249 files (and object_mappings.sort)",
            Self::Gaussian | Self::Zipf => "no file",
        }
    }

    /// Where to get it and where to put it.
    pub fn instructions(self, folder: &Path) -> String {
        let Some(url) = self.url() else { return format!("{} is generated", self.name()) };
        let place = folder.join(self.folders()[0]);
        format!("get it from {url}\nput {} into {}", self.files_text(), place.display())
    }

    /// The files of the set in a data folder, if they are there.
    pub fn find(self, folder: &Path) -> Result<Option<Files>> {
        for name in self.folders() {
            let place = folder.join(name);
            if !place.is_dir() {
                continue;
            }
            let files = self.pick(list(&place)?);
            if !files.logs.is_empty() {
                return Ok(Some(files));
            }
        }
        Ok(None)
    }

    /// Of a file that is there packed and unpacked, one is taken.
    fn pick(self, paths: Vec<PathBuf>) -> Files {
        let mut logs = BTreeMap::new();
        let mut companions = BTreeMap::new();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
            if let Some(order) = self.log_order(name) {
                logs.entry(order).or_insert(path);
            } else if let Some(order) = self.companions().iter().position(|known| *known == name) {
                companions.entry(order).or_insert(path);
            }
        }
        if self == Self::MovieLens {
            logs = logs.into_iter().take(1).collect();
        }
        Files { logs: logs.into_values().collect(), companion: companions.into_values().next() }
    }

    /// The place of a file among the logs of the set, if it is one of them.
    fn log_order(self, name: &str) -> Option<(u32, u32)> {
        let number = |text: &str| digits(text.as_bytes());
        match self {
            Self::Aol => {
                let part = name.strip_prefix("user-ct-test-collection-")?.strip_suffix(".txt")?;
                Some((number(part)?, 0))
            }
            Self::MovieLens => {
                let layouts = ["ratings.csv", "ratings.dat", "u.data"];
                Some((u32::try_from(layouts.iter().position(|known| *known == name)?).ok()?, 0))
            }
            Self::WorldCup => {
                let (day, part) = name.strip_prefix("wc_day")?.split_once('_')?;
                Some((number(day)?, number(part)?))
            }
            Self::Gaussian | Self::Zipf => None,
        }
    }

    fn companions(self) -> &'static [&'static str] {
        match self {
            Self::Aol => &["words.txt"],
            Self::MovieLens => &["movies.csv", "movies.dat", "u.item"],
            Self::WorldCup => &["object_mappings.sort"],
            Self::Gaussian | Self::Zipf => &[],
        }
    }

    /// What the numbers mean when the companion of the logs is absent.
    pub(crate) fn without_companion(self) -> Option<&'static str> {
        match self {
            Self::Aol => Some("without words.txt, m is at most the paper's by construction"),
            Self::MovieLens => Some("without movies.csv, m counts the rated movies alone"),
            Self::WorldCup | Self::Gaussian | Self::Zipf => None,
        }
    }

    /// Reads the set from a data folder, or generates it; `limit` takes the first items alone.
    pub fn load(self, folder: &Path, limit: Option<usize>) -> Result<Loaded> {
        match self {
            Self::Aol => aol::load(&self.found(folder)?, limit),
            Self::MovieLens => movielens::load(&self.found(folder)?, limit),
            Self::WorldCup => worldcup::load(&self.found(folder)?, limit),
            Self::Gaussian => Ok(generate(Synthetic::Gauss, limit)),
            Self::Zipf => Ok(generate(Synthetic::Zipf, limit)),
        }
    }

    /// Counts the set in a data folder; WorldCup without keeping the stream.
    pub fn count(self, folder: &Path) -> Result<Statistics> {
        match self {
            Self::WorldCup => worldcup::count(&self.found(folder)?),
            _ => Ok(Statistics::of(&self.load(folder, None)?)),
        }
    }

    fn found(self, folder: &Path) -> Result<Files> {
        match self.find(folder)? {
            Some(files) => Ok(files),
            None => bail!("{} is absent: {}", self.name(), self.instructions(folder)),
        }
    }
}

/// The files of a folder by name.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("{}: cannot be listed", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn generate(synthetic: Synthetic, limit: Option<usize>) -> Loaded {
    let len = limit.unwrap_or(SYNTHETIC_LEN);
    let dataset = synthetic.generate(len, ANY_WINDOW, SYNTHETIC_SEED);
    let names = (1..=dataset.domain_len).map(|item| item.to_string()).collect();
    Loaded { report: Report { records: len as u64, ..Report::default() }, dataset, names }
}
