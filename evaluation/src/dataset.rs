//! Streams to measure on: the paper's synthetic ones, two that drift, and any file.

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use dpsw::plan::ExpectedDrift;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use crate::source;

/// The domain of the paper's synthetic streams, unless their domain is what is varied.
pub const SYNTHETIC_DOMAIN: usize = 25_600;
/// The share of items that are uniform noise over the domain.
const UNIFORM_SHARE: f64 = 0.05;

/// Items between two steps of a stream that swaps.
const SWAP_STEP: usize = 20_000;
/// The deviation of the logarithm of a drifting item's weight.
const DRIFT_DEVIATION: f64 = 0.7;

/// A stream whose items are numbered from 0; the domain is all of them, and public.
#[derive(Debug)]
pub struct Dataset {
    pub name: String,
    pub items: Vec<u64>,
    /// How many different items there are.
    pub domain_len: usize,
    /// How the shares move, where that is known or worth assuming.
    pub drift: Option<ExpectedDrift>,
}

impl Dataset {
    /// How often each item of the domain occurs.
    pub fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.domain_len];
        self.items.iter().for_each(|&item| counts[item as usize] += 1);
        counts
    }
}

/// Which synthetic stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synthetic {
    /// 95 % Zipf with exponent 1, 5 % uniform (the paper's appendix).
    Zipf,
    /// 95 % normal with mean 50 and deviation 25, 5 % uniform (the paper's appendix).
    Gauss,
    /// Zipf weights, each times exp of its own Ornstein-Uhlenbeck process.
    Drift,
    /// Zipf whose ranks are swapped now and then.
    Swap,
}

impl Synthetic {
    /// Those of all synthetic streams.
    pub const NAMES: [&str; 4] = ["zipf", "gauss", "drift", "swap"];

    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "zipf" => Self::Zipf,
            "gauss" => Self::Gauss,
            "drift" => Self::Drift,
            "swap" => Self::Swap,
            _ => return None,
        })
    }

    /// The first `len` items over the domain of the paper; the speed of drift is relative to the window.
    pub fn generate(self, len: usize, window_len: u64, seed: u64) -> Dataset {
        self.generate_over(SYNTHETIC_DOMAIN, len, window_len, seed)
    }

    /// The first `len` items over a domain of at least one item.
    pub fn generate_over(self, domain_len: usize, len: usize, window_len: u64, seed: u64) -> Dataset {
        assert!(0 < domain_len, "a domain holds at least one item");
        let mut law = Law { domain_len, random: ChaCha12Rng::seed_from_u64(seed) };
        let items = match self {
            Self::Zipf => law.zipf(len),
            Self::Gauss => law.mixed(len, Law::gauss),
            Self::Drift => law.drift(len, window_len),
            Self::Swap => law.swap(len),
        };
        let name = format!("{self:?}").to_lowercase();
        let drift = match self {
            Self::Zipf | Self::Gauss => None,
            // A frequent item is swapped with probability 1/100 per step, and its count then changes by about all of itself:
            // the variance that logarithms with half this variance would gain in a window that forgets.
            Self::Swap => {
                let swaps = window_len as f64 / SWAP_STEP as f64 / 100.0;
                Some(ExpectedDrift { variance: swaps / 2.0, correlation_windows: 1.0 })
            }
            Self::Drift => {
                Some(ExpectedDrift { variance: DRIFT_DEVIATION.powi(2), correlation_windows: 0.5 })
            }
        };
        Dataset { name, items, domain_len, drift }
    }
}

/// Draws items of a domain.
struct Law {
    domain_len: usize,
    random: ChaCha12Rng,
}

impl Law {
    fn mixed(&mut self, len: usize, mut draw: impl FnMut(&mut Self) -> u64) -> Vec<u64> {
        (0..len)
            .map(|_| if self.random.random_bool(UNIFORM_SHARE) { self.uniform() } else { draw(self) })
            .collect()
    }

    fn uniform(&mut self) -> u64 {
        self.random.random_range(0..self.domain_len as u64)
    }

    /// Negative draws are ignored; the rest is rounded to the nearest positive integer of the domain.
    fn gauss(&mut self) -> u64 {
        loop {
            let value = 50.0 + 25.0 * self.normal();
            if 0.0 <= value {
                return (value.round().max(1.0) as u64).min(self.domain_len as u64) - 1;
            }
        }
    }

