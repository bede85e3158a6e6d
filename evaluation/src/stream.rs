//! Streams by name, made or read when they are first needed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::dataset::{self, Column, Dataset, Synthetic};
use crate::source::PaperDataset;

/// A real stream in a file of the data folder.
#[derive(Debug, Clone, Copy)]
pub struct RealStream {
    /// The name in results.
    pub name: &'static str,
    /// Where it is in the data folder.
    pub path: &'static str,
    /// The column of the items, from 1.
    pub column: &'static str,
    /// A window that leaves some of the stream.
    pub window_len: u64,
}

const fn real(name: &'static str, path: &'static str, column: &'static str, window_len: u64) -> RealStream {
    RealStream { name, path, column, window_len }
}

/// The real streams that are looked for.
pub const REAL_STREAMS: [RealStream; 9] = [
    real("orm-busy", "ecommerce-orm/orm-busy.txt.zst", "1", 1_000_000),
    real("sotu-words", "sotu-words/sotu-words.tsv.zst", "2", 500_000),
    real("retail", "fimi/retail.tsv.zst", "2", 300_000),
    real("kosarak", "fimi/kosarak-prefix.tsv.zst", "2", 100_000),
    real("void-touches", "void-touches/void-touches.tsv.zst", "2", 100_000),
    real("movielens-small", "movielens-small/movielens-small.tsv.zst", "2", 40_000),
    real("web07", "web-http/cache2k-web07.txt.zst", "1", 30_000),
    real("web12", "web-http/cache2k-web12.txt.zst", "1", 30_000),
    real("nasa", "web-http/nasa-1995-08-01.tsv.zst", "2", 10_000),
];

/// All that makes a stream what it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stream {
    /// A synthetic stream, a data set of the paper or a real stream.
    pub name: String,
    /// The domain of a synthetic stream.
    pub domain_len: Option<usize>,
    /// The largest number of items.
    pub items: usize,
    /// The window that drift is relative to.
    pub window_len: Option<u64>,
    /// The seed of a synthetic stream.
    pub seed: Option<u64>,
}

impl Stream {
    /// A synthetic stream of this domain, or a real one, of which domain, window and seed change nothing.
    pub fn new(name: &str, domain_len: usize, items: usize, window_len: u64, seed: u64) -> Self {
        let is_synthetic = Synthetic::named(name).is_some();
        let drifts = matches!(Synthetic::named(name), Some(Synthetic::Drift | Synthetic::Swap));
        Self {
            name: name.to_owned(),
            domain_len: is_synthetic.then_some(domain_len),
            items,
            window_len: drifts.then_some(window_len),
            seed: is_synthetic.then_some(seed),
        }
    }

    /// Makes or reads it.
    pub fn read(&self, folder: Option<&Path>) -> Result<Dataset> {
        if let (Some(synthetic), Some(domain_len)) = (Synthetic::named(&self.name), self.domain_len) {
            let (window_len, seed) = (self.window_len.unwrap_or(1), self.seed.unwrap_or(0));
            return Ok(synthetic.generate_over(domain_len, self.items, window_len, seed));
        }
        let folder = folder.with_context(|| format!("{} needs a data folder", self.name))?;
        if let Some(paper) = PaperDataset::named(&self.name) {
            return Ok(paper.load(folder, Some(self.items))?.dataset);
        }
        let real = REAL_STREAMS.iter().find(|real| real.name == self.name);
        let real = real.with_context(|| format!("there is no stream {}", self.name))?;
        let mut dataset = dataset::read(&folder.join(real.path), None, &Column::at(real.column))?;
        dataset.items.truncate(self.items);
        dataset.name = self.name.clone();
        Ok(dataset)
    }

    /// The files that it is read from.
    pub fn files(&self, folder: Option<&Path>) -> Result<Vec<PathBuf>> {
        let Some(folder) = folder else { return Ok(Vec::new()) };
        if let Some(paper) = PaperDataset::named(&self.name) {
            return Ok(paper.find(folder)?.map_or_else(Vec::new, |files| files.logs));
        }
        let real = REAL_STREAMS.iter().filter(|real| real.name == self.name);
        Ok(real.map(|real| folder.join(real.path)).filter(|path| path.is_file()).collect())
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} items", self.name, self.items)?;
        let some = |f: &mut fmt::Formatter<'_>, name, number: Option<u64>| match number {
            Some(number) => write!(f, ", {name} {number}"),
            None => Ok(()),
        };
        some(f, "domain", self.domain_len.map(|len| len as u64))?;
        some(f, "window", self.window_len)?;
        some(f, "seed", self.seed)
    }
}

/// How large a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// n.
    pub items: usize,
    /// m.
    pub domain_len: usize,
}

type Slot = Arc<OnceLock<Result<Arc<Dataset>, String>>>;

/// Keeps the last few streams that were asked for.
#[derive(Debug)]
pub struct Shelf {
    folder: Option<PathBuf>,
    slots: Mutex<VecDeque<(Stream, Slot)>>,
    hashes: Mutex<BTreeMap<Stream, String>>,
}

/// Streams that are kept. Points are measured in the order of their streams, so few are in use at a time.
const SHELF_LEN: usize = 6;

