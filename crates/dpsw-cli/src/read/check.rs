//! Whether sources can be read as they are meant to be, before anything is spent on them.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use anyhow::Result;

use crate::fault::Fault;
use crate::read::file::{self, cannot_read, is_missing, is_pipe, named};
use crate::read::parser::Parser;
use crate::read::reader::{Files, check_followed};
use crate::read::start::{Source, Start, format_of_name};
use crate::read::{Record, Sink, columnar};
use crate::show::remark;

/// Refuses what cannot be opened and what the first records show to be something else. Pipes are not looked at: they are
/// read once.
pub(crate) fn check(files: &Files) -> Result<()> {
    if files.follow && 1 < files.paths.len() {
        files.paths.iter().try_for_each(|path| check_grows(path))?;
    }
    let mut before = Seen::default();
    for path in &files.paths {
        if files.follow && is_missing(path) && !file::is_stdin(path) {
            check_awaited(path, files)?;
        } else if !is_pipe(path) {
            let seen = check_file(path, files)?;
            say_order(path, &before, &seen);
            before.newest = before.newest.max(seen.newest);
        }
    }
    Ok(())
}

/// Files of the same time are not merged.
fn say_order(path: &Path, before: &Seen, seen: &Seen) {
    if seen.first.is_some() && seen.first < before.newest {
        remark::note(format!(
            "{} begins before the file that is named before it ends: what is older than the newest record that was read counts \
            only while --lateness waits for it; name older files first, or merge them by time",
            path.display()
        ));
    }
}

/// Refuses a pipe beside files that grow: waiting for it would keep them waiting.
fn check_grows(path: &Path) -> Result<()> {
    if is_pipe(path) {
        return Err(Fault::usage(format!(
            "{} is a pipe; --follow takes files, or one pipe alone",
            file::name(path)
        )));
    }
    Ok(())
}

/// Refuses to take the time at which a file that is over is read for the time of its events.
pub(crate) fn check_arrival(files: &Files) -> Result<()> {
    match files.paths.iter().find(|path| !files.follow && !is_pipe(path) && !is_missing(path)) {
        None => Ok(()),
        Some(path) => Err(Fault::usage(format!(
            "{} is read at once, so its events would all happen now: --arrival-time is for pipes and --follow; name the \
            column of their times with --time-column",
            path.display()
        ))),
    }
}

/// All that is known of a file that is not there yet is its name.
fn check_awaited(path: &Path, files: &Files) -> Result<()> {
    match files.told.format.or(format_of_name(path)) {
        Some(format) => Parser::new(format, &files.wanted, &[])
            .map(|_| ())
            .map_err(|error| named(error, &file::name(path))),
        None => Ok(()),
    }
}

fn check_file(path: &Path, files: &Files) -> Result<Seen> {
    let file = file::open(path)?;
    let (start, source) = Start::read(path, file, files.told).map_err(|error| cannot_read(path, error))?;
    if files.follow && start.bytes.is_empty() {
        return check_awaited(path, files).map(|()| Seen::default());
    }
    check_start(path, &start, source, files).map_err(|error| named(error, &start.name))
}

fn check_start(path: &Path, start: &Start, source: Source, files: &Files) -> Result<Seen> {
    if files.follow {
        check_followed(start)?;
    }
    files.wanted.check(start.format)?;
    let mut seen = Seen::default();
    if start.is_columnar() {
        let read =
            columnar::read(path, start, source, &files.wanted.selection, &AtomicU64::new(0), |_| false);
        read.map_err(|error| cannot_read(path, error))?;
    } else {
        Parser::new(start.format, &files.wanted, &start.bytes)?.push(&start.bytes, &mut seen)?;
    }
    Ok(seen)
}

/// The times of records that are looked at and not counted.
#[derive(Debug, Default)]
struct Seen {
    first: Option<u64>,
    newest: Option<u64>,
}

impl Seen {
    fn see(&mut self, time: Option<u64>) {
        self.first = self.first.or(time);
        self.newest = self.newest.max(time);
    }
}

impl Sink for Seen {
    fn items(&mut self, _: &[&[u8]], times: &[u64]) -> Result<()> {
        for time in times {
            self.see(Some(*time));
        }
        Ok(())
    }

    fn record(&mut self, _: u64, record: Record<'_>) -> Result<()> {
        self.see(record.time.and_then(Result::ok));
        Ok(())
    }
}
