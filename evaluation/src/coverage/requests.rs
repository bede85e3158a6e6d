//! Lists by what they were asked for: all keys, few keys, thresholds below the noise, strict ones, short windows.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use dpsw::{Item, List, ListRequest, Plan, Settings, Threshold, WindowView};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use super::arrivals::{Arrivals, Occurrences};
use super::follow::Follower;
use super::listed::{LISTED, share};
use super::shown::shown;
use crate::cores::{self, Cores};
use crate::dataset::{self, Column, Dataset, Synthetic};
use crate::stream::{REAL_STREAMS, Shelf, Stream};

/// What is run.
#[derive(Debug, Clone)]
pub struct Requests {
    pub streams: Vec<String>,
    pub epsilons: Vec<f64>,
    /// Windows; a stream that is shorter than two of them is passed over.
    pub windows: Vec<u64>,
    /// Noise draws, and streams if they are synthetic.
    pub seeds: u64,
    pub queries: usize,
    /// Only questions whose name contains this.
    pub only: String,
}

/// The keys of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Keys {
    /// All of the stream and three that never occur.
    All,
    /// The three most frequent ones and 17 that never occur.
    Short,
}

const SHORT_REAL: u64 = 3;
const SHORT_LEN: u64 = 20;
const ABSENT: usize = 3;
/// Items of a synthetic stream, in windows.
const SYNTHETIC_WINDOWS: u64 = 5;
/// A stream is followed for this many windows at most.
const WINDOWS_MAX: u64 = 20;
/// The stream of routes: two columns of one file.
const FLIGHTS: &str = "flights-2001";
const FLIGHTS_PATH: &str = "flights-2001/flights-2001.tsv.zst";

/// One kind of question and how its rows did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Tally {
    rows: u64,
    /// Rows whose interval holds the truth.
    covered: u64,
    /// Rows without a mark of doubt.
    unmarked: u64,
    /// Of those, rows whose true count is below a quarter of what is shown.
    ghosts: u64,
    /// Of those, rows whose key does not occur.
    absent: u64,
    /// Rows whose true count lies above the interval.
    above: u64,
    /// The sum of the widths over those for keys chosen beforehand.
    width: f64,
}

impl Tally {
    fn add_list(&mut self, list: &List<'_>, truth: &Occurrences, window: &Range<u64>) {
        for ranked in list {
            let Item::Integer(item) = ranked.item else { continue };
            let (shown, count) = (shown(ranked), truth.count(item, window));
            self.rows += 1;
            self.covered += u64::from(shown.holds(count));
            self.above += u64::from(shown.upper < count as f64);
            self.width += shown.width() / (2.0 * ranked.estimate.error_bound);
            if !shown.marked {
                self.unmarked += 1;
                self.ghosts += u64::from(shown.is_ghost(count));
                self.absent += u64::from(count == 0 && 1.0 <= shown.value);
            }
        }
    }

    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.covered += other.covered;
        self.unmarked += other.unmarked;
        self.ghosts += other.ghosts;
        self.absent += other.absent;
        self.above += other.above;
        self.width += other.width;
    }
}

/// A question by its name.
type Tallies = BTreeMap<&'static str, Tally>;

/// What was measured of one stream with one budget.
#[derive(Debug, Clone, Serialize)]
pub struct RequestRow {
    stream: String,
    window: u64,
    epsilon: f64,
    keys: Keys,
    substream: u64,
    tallies: Tallies,
}

struct Job<'a> {
    stream: &'a str,
    window: u64,
    epsilon: f64,
    keys: Keys,
    seed: u64,
}

impl Requests {
    /// Asks for every kind of list at random times.
    pub fn run(&self, shelf: &Shelf) -> Result<Vec<RequestRow>> {
        let mut rows: Vec<RequestRow> = Vec::new();
        for stream in &self.streams {
            let jobs = self.jobs(stream);
            let read = (Synthetic::named(stream).is_none()).then(|| read(stream, shelf)).transpose()?;
            let measured = cores::run("measure", Cores::All, &jobs, |job| self.measure(job, read.as_ref()));
            for row in measured {
                let Some(row) = row? else { continue };
                let is_same = |known: &&mut RequestRow| {
                    (&known.stream, known.window, known.epsilon, known.keys)
                        == (&row.stream, row.window, row.epsilon, row.keys)
                };
                match rows.iter_mut().find(is_same) {
                    None => rows.push(row),
                    Some(known) => row
                        .tallies
                        .iter()
                        .for_each(|(name, tally)| known.tallies.entry(name).or_default().add(tally)),
                }
            }
        }
        Ok(rows)
    }

