//! Reads a stream to its end, or until it is interrupted.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use dpsw::plan::{Method, TunedMethod};
use dpsw::{Plan, Unit};
use dpsw_frontend::quantity::grouped;
use indicatif::ProgressBar;

use crate::count::feed::Feed;
use crate::fault::{Fault, Kind};
use crate::interrupt;
use crate::read::file::name;
use crate::read::reader::{Files, Message, Reader};
use crate::show::remark;
use crate::show::watch::Watch;

/// How often bars, clocks and screens are brought up to date.
const TICK: Duration = Duration::from_millis(50);

/// The reasons why reading ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The input is over.
    Complete,
    /// Somebody has seen enough.
    Left,
    Interrupted,
}

/// A run over files, and who watches it.
struct Run<'r, 'f> {
    reader: Reader,
    feed: &'r mut Feed<'f>,
    /// Goes on after the end of the input, until somebody has seen enough.
    watch: Option<&'r mut Watch>,
    paths: Vec<PathBuf>,
    /// The number of the next row of each file.
    rows: Vec<u64>,
    progress: ProgressBar,
    last_tick: Instant,
    last_answer: Instant,
}

/// Feeds the files to the sketch.
pub(crate) fn run(files: Files, feed: &mut Feed<'_>, watch: Option<&mut Watch>) -> Result<End> {
    let has_bar = !files.follow && watch.is_none();
    let paths = files.paths.clone();
    let progress = if has_bar { remark::bar_over(&paths) } else { ProgressBar::hidden() };
    let now = Instant::now();
    let reader = Reader::start(files);
    let mut run = Run {
        reader,
        feed,
        watch,
        rows: vec![1; paths.len()],
        paths,
        progress,
        last_tick: now,
        last_answer: now,
    };
    let end = run.until_end();
    run.progress.finish_and_clear();
    end
}

impl Run<'_, '_> {
    fn until_end(&mut self) -> Result<End> {
        let mut is_complete = false;
        loop {
            if !is_complete {
                is_complete = self.step()?;
            } else if self.watch.is_some() {
                std::thread::sleep(TICK);
            } else {
                return Ok(End::Complete);
            }
            if interrupt::is_requested() {
                return Ok(End::Interrupted);
            }
            if TICK <= self.last_tick.elapsed() {
                self.last_tick = Instant::now();
                self.tick()?;
                if let Some(watch) = &mut self.watch
                    && !watch.tick(self.feed, is_complete)?
                {
                    return Ok(match is_complete {
                        _ if interrupt::is_requested() => End::Interrupted,
                        true => End::Complete,
                        false => End::Left,
                    });
                }
            }
        }
    }

    fn tick(&mut self) -> Result<()> {
        self.feed.arrive()?;
        self.progress.set_position(self.reader.bytes_read());
        self.progress.set_message(format!("{} records", grouped(self.feed.counts.records as f64)));
        if self.feed.wall_period().is_some_and(|period| period <= self.last_answer.elapsed()) {
            self.last_answer = Instant::now();
            self.feed.answer()?;
        }
        Ok(())
    }

    /// Takes one message; true if it was the last.
    fn step(&mut self) -> Result<bool> {
        match self.reader.next(TICK)? {
            Message::Idle => {}
            Message::Done => return Ok(true),
            Message::Start(file, start) => {
                for remark in start.remarks(&self.paths[file]) {
                    remark::note(remark);
                }
            }
            Message::Records(file, parsed) => {
                self.turn_to(file)?;
                parsed.feed(self.feed)?;
                self.feed.flush()?;
                self.reader.give_back(parsed);
            }
            Message::Rows(file, rows) => {
                self.turn_to(file)?;
                rows.feed(self.rows[file], self.feed)?;
                self.rows[file] += rows.len() as u64;
                self.feed.flush()?;
            }
        }
        Ok(false)
    }

    fn turn_to(&mut self, file: usize) -> Result<()> {
        self.feed.arrive()?;
        self.feed.source = name(&self.paths[file]);
        Ok(())
    }
}

/// How many of these records, from the first one on, lie before the oldest substream that is kept. None, if anything is
/// carried on from one substream to the next.
pub(crate) fn unasked_records(plan: &Plan, records: u64) -> u64 {
    let settings = plan.settings();
    let Method::Tuned(TunedMethod { levels: 1, pinned: 0, .. }) = plan.method() else { return 0 };
    if plan.search_plan().is_some() || settings.unit != Unit::ReplaceOne {
        return 0;
    }
    // No substream is longer than a window.
    let kept = settings.window.len().saturating_mul(u64::from(settings.retention) + 1);
    records.saturating_sub(kept)
}

/// Refuses to answer where the last window is not what it was taken for: there are fewer records than were counted before.
pub(crate) fn check_complete(end: End, records: u64, counted: u64) -> Result<()> {
    match end {
        _ if counted <= records => Ok(()),
        End::Interrupted => Err(Fault::of(Kind::Interrupted, "interrupted before the last window was read")),
        End::Complete | End::Left => {
            Err(Fault::data("the input has changed while it was read; run it again"))
        }
    }
}

#[cfg(test)]
mod tests {
    use dpsw::Settings;
    use dpsw::plan::CounterLayout;

    use super::*;

    #[test]
    fn records_are_passed_over_only_where_nothing_is_carried_on() {
        let flat = TunedMethod { substreams: 2, counters: CounterLayout::Identity, ..TunedMethod::default() };
        let settings = Settings::last_items(1000, 1.0).expect("in range").with_keys(["a", "b"]);
        let plan = |method: &TunedMethod, settings: &Settings| {
            let method = Some(Method::Tuned(method.clone()));
            Settings { method, ..settings.clone() }.plan().expect("a plan")
        };
        assert_eq!(
            [1500, 2000, 2001, 9000].map(|all| unasked_records(&plan(&flat, &settings), all)),
            [0, 0, 1, 7000]
        );
        let kept = Settings { retention: 3, ..settings.clone() };
        assert_eq!(unasked_records(&plan(&flat, &kept), 9000), 5000);
        let cut = TunedMethod { levels: 2, ..flat.clone() };
        assert_eq!(unasked_records(&plan(&cut, &settings), 9000), 0);
        let users = Settings { unit: Unit::Users { per_substream: 1 }, ..settings };
        assert_eq!(unasked_records(&plan(&flat, &users), 9000), 0);
    }

    #[test]
    fn a_window_that_was_not_read_is_not_answered() {
        let words = |end, records| check_complete(end, records, 100).map_err(|error| error.to_string());
        assert_eq!(words(End::Complete, 100), Ok(()));
        assert_eq!(words(End::Interrupted, 101), Ok(()));
        assert!(words(End::Complete, 99).is_err_and(|error| error.contains("changed")));
        assert!(words(End::Interrupted, 99).is_err_and(|error| error.contains("interrupted")));
    }
}
