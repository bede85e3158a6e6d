//! Finished points in a folder, so that nothing is run twice.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::measure::{Outcome, Workload, measure};
use crate::method::AnyPlan;
use crate::stream::{Shelf, Stream, hex};

/// One measurement: a plan on a stream with a seed.
#[derive(Debug, Clone)]
pub struct Point<'a> {
    pub plan: &'a AnyPlan,
    pub stream: Stream,
    pub workload: Workload,
    /// Of noise and questions.
    pub seed: u64,
    /// Whether nothing else runs at the time.
    pub alone: bool,
}

impl Point<'_> {
    /// Every parameter; equal texts give equal outcomes, but for times.
    pub fn identity(&self) -> String {
        let Self { plan, stream, workload: Workload { window_len, queries, gammas }, seed, alone } = self;
        format!(
            "{plan} | {stream} | window {window_len} queries {queries} gammas {gammas:?} seed {seed} alone {alone}"
        )
    }
}

/// What an outcome was measured on.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Where the stream comes from.
    pub shelf: &'a Shelf,
    /// The stream, unless it is made for the plan.
    pub stream: Option<&'a Stream>,
    /// What its files hold.
    pub data: &'a str,
}

/// A finished point as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept<T> {
    identity: String,
    code: String,
    data: String,
    stream_hash: String,
    outcome: T,
}

/// Finished points of one version of the code.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    code: String,
}

impl Store {
    /// Points of another version of the code are not used.
    pub fn open(folder: &Path, code: &str) -> Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(Self { folder: folder.to_owned(), code: code.to_owned() })
    }

    fn path(&self, identity: &str) -> PathBuf {
        let digest = hex(&Sha256::digest(identity.as_bytes()));
        self.folder.join(format!("{}.json", &digest[..32]))
    }

    /// The outcome of a point if it was finished with this code on these data; the shelf hears of its stream.
    pub fn find(&self, point: &Point<'_>, shelf: &Shelf, data: &str) -> Option<Outcome> {
        self.kept(&point.identity(), &Origin { shelf, stream: Some(&point.stream), data })
    }

    fn kept<T: DeserializeOwned>(&self, identity: &str, origin: &Origin<'_>) -> Option<T> {
        let text = std::fs::read_to_string(self.path(identity)).ok()?;
        let kept: Kept<T> = serde_json::from_str(&text).ok()?;
        let is_same = kept.identity == identity && kept.code == self.code && kept.data == origin.data;
        is_same.then(|| {
            if let Some(stream) = origin.stream {
                origin.shelf.note(stream, kept.stream_hash);
            }
            kept.outcome
        })
    }

    /// Measures a point and keeps its outcome.
    pub fn measure(&self, point: &Point<'_>, shelf: &Shelf, data: &str) -> Result<Outcome> {
        let origin = Origin { shelf, stream: Some(&point.stream), data };
        let dataset = shelf.get(&point.stream)?;
        self.keep(&point.identity(), &origin, measure(point.plan, &dataset, &point.workload, point.seed)?)
    }

    /// What was kept of some work with this code on these data, or what it gives now, which is then kept.
    pub fn once<T: Serialize + DeserializeOwned>(
        &self,
        identity: &str,
        origin: &Origin<'_>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match self.kept(identity, origin) {
            Some(outcome) => Ok(outcome),
            None => self.keep(identity, origin, work()?),
        }
    }

    /// Keeps an outcome; a run that is cut off leaves the whole of it or nothing.
    fn keep<T: Serialize>(&self, identity: &str, origin: &Origin<'_>, outcome: T) -> Result<T> {
        let kept = Kept {
            identity: identity.to_owned(),
            code: self.code.clone(),
            data: origin.data.to_owned(),
            stream_hash: origin.stream.map_or_else(String::new, |stream| origin.shelf.hash(stream)),
            outcome,
        };
        replace(&self.path(identity), &serde_json::to_string(&kept)?)?;
        Ok(kept.outcome)
    }
}

/// Writes a file whole or not at all.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    let context = || path.display().to_string();
    let beside = path.with_extension(format!("{:?}.part", std::thread::current().id()));
    std::fs::write(&beside, text).with_context(context)?;
    std::fs::rename(&beside, path).with_context(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_once_for_each_code_and_each_data() {
        let folder = std::env::temp_dir().join(format!("dpsw-eval-store-{}", std::process::id()));
        let shelf = Shelf::new(None);
        let done = std::cell::Cell::new(0);
        let once = |code: &str, data: &str, identity: &str| {
            let origin = Origin { shelf: &shelf, stream: None, data };
            let work = || {
                done.set(done.get() + 1);
                Ok(done.get())
            };
            Store::open(&folder, code).and_then(|store| store.once(identity, &origin, work)).expect("work")
        };
        let values = [
            once("a", "b", "c"),
            once("a", "b", "c"),
            once("a", "b", "d"),
            once("a", "e", "c"),
            once("f", "e", "c"),
            once("f", "e", "c"),
        ];
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(values, [1, 1, 2, 3, 4, 4]);
    }
}