impl Shelf {
    /// Reads from this folder.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, slots: Mutex::default(), hashes: Mutex::default() }
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The stream; made by the first who asks while others wait.
    pub fn get(&self, stream: &Stream) -> Result<Arc<Dataset>> {
        let slot = self.slot(stream);
        let made = slot.get_or_init(|| {
            let read = stream.read(self.folder()).map_err(|error| format!("{error:#}"))?;
            self.note(stream, items_hash(&read.items));
            Ok(Arc::new(read))
        });
        made.clone().map_err(|reason| anyhow!(reason))
    }

    /// Takes the hash of a stream that need not be made again.
    pub(crate) fn note(&self, stream: &Stream, hash: String) {
        self.hashes.lock().expect("no one panics with the lock").insert(stream.clone(), hash);
    }

    /// The hash of a stream that was made or read.
    pub(crate) fn hash(&self, stream: &Stream) -> String {
        self.hashes.lock().expect("no one panics with the lock")[stream].clone()
    }

    /// The hash of the items of each stream that was asked for, by what made it.
    pub fn hashes(&self) -> BTreeMap<String, String> {
        let hashes = self.hashes.lock().expect("no one panics with the lock");
        hashes.iter().map(|(stream, hash)| (stream.to_string(), hash.clone())).collect()
    }

    /// The names of the streams that were asked for.
    pub fn names(&self) -> BTreeSet<String> {
        let hashes = self.hashes.lock().expect("no one panics with the lock");
        hashes.keys().map(|stream| stream.name.clone()).collect()
    }

    fn slot(&self, stream: &Stream) -> Slot {
        let mut slots = self.slots.lock().expect("no one panics with the lock");
        let known = slots.iter().position(|(known, _)| known == stream);
        let entry = match known.and_then(|index| slots.remove(index)) {
            Some(entry) => entry,
            None => (stream.clone(), Slot::default()),
        };
        let slot = Arc::clone(&entry.1);
        slots.push_front(entry);
        slots.truncate(SHELF_LEN);
        slot
    }

    /// How large the stream is, without making a synthetic one.
    pub fn extent(&self, stream: &Stream) -> Result<Extent> {
        if let Some(domain_len) = stream.domain_len {
            return Ok(Extent { items: stream.items, domain_len });
        }
        let dataset = self.get(stream)?;
        Ok(Extent { items: dataset.items.len(), domain_len: dataset.domain_len })
    }
}

/// What the files of real streams hold, of those that are there.
#[derive(Debug)]
pub struct RealData(BTreeMap<&'static str, String>);

impl RealData {
    /// Of the folder of a shelf.
    pub fn of(shelf: &Shelf) -> Result<Self> {
        let mut data = BTreeMap::new();
        for real in &REAL_STREAMS {
            let stream = Stream::new(real.name, 0, usize::MAX, 0, 0);
            for file in stream.files(shelf.folder())? {
                data.insert(real.name, file_hash(&file)?);
            }
        }
        Ok(Self(data))
    }

    /// Whether a stream can be had; synthetic ones always can.
    pub fn has(&self, name: &str) -> bool {
        Synthetic::named(name).is_some() || self.0.contains_key(name)
    }

    /// The hash of the file of a stream; nothing for one without.
    pub fn hash(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

/// The SHA-256 of a file, in hexadecimal digits.
pub fn file_hash(path: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    let mut file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    let mut part = vec![0; 1 << 16];
    loop {
        let len = file.read(&mut part).with_context(|| path.display().to_string())?;
        if len == 0 {
            break;
        }
        hash.update(&part[..len]);
    }
    Ok(hex(&hash.finalize()))
}

/// The SHA-256 of items as 64-bit little-endian integers, in hexadecimal digits.
pub fn items_hash(items: &[u64]) -> String {
    let mut hash = Sha256::new();
    items.iter().for_each(|item| hash.update(item.to_le_bytes()));
    hex(&hash.finalize())
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_made_once_and_a_real_one_has_no_seed() {
        let shelf = Shelf::new(None);
        let zipf = Stream::new("zipf", 100, 1000, 50, 1);
        assert!(Arc::ptr_eq(&shelf.get(&zipf).expect("made"), &shelf.get(&zipf).expect("kept")));
        assert_eq!(shelf.extent(&zipf).expect("known"), Extent { items: 1000, domain_len: 100 });
        assert_eq!(Stream::new("retail", 100, 9, 50, 1), Stream::new("retail", 7, 9, 5, 2));
        assert_ne!(zipf, Stream::new("zipf", 100, 1000, 50, 2));
        assert_eq!(zipf, Stream::new("zipf", 100, 1000, 60, 1));
        assert_ne!(Stream::new("drift", 9, 9, 50, 1), Stream::new("drift", 9, 9, 60, 1));
        let error = shelf.get(&Stream::new("retail", 0, 9, 0, 0)).expect_err("absent").to_string();
        assert!(error.contains("retail needs a data folder"), "{error}");
    }

    #[test]
    fn old_streams_leave_the_shelf() {
        let shelf = Shelf::new(None);
        let stream = |seed| Stream::new("gauss", 100, 10, 5, seed);
        let first = shelf.get(&stream(0)).expect("made");
        (1..=SHELF_LEN as u64).for_each(|seed| drop(shelf.get(&stream(seed)).expect("made")));
        let again = shelf.get(&stream(0)).expect("made again");
        assert!(!Arc::ptr_eq(&first, &again) && first.items == again.items);
    }

    #[test]
    fn hashes_are_those_of_sha256() {
        let of_one = "7c9fa136d4413fa6173637e883b6998d32e1d675f88cddff9dcbcf331820f4b8";
        assert_eq!(items_hash(&[1]), of_one);
    }
}