    fn jobs<'a>(&self, stream: &'a str) -> Vec<Job<'a>> {
        let mut jobs = Vec::new();
        for &window in &self.windows {
            for &epsilon in &self.epsilons {
                for keys in [Keys::All, Keys::Short] {
                    jobs.extend((0..self.seeds).map(|seed| Job { stream, window, epsilon, keys, seed }));
                }
            }
        }
        jobs
    }

    fn measure(&self, job: &Job<'_>, read: Option<&Dataset>) -> Result<Option<RequestRow>> {
        let made;
        let dataset = match (read, Synthetic::named(job.stream)) {
            (Some(read), _) => read,
            (None, Some(synthetic)) => {
                let items = SYNTHETIC_WINDOWS * job.window;
                made = synthetic.generate(items as usize, job.window, job.seed);
                &made
            }
            (None, None) => return Ok(None),
        };
        if (dataset.items.len() as u64) < 2 * job.window {
            return Ok(None);
        }
        let arrivals = Arrivals::ranked(dataset, (WINDOWS_MAX * job.window) as usize);
        let plan = plan(job, arrivals.keys())?;
        let mut random = ChaCha12Rng::seed_from_u64(0x11515 + job.seed);
        let mut positions: Vec<u64> =
            (0..self.queries).map(|_| random.random_range(job.window..=arrivals.end())).collect();
        positions.sort_unstable();
        let listed = listed(job, &arrivals);
        let truth = Occurrences::of(&listed);
        let mut follower = Follower::new(plan.clone(), &listed, job.seed)?;
        let mut tallies = Tallies::new();
        for position in positions {
            follower.advance(position)?;
            let asked = Asked { view: &follower.view(), truth: &truth, only: &self.only };
            asked.ask_whole(job.window, &mut random, &mut tallies)?;
            asked.ask_short(job.window, &mut random, &mut tallies)?;
        }
        Ok(Some(RequestRow {
            stream: job.stream.to_owned(),
            window: job.window,
            epsilon: job.epsilon,
            keys: job.keys,
            substream: plan.substream_len(),
            tallies,
        }))
    }
}

/// With a short list, other items take their positions and count for no key.
fn listed(job: &Job<'_>, arrivals: &Arrivals) -> Arrivals {
    let keys = arrivals.keys() as u64;
    let items = arrivals.items().iter();
    match job.keys {
        Keys::All => Arrivals::counted(items.copied().collect(), arrivals.keys()),
        Keys::Short => {
            let other = keys.max(SHORT_LEN);
            let item = |&item: &u64| if item < SHORT_REAL { item } else { other };
            Arrivals::counted(items.map(item).collect(), other as usize + 1)
        }
    }
}

fn read(stream: &str, shelf: &Shelf) -> Result<Dataset> {
    if stream != FLIGHTS {
        let is_known = REAL_STREAMS.iter().any(|real| real.name == stream);
        ensure!(is_known, "there is no stream {stream}");
        return Stream::new(stream, 0, usize::MAX, 0, 0).read(shelf.folder());
    }
    let folder = shelf.folder().with_context(|| format!("{stream} needs a data folder"))?;
    let origins = dataset::read(&folder.join(FLIGHTS_PATH), None, &Column::at("2"))?;
    let destinations = dataset::read(&folder.join(FLIGHTS_PATH), None, &Column::at("3"))?;
    let mut routes = BTreeMap::new();
    let pairs = origins.items.iter().zip(&destinations.items);
    let items: Vec<u64> = pairs
        .map(|pair| {
            let next = routes.len() as u64;
            *routes.entry(pair).or_insert(next)
        })
        .collect();
    Ok(Dataset { name: stream.to_owned(), domain_len: routes.len(), items, drift: None })
}

fn plan(job: &Job<'_>, keys: usize) -> Result<Plan> {
    let listed = match job.keys {
        Keys::All => (keys + ABSENT) as u64,
        Keys::Short => SHORT_LEN,
    };
    Ok(Settings::last_items(job.window, job.epsilon)?.with_keys(0..listed).plan()?)
}

/// Candidates that are named together, of neighbouring ranks.
const CANDIDATES: usize = 50;
/// Parts of the window that are asked for.
const SHORT: [(&str, &str, u64); 3] = [
    ("short: last 1/10", "short: past 1/10", 10),
    ("short: last 1/33", "short: past 1/33", 33),
    ("short: last 1/100", "short: past 1/100", 100),
];

/// A view that is asked, and what its rows are held against.
struct Asked<'a> {
    view: &'a WindowView,
    truth: &'a Occurrences,
    only: &'a str,
}