    /// A standard normal draw by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.random.random::<f64>()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.random.random::<f64>()).cos()
    }

    fn zipf(&mut self, len: usize) -> Vec<u64> {
        let sampler = Sampler::zipf(self.domain_len);
        self.mixed(len, |law| sampler.draw(&mut law.random))
    }

    /// Log-weights move every 2,500 items towards a stationary N(0, 0.7²) with a correlation time of half a window.
    fn drift(&mut self, len: usize, window_len: u64) -> Vec<u64> {
        const STEP: usize = 2_500;
        let decay = (-(STEP as f64) / (window_len as f64 / 2.0)).exp();
        let kick = DRIFT_DEVIATION * (1.0 - decay * decay).sqrt();
        let mut logs: Vec<f64> = (0..self.domain_len).map(|_| DRIFT_DEVIATION * self.normal()).collect();
        let mut items = Vec::with_capacity(len);
        while items.len() < len {
            let weights = logs.iter().zip(1..).map(|(log, rank)| log.exp() / f64::from(rank));
            let sampler = Sampler::new(weights);
            items.extend(self.mixed(STEP.min(len - items.len()), |law| sampler.draw(&mut law.random)));
            logs.iter_mut().for_each(|log| *log = decay * *log + kick * self.normal());
        }
        items
    }

    /// Every 20,000 items five ranks of the top 500 change places with ranks of the top 5,000.
    fn swap(&mut self, len: usize) -> Vec<u64> {
        let sampler = Sampler::zipf(self.domain_len);
        let mut item_of_rank: Vec<u64> = (0..self.domain_len as u64).collect();
        let mut items = Vec::with_capacity(len);
        while items.len() < len {
            let draw = |law: &mut Self| item_of_rank[sampler.draw(&mut law.random) as usize];
            items.extend(self.mixed(SWAP_STEP.min(len - items.len()), draw));
            for _ in 0..5 {
                let high = self.random.random_range(0..500.min(self.domain_len));
                let low = self.random.random_range(0..5_000.min(self.domain_len));
                item_of_rank.swap(high, low);
            }
        }
        items
    }
}

/// Draws an index with probability proportional to its weight.
struct Sampler {
    cumulative: Vec<f64>,
}

impl Sampler {
    fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let add = |weight: f64| {
            sum += weight;
            sum
        };
        Self { cumulative: weights.map(add).collect() }
    }

    fn zipf(domain_len: usize) -> Self {
        Self::new((1..=domain_len).map(|rank| 1.0 / rank as f64))
    }

    fn draw(&self, random: &mut ChaCha12Rng) -> u64 {
        let total = self.cumulative.last().expect("the domain is not empty");
        let uniform = random.random::<f64>() * total;
        self.cumulative.partition_point(|&sum| sum <= uniform).min(self.cumulative.len() - 1) as u64
    }
}

/// How a file holds its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One item per line.
    Lines,
    /// Tab-separated fields.
    Tsv,
    /// Comma-separated fields with quotes.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

/// Where the item is in a record.
#[derive(Debug, Clone, Default)]
pub struct Column {
    /// A number from 1, or a name.
    pub column: Option<String>,
    /// Skip the first line.
    pub header: bool,
}

impl Column {
    /// A number from 1, or a name, which implies a header.
    pub fn at(column: &str) -> Self {
        Self { column: Some(column.to_owned()), header: false }
    }
}

/// Reads a file; `.gz` and `.zst` are unpacked.
pub fn read(path: &Path, format: Option<Format>, column: &Column) -> Result<Dataset> {
    let plain = path.with_extension("");
    let packed = matches!(path.extension().and_then(|e| e.to_str()), Some("gz" | "zst"));
    let format = match format {
        Some(format) => format,
        None => guess(if packed { &plain } else { path }).with_context(|| {
            format!("{}: the format cannot be guessed from the name; give --format", path.display())
        })?,
    };
    let reader = source::open(path)?;
    let mut numbers = Numbers::default();
    let read = match format {
        Format::Lines => read_lines(reader, column, &mut numbers),
        Format::Tsv => read_fields(reader, b'\t', column, &mut numbers),
        Format::Csv => read_fields(reader, b',', column, &mut numbers),
        Format::Ndjson => read_ndjson(reader, column, &mut numbers),
    };
    read.with_context(|| path.display().to_string())?;
    ensure!(
        !numbers.items.is_empty(),
        "{}: no items; give a file that holds more than a window",
        path.display()
    );
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let name = name.split('.').next().unwrap_or(&name).to_owned();
    Ok(Dataset {
        name,
        domain_len: numbers.known.len(),
        items: numbers.items,
        drift: Some(ExpectedDrift::MODERATE),
    })
}

