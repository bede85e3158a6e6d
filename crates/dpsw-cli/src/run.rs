//! Reads a stream to its end, or until it is interrupted.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::arguments::Format;
use crate::feed::Feed;
use crate::input::file::named;
use crate::input::parser::{Parser, Wanted};
use crate::input::reader::{Files, Message, Reader};
use crate::input::start::Start;
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

/// A file that is read.
struct Part {
    name: String,
    format: Format,
    /// `None` if it comes in rows.
    parser: Option<Parser>,
    row: u64,
}

impl Part {
    fn new(start: &Start, wanted: &Wanted) -> Result<Self> {
        wanted.check(start.format)?;
        let mut part = Self { name: start.name.clone(), format: start.format, parser: None, row: 1 };
        part.parse(wanted, &start.bytes)?;
        Ok(part)
    }

    /// A growing file that was rotated starts anew.
    fn restart(&mut self, wanted: &Wanted) -> Result<()> {
        self.row = 1;
        self.parse(wanted, &[])
    }

    fn parse(&mut self, wanted: &Wanted, start: &[u8]) -> Result<()> {
        self.parser = match self.format {
            Format::Arrow | Format::Parquet => None,
            format => Some(Parser::new(format, wanted, start)?),
        };
        Ok(())
    }
}

struct Run<'r, 'f, C> {
    reader: Reader,
    wanted: Wanted,
    feed: &'r mut Feed<'f>,
    companion: &'r mut C,
    paths: Vec<PathBuf>,
    /// By the numbers of the files; files that have not started have none.
    parts: Vec<Option<Part>>,
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
    let reader = Reader::start(files);
    let mut run = Run {
        reader,
        wanted,
        feed,
        companion,
        parts: paths.iter().map(|_| None).collect(),
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
                let part = Part::new(&start, &self.wanted);
                self.parts[file] = Some(part.map_err(|error| named(error, &start.name))?);
            }
            Message::Bytes(file, block) => {
                self.parse(file, |parser, feed| parser.push(&block, feed))?;
                self.reader.give_back(block);
            }
            Message::Rows(file, rows) => {
                let Some(part) = &mut self.parts[file] else { return Ok(false) };
                self.feed.arrive()?;
                self.feed.source.clone_from(&part.name);
                rows.feed(part.row, self.feed)?;
                part.row += rows.len() as u64;
                self.feed.flush()?;
            }
            Message::End(file) => {
                self.parse(file, |parser, feed| parser.finish(feed))?;
                self.parts[file].as_mut().map_or(Ok(()), |part| part.restart(&self.wanted))?;
            }
        }
        Ok(false)
    }

    fn parse(
        &mut self,
        file: usize,
        act: impl FnOnce(&mut Parser, &mut Feed<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(part) = &mut self.parts[file] else { return Ok(()) };
        self.feed.arrive()?;
        self.feed.source.clone_from(&part.name);
        if let Some(parser) = &mut part.parser {
            // The source stands in errors of records already.
            act(parser, self.feed).map_err(|error| named(error, &part.name))?;
        }
        self.feed.flush()
    }
}
