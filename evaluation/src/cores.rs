//! Work on all cores, with its progress on stderr.

use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use serde::Deserialize;

/// How many things are worked on at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cores {
    All,
    /// One, so that times mean something.
    One,
}

impl Cores {
    fn count(self) -> usize {
        match self {
            Self::All => std::thread::available_parallelism().map_or(1, usize::from),
            Self::One => 1,
        }
    }
}

/// How often the time left is drawn; nothing is drawn where stderr is no terminal.
const REDRAWN: Duration = Duration::from_millis(500);

fn progress(name: &'static str, len: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:8} {bar:40} {pos}/{len}  {left}");
    let style =
        style.expect("a valid template").with_key("left", |state: &ProgressState, text: &mut dyn Write| {
            // Nothing is known of it before the first is done.
            let _ =
                if state.pos() == 0 { Ok(()) } else { write!(text, "{:#} left", HumanDuration(state.eta())) };
        });
    let progress = ProgressBar::new(len as u64).with_prefix(name).with_style(style);
    progress.enable_steady_tick(REDRAWN);
    progress
}

/// The results in the order of the jobs.
pub(crate) fn run<J: Sync, T: Send + Sync>(
    name: &'static str,
    cores: Cores,
    jobs: &[J],
    work: impl Fn(&J) -> T + Sync,
) -> Vec<T> {
    let progress = progress(name, jobs.len());
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<T>> = jobs.iter().map(|_| OnceLock::new()).collect();
    std::thread::scope(|scope| {
        for _ in 0..cores.count().min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let _ = results[index].set(work(job));
                    progress.inc(1);
                }
            });
        }
    });
    progress.finish_and_clear();
    results.into_iter().map(|result| result.into_inner().expect("every job is done")).collect()
}
