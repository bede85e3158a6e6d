//! A bar with rate and time left while files are read, a spinner while work goes on; nothing where it would be in the way.

use std::path::PathBuf;
use std::time::Duration;

use dpsw_faces::quantity::grouped;
use indicatif::{ProgressBar, ProgressStyle};

use crate::input::file::is_stdin;
use crate::remark;

/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(100);

/// The bar, if one is shown.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// A bar over the bytes of these files.
    pub(crate) fn over(paths: &[PathBuf]) -> Self {
        if !remark::shows_progress() || paths.iter().any(|path| is_stdin(path)) {
            return Self::none();
        }
        let len = |path: &PathBuf| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let bar = ProgressBar::new(paths.iter().map(len).sum());
        let template = "{bar:30} {percent:>3} %  {binary_bytes_per_sec}  {eta} left  {msg}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self(Some(bar))
    }

    /// A spinner with the time that passes, for work of unknown length.
    pub(crate) fn spinner() -> Self {
        if !remark::shows_progress() {
            return Self::none();
        }
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(TURN);
        Self(Some(bar))
    }

    pub(crate) fn update(&self, bytes: u64, records: u64) {
        if let Some(bar) = &self.0 {
            bar.set_position(bytes);
            bar.set_message(format!("{} records", grouped(records as f64)));
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