impl Asked<'_> {
    fn with<'a>(&'a self, view: &'a WindowView) -> Asked<'a> {
        Asked { view, ..*self }
    }

    fn note<'l>(
        &self,
        tallies: &mut Tallies,
        name: &'static str,
        list: impl FnOnce() -> Result<List<'l>>,
    ) -> Result<()> {
        if name.contains(self.only) {
            tallies.entry(name).or_default().add_list(&list()?, self.truth, &self.view.window());
        }
        Ok(())
    }

    /// Lists of the whole window.
    fn ask_whole(&self, window: u64, random: &mut ChaCha12Rng, tallies: &mut Tallies) -> Result<()> {
        let (top, beyond) = (ListRequest::top(LISTED), ListRequest::top(usize::MAX));
        for (name, request) in [
            ("top 20", top),
            ("top 20, all", top.with_noise(true)),
            ("top 20, strict", top.strict(true)),
            ("top 20, strict, all", top.with_noise(true).strict(true)),
            ("beyond the list", beyond),
            ("beyond, strict", beyond.strict(true)),
            ("beyond, all", beyond.with_noise(true)),
        ] {
            self.note(tallies, name, || Ok(self.view.list(request)?))?;
        }
        let keys: Vec<Item<'_>> = self.view.keys()?.iter().collect();
        let noise = self.view.frequency(keys[keys.len() - 1])?.standard_error();
        let first = random.random_range(0..=keys.len().saturating_sub(CANDIDATES));
        let candidates = &keys[first..keys.len().min(first + CANDIDATES)];
        for (strict, [low, high, among]) in [
            (false, ["share of half a deviation", "share of 3 deviations", "candidates"]),
            (true, ["half a deviation, strict", "3 deviations, strict", "candidates, strict"]),
        ] {
            let request = |deviations: f64| {
                let share = (deviations * noise / window as f64).clamp(1e-9, 0.99);
                Threshold::new(share).map(|share| ListRequest::heavy_hitters(share).strict(strict))
            };
            let (half, three) = (request(0.5)?, request(3.0)?);
            self.note(tallies, low, || Ok(self.view.list(half)?))?;
            self.note(tallies, high, || Ok(self.view.list(three)?))?;
            self.note(tallies, among, || Ok(self.view.list_among(candidates, half)?))?;
        }
        Ok(())
    }

    /// Lists of shorter windows, up to now and up to a past position.
    fn ask_short(&self, window: u64, random: &mut ChaCha12Rng, tallies: &mut Tallies) -> Result<()> {
        for (name, past_name, part) in SHORT {
            let len = (window / part).max(1);
            let short = self.view.last(len)?;
            self.with(&short).note(tallies, name, || Ok(short.top(LISTED)?))?;
            let Range { start, end } = short.retained();
            let past = short.as_of(random.random_range(start + len..=end))?;
            self.with(&past).note(tallies, past_name, || Ok(past.top(LISTED)?))?;
        }
        Ok(())
    }
}

/// One line for each kind of question: over all streams, then for each.
pub fn request_table(rows: &[RequestRow]) -> String {
    let mut text = "Rows of lists by what was asked for. covered: intervals that hold the truth; above: of the rest, truth \
                    above the interval;\nghosts: of unmarked rows, truth below a quarter of what is shown; absent: of \
                    unmarked rows, keys that do not occur;\nwidth: over that for keys chosen beforehand. In percent but \
                    for rows and width.\n"
        .to_owned();
    for keys in [Keys::All, Keys::Short] {
        let name = match keys {
            Keys::All => "all keys of the stream and 3 absent ones",
            Keys::Short => "3 real and 17 absent keys",
        };
        let of_keys: Vec<&RequestRow> = rows.iter().filter(|row| row.keys == keys).collect();
        let mut groups: BTreeMap<String, Tallies> = BTreeMap::new();
        for row in &of_keys {
            let own = format!("{} {} {}", row.stream, row.window, row.epsilon);
            for group in ["all".to_owned(), format!("{} all", row.stream), own] {
                let group = groups.entry(group).or_default();
                row.tallies.iter().for_each(|(name, tally)| group.entry(name).or_default().add(tally));
            }
        }
        for (group, tallies) in groups {
            let _ = writeln!(
                text,
                "\n{name}: {group}\n{:<28} {:>8} {:>8} {:>6} {:>7} {:>7} {:>6}",
                "", "rows", "covered", "above", "ghosts", "absent", "width"
            );
            for (question, tally) in tallies {
                let percent = |part, whole| {
                    share(part, whole).map_or("-".to_owned(), |share| format!("{:.1}", 100.0 * share))
                };
                let _ = writeln!(
                    text,
                    "{question:<28} {:>8} {:>8} {:>6} {:>7} {:>7} {:>6.2}",
                    tally.rows,
                    percent(tally.covered, tally.rows),
                    percent(tally.above, tally.rows),
                    percent(tally.ghosts, tally.unmarked),
                    percent(tally.absent, tally.unmarked),
                    tally.width / tally.rows.max(1) as f64
                );
            }
        }
    }
    text
}
