//! Reads a stream to its end, or until it is interrupted.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::feed::Feed;
use crate::input::file::name;
use crate::input::parser::Wanted;
use crate::input::reader::{Files, Message, Reader};
use crate::interrupt;
use crate::progress::Progress;
use crate::remark;

/// How often bars, clocks and screens are brought up to date.
const TICK: Duration = Duration::from_millis(50);

/// Why reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The input is over.
    Complete,
    /// Somebody has seen enough.
    Left,
    Interrupted,
}

/// What else happens while a stream is read.
pub(crate) trait Companion {
    /// Called about every 50 milliseconds; false ends the reading.
    fn tick(&mut self, feed: &mut Feed<'_>, is_complete: bool) -> Result<bool>;
    /// Whether to go on after the end of the input until `tick` ends it.
    fn stays(&self) -> bool;
}

/// Nothing else happens.
pub(crate) struct Alone;

impl Companion for Alone {
    fn tick(&mut self, _: &mut Feed<'_>, _: bool) -> Result<bool> {
        Ok(true)
    }

    fn stays(&self) -> bool {
        false
    }
}

struct Run<'r, 'f, C> {
    reader: Reader,
    feed: &'r mut Feed<'f>,
    companion: &'r mut C,
    paths: Vec<PathBuf>,
    /// The number of the next row of each file.
    rows: Vec<u64>,
    progress: Progress,
    last_tick: Instant,
    last_answer: Instant,
}

/// Feeds the files to the sketch.
pub(crate) fn run(
    files: Files,
    wanted: Wanted,
    feed: &mut Feed<'_>,
    companion: &mut impl Companion,
) -> Result<End> {
    let has_bar = !files.follow && !companion.stays();
    let paths = files.paths.clone();
    let progress = if has_bar { Progress::over(&paths) } else { Progress::none() };
    let now = Instant::now();
    let reader = Reader::start(files, wanted);
    let mut run = Run {
        reader,
        feed,
        companion,
        rows: vec![1; paths.len()],
        paths,
        progress,
        last_tick: now,
        last_answer: now,
    };
    let end = run.until_end();
    run.progress.finish();
    end
}

impl<C: Companion> Run<'_, '_, C> {
    fn until_end(&mut self) -> Result<End> {
        let mut is_complete = false;
        loop {
            if !is_complete {
                is_complete = self.step()?;
            } else if self.companion.stays() {
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
                if !self.companion.tick(self.feed, is_complete)? {
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
        self.progress.update(self.reader.bytes_read(), self.feed.counts.records);
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
                start.remarks(&self.paths[file]).iter().for_each(remark::note);
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
