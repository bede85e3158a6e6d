//! Finished points in a folder, so that nothing is run twice.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::measure::{Outcome, Workload, measure};
use crate::method::AnyPlan;
use crate::stream::{Shelf, Stream, hex};

/// One measurement: a plan on a stream with a seed.
#[derive(Debug, Clone)]
pub struct Point<'a> {
    /// What is measured.
    pub plan: &'a AnyPlan,
    /// On what.
    pub stream: Stream,
    /// With which questions.
    pub workload: Workload,
    /// Of noise and questions.
    pub seed: u64,
    /// Whether nothing else runs at the time.
    pub alone: bool,
}

impl Point<'_> {
    /// Every parameter; equal texts give equal outcomes, but for times.
    #[must_use]
    pub fn identity(&self) -> String {
        let Self { plan, stream, workload: Workload { window_len, queries, gammas }, seed, alone } = self;
        format!(
            "{plan} | {stream} | window {window_len} queries {queries} gammas {gammas:?} seed {seed} alone {alone}"
        )
    }
}

/// A finished point as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    identity: String,
    code: String,
    data: String,
    stream_hash: String,
    outcome: Outcome,
}

/// Finished points of one version of the code.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    code: String,
}

impl Store {
    /// Points of another version of the code are not used.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(folder: &Path, code: &str) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Self { folder: folder.to_owned(), code: code.to_owned() })
    }

    fn path(&self, identity: &str) -> PathBuf {
        let digest = hex(&Sha256::digest(identity.as_bytes()));
        self.folder.join(format!("{}.json", &digest[..32]))
    }

    /// The outcome of a point if it was finished with this code on these data; the shelf hears of its stream.
    #[must_use]
    pub fn find(&self, point: &Point<'_>, shelf: &Shelf, data: &str) -> Option<Outcome> {
        let identity = point.identity();
        let text = std::fs::read_to_string(self.path(&identity)).ok()?;
        let kept: Kept = serde_json::from_str(&text).ok()?;
        let is_same = kept.identity == identity && kept.code == self.code && kept.data == data;
        is_same.then(|| {
            shelf.note(&point.stream, kept.stream_hash);
            kept.outcome
        })
    }

    /// Keeps an outcome; a run that is cut off leaves the whole of it or nothing.
    fn keep(&self, kept: &Kept) -> Result<()> {
        replace(&self.path(&kept.identity), &serde_json::to_string(kept)?)
    }

    /// Measures a point and keeps its outcome.
    ///
    /// # Errors
    /// The stream is absent or too short, or the outcome cannot be written.
    pub fn measure(&self, point: &Point<'_>, shelf: &Shelf, data: &str) -> Result<Outcome> {
        let dataset = shelf.get(&point.stream)?;
        let kept = Kept {
            identity: point.identity(),
            code: self.code.clone(),
            data: data.to_owned(),
            stream_hash: shelf.hash(&point.stream),
            outcome: measure(point.plan, &dataset, &point.workload, point.seed)?,
        };
        self.keep(&kept)?;
        Ok(kept.outcome)
    }
}

/// Writes a file whole or not at all.
///
/// # Errors
/// It cannot be written.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    let context = || path.display().to_string();
    let beside = path.with_extension(format!("{:?}.part", std::thread::current().id()));
    std::fs::write(&beside, text).with_context(context)?;
    std::fs::rename(&beside, path).with_context(context)
}