fn guess(path: &Path) -> Option<Format> {
    Some(match path.extension()?.to_str()? {
        "txt" | "log" | "lines" => Format::Lines,
        "tsv" => Format::Tsv,
        "csv" => Format::Csv,
        "ndjson" | "jsonl" => Format::Ndjson,
        _ => return None,
    })
}

/// Numbers items in the order of their first appearance.
#[derive(Default)]
struct Numbers {
    known: HashMap<Vec<u8>, u64>,
    items: Vec<u64>,
}

impl Numbers {
    fn add(&mut self, item: &[u8]) {
        let next = self.known.len() as u64;
        let number = match self.known.get(item) {
            Some(&number) => number,
            None => {
                self.known.insert(item.to_vec(), next);
                next
            }
        };
        self.items.push(number);
    }
}

fn read_lines(mut reader: impl BufRead, column: &Column, numbers: &mut Numbers) -> Result<()> {
    let mut line = Vec::new();
    let mut is_first = true;
    while reader.read_until(b'\n', &mut line)? != 0 {
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        if !(is_first && column.header) {
            numbers.add(&line);
        }
        is_first = false;
        line.clear();
    }
    Ok(())
}

fn read_fields(reader: impl Read, delimiter: u8, column: &Column, numbers: &mut Numbers) -> Result<()> {
    let position = column.column.as_deref().unwrap_or("1").parse::<usize>();
    let has_names = position.is_err();
    let mut records = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .quoting(delimiter == b',')
        .has_headers(has_names || column.header)
        .flexible(true)
        .from_reader(reader);
    let index = match position {
        Ok(0) => bail!("columns count from 1, got 0"),
        Ok(position) => position - 1,
        Err(_) => {
            let name = column.column.as_deref().unwrap_or_default();
            let header = records.byte_headers()?;
            let found = header.iter().position(|field| field == name.as_bytes());
            found.with_context(|| format!("there is no column {name:?}"))?
        }
    };
    let mut record = csv::ByteRecord::new();
    while records.read_byte_record(&mut record)? {
        let line = record.position().map_or(0, csv::Position::line);
        let field = record.get(index);
        numbers.add(field.with_context(|| {
            format!("line {line} has {} columns, column {} was asked for", record.len(), index + 1)
        })?);
    }
    Ok(())
}

fn read_ndjson(reader: impl BufRead, column: &Column, numbers: &mut Numbers) -> Result<()> {
    let name = column.column.as_deref().context("ndjson needs --column with the name of a field")?;
    let pointer = if name.starts_with('/') { name.to_owned() } else { format!("/{name}") };
    for (number, line) in reader.lines().enumerate() {
        let value: serde_json::Value =
            serde_json::from_str(&line?).with_context(|| format!("line {} is not JSON", number + 1))?;
        match value.pointer(&pointer) {
            Some(serde_json::Value::String(text)) => numbers.add(text.as_bytes()),
            Some(other) => numbers.add(other.to_string().as_bytes()),
            None => bail!("line {} has no field {name}", number + 1),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(name: &str, text: &str, column: &Column) -> Result<Dataset> {
        let folder = std::env::temp_dir().join(format!("dpsw-eval-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(name);
        std::fs::write(&path, text)?;
        let read = read(&path, None, column);
        std::fs::remove_dir_all(&folder)?;
        read
    }

    #[test]
    fn each_format_gives_the_items_of_its_column() {
        for (name, text, at) in [
            ("a.txt", "x\ny\nx", Column::default()),
            ("a.tsv", "1\tx\n2\ty\n3\tx\n", Column::at("2")),
            ("a.csv", "1,\"x\"\r\n2,y\r\n3,x\r\n", Column::at("2")),
            ("a.csv", "n,item\n1,x\n2,y\n3,x\n", Column::at("item")),
            ("a.csv", "n,item\n1,x\n2,y\n3,x\n", Column { header: true, ..Column::at("2") }),
            ("a.ndjson", "{\"item\":\"x\"}\n{\"item\":\"y\"}\n{\"item\":\"x\"}\n", Column::at("item")),
        ] {
            let dataset = read_text(name, text, &at).expect(name);
            assert_eq!((dataset.items, dataset.domain_len), (vec![0, 1, 0], 2), "{name}");
        }
    }

    #[test]
    fn a_wrong_column_is_an_error_that_says_where() {
        let message =
            |name, text, at: &Column| format!("{:#}", read_text(name, text, at).expect_err("wrong"));
        assert!(message("b.csv", "1,x\n2\n", &Column::at("2")).contains("line 2 has 1 columns, column 2"));
        assert!(message("b.csv", "n,item\n1,x\n", &Column::at("key")).contains("no column \"key\""));
        assert!(message("b.ndjson", "{\"a\":1}\n", &Column::at("b")).contains("line 1 has no field b"));
        assert!(message("b.dat", "x\n", &Column::default()).contains("give --format"));
        assert!(message("c.txt", "", &Column::default()).contains("no items"));
    }

    #[test]
    fn synthetic_streams_have_their_laws() {
        let zipf = Synthetic::Zipf.generate(400_000, 100_000, 1);
        let count = |dataset: &Dataset, item| dataset.items.iter().filter(|&&i| i == item).count() as f64;
        let harmonic: f64 = (1..=SYNTHETIC_DOMAIN).map(|rank| 1.0 / rank as f64).sum();
        for item in [0, 9] {
            let p = 0.95 / harmonic / (item + 1) as f64 + 0.05 / SYNTHETIC_DOMAIN as f64;
            let error = (p / 400_000.0).sqrt();
            assert!((count(&zipf, item) / 400_000.0 - p).abs() < 5.0 * error, "item {item}");
        }
        let gauss = Synthetic::Gauss.generate(100_000, 100_000, 1);
        let inside = gauss.items.iter().filter(|&&i| i < 150).count() as f64 / 100_000.0;
        assert!((inside - 0.95).abs() < 0.005, "{inside}");
        for drifting in [Synthetic::Drift, Synthetic::Swap] {
            let dataset = drifting.generate(300_000, 50_000, 1);
            assert_eq!(dataset.items.len(), 300_000);
            let half = |items: &[u64]| items.iter().filter(|&&i| i == 3).count() as f64;
            let (early, late) = dataset.items.split_at(150_000);
            assert!(half(early) != half(late));
        }
    }

    #[test]
    fn streams_of_the_domain_of_the_paper_stay_as_they_are() {
        let fold = |sum: u64, (index, item): (u64, u64)| sum.wrapping_mul(31).wrapping_add(item ^ index);
        for (synthetic, start, sum) in [
            (Synthetic::Zipf, [932, 3, 17_139, 1_122], 2_174_442_701_796_523_902),
            (Synthetic::Gauss, [15, 68, 10, 65], 10_837_569_731_315_346_285),
            (Synthetic::Drift, [0, 506, 1_148, 9], 3_629_957_586_568_125_087),
            (Synthetic::Swap, [932, 3, 17_139, 1_122], 15_986_635_073_683_063_316),
        ] {
            let items = synthetic.generate(60_000, 50_000, 1).items;
            assert_eq!(items[..4], start, "{synthetic:?}");
            assert_eq!((0..).zip(items).fold(0, fold), sum, "{synthetic:?}");
        }
    }

    #[test]
    fn any_domain_can_be_asked_for() {
        for domain_len in [1, 2, 400, 409_600] {
            for synthetic in [Synthetic::Zipf, Synthetic::Gauss, Synthetic::Drift, Synthetic::Swap] {
                let dataset = synthetic.generate_over(domain_len, 30_000, 50_000, 3);
                assert_eq!((dataset.items.len(), dataset.domain_len), (30_000, domain_len));
                let outside = dataset.items.iter().find(|&&item| domain_len as u64 <= item);
                assert_eq!(outside, None, "{synthetic:?} over {domain_len}");
            }
        }
        let zipf = Synthetic::Zipf.generate_over(400, 200_000, 50_000, 4);
        let harmonic: f64 = (1..=400).map(|rank| 1.0 / f64::from(rank)).sum();
        let p = 0.95 / harmonic + 0.05 / 400.0;
        let share = zipf.items.iter().filter(|&&item| item == 0).count() as f64 / 200_000.0;
        assert!((share - p).abs() < 5.0 * (p / 200_000.0).sqrt(), "{share} for {p}");
    }
}
