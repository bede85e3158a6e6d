//! Reads and parses files in a thread of its own and hands over their records: one file after the other, or, if they grow, as
//! their bytes come.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use anyhow::Result;

use crate::args::Format;
use crate::fault::Fault;
use crate::read::columnar::{self, Rows};
use crate::read::content;
use crate::read::file::{self, cannot_read, is_pipe, is_stdin, named};
use crate::read::follow::{Followed, Known, News};
use crate::read::packing::{Packing, START_LEN};
use crate::read::parsed::Parsed;
use crate::read::parser::{Parser, Wanted};
use crate::read::start::{Start, Told};

const BLOCK_LEN: usize = 256 * 1024;
/// Blocks that are read ahead.
const BLOCKS_MAX: usize = 4;
/// How often growing files are looked at.
const POLL: Duration = Duration::from_millis(100);

/// A message of the reading thread; files have numbers.
pub(crate) enum Message {
    /// A file starts.
    Start(usize, Arc<Start>),
    /// Some of its records.
    Records(usize, Box<Parsed>),
    /// Some of its rows.
    Rows(usize, Box<Rows>),
    /// Nothing came for a while.
    Idle,
    /// All files have ended.
    Done,
}

/// A piece of a file.
enum Piece {
    Start(Arc<Start>),
    Bytes(Vec<u8>),
    /// It ends, or is continued in a new file after a rotation.
    End,
}

/// The files that are to be read.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) told: Told,
    pub(crate) follow: bool,
    pub(crate) wanted: Wanted,
}

/// The main thread's end.
pub(crate) struct Reader {
    messages: Receiver<Result<Message>>,
    used: Sender<Box<Parsed>>,
    /// Bytes read from the files so far, before unpacking; Arrow files are not counted.
    progress: Arc<AtomicU64>,
}

impl Reader {
    pub(crate) fn start(files: Files) -> Self {
        let (sender, messages) = sync_channel(BLOCKS_MAX);
        let (used, free) = channel();
        let progress = Arc::new(AtomicU64::new(0));
        let mut thread = Thread {
            sender,
            free,
            progress: Arc::clone(&progress),
            unasked: files.wanted.unasked,
            parsers: files.paths.iter().map(|_| None).collect(),
            spare: Vec::new(),
        };
        std::thread::spawn(move || thread.run(&files));
        Self { messages, used, progress }
    }

    /// The next message, or `Idle` after this time.
    pub(crate) fn next(&self, patience: Duration) -> Result<Message> {
        match self.messages.recv_timeout(patience) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => Ok(Message::Idle),
            Err(RecvTimeoutError::Disconnected) => Ok(Message::Done),
        }
    }

    /// Gives a block back to be filled again.
    pub(crate) fn give_back(&self, parsed: Box<Parsed>) {
        // The thread may be gone already.
        let _ = self.used.send(parsed);
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}

/// Nobody listens any more.
struct Closed;

struct Thread {
    sender: SyncSender<Result<Message>>,
    free: Receiver<Box<Parsed>>,
    progress: Arc<AtomicU64>,
    /// By the numbers of the files; those that have not started, or come in rows, have none.
    parsers: Vec<Option<(Format, Parser)>>,
    /// How many records from here on nobody asks about.
    unasked: u64,
    /// A block that is free.
    spare: Vec<u8>,
}

impl Thread {
    fn run(&mut self, files: &Files) {
        let grows = files.follow && !files.paths.iter().any(|path| is_pipe(path));
        let read = if grows { self.follow(files) } else { self.in_order(files) };
        // If nobody listens, nobody misses it.
        let _ = self.sender.send(read.map(|()| Message::Done));
    }

    fn in_order(&mut self, files: &Files) -> Result<()> {
        for (number, path) in files.paths.iter().enumerate() {
            let source: Box<dyn Read> = if is_stdin(path) {
                Box::new(Once { source: io::stdin().lock(), is_over: false })
            } else {
                Box::new(Counted { file: file::open(path)?, progress: Arc::clone(&self.progress) })
            };
            self.file(number, path, source, files).map_err(|error| cannot_read(path, error))?;
        }
        Ok(())
    }

    fn file(&mut self, number: usize, path: &Path, source: Box<dyn Read>, files: &Files) -> Result<()> {
        let (start, source) = Start::read(path, source, files.told)?;
        let start = Arc::new(start);
        if self.say(files, number, Piece::Start(Arc::clone(&start))).is_err() {
            return Ok(());
        }
        if start.is_columnar() {
            let rows = |rows| self.send(Message::Rows(number, Box::new(rows))).is_ok();
            columnar::read(path, &start, source, &files.wanted.selection, &self.progress, rows)?;
        } else {
            self.blocks(files, number, source).map_err(|error| start.packing.damage(error))?;
        }
        Ok(())
    }

    fn blocks(&mut self, files: &Files, number: usize, mut source: impl Read) -> io::Result<()> {
        loop {
            let mut block = self.block();
            let is_over = read_block(&mut source, &mut block)? == 0;
            let piece = if is_over { Piece::End } else { Piece::Bytes(block) };
            if self.say(files, number, piece).is_err() || is_over {
                return Ok(());
            }
        }
    }

    /// Never ends, unless nobody listens.
    fn follow(&mut self, files: &Files) -> Result<()> {
        let mut tails: Vec<Tail> = files.paths.iter().map(|path| Tail::new(path)).collect();
        let mut known = Known::default();
        let mut block = Vec::new();
        loop {
            let mut is_quiet = true;
            for (number, tail) in tails.iter_mut().enumerate() {
                let news = tail.followed.look(&mut known, |file| read_block(file, &mut block));
                let news = news.map_err(|error| cannot_read(&tail.followed.path, error))?;
                is_quiet &= news == News::Nothing;
                let new =
                    if news == News::More { std::mem::replace(&mut block, self.block()) } else { Vec::new() };
                let pieces = tail.take(news, new, files.told);
                let pieces = pieces.map_err(|error| cannot_read(&tail.followed.path, error))?;
                if pieces.into_iter().any(|piece| self.say(files, number, piece).is_err()) {
                    return Ok(());
                }
            }
            if is_quiet {
                std::thread::sleep(POLL);
            }
        }
    }

    fn block(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    /// Parses a piece of a file and hands it over. What cannot be parsed ends the reading.
    fn say(&mut self, files: &Files, number: usize, piece: Piece) -> Result<(), Closed> {
        if let Piece::Start(start) = &piece {
            self.send(Message::Start(number, Arc::clone(start)))?;
        }
        match self.parse(&files.wanted, number, piece) {
            Ok(None) => Ok(()),
            Ok(Some(parsed)) => self.send(Message::Records(number, parsed)),
            Err(error) => {
                // If nobody listens, nobody misses it.
                let _ = self.sender.send(Err(named(error, &file::name(&files.paths[number]))));
                Err(Closed)
            }
        }
    }

    fn parse(&mut self, wanted: &Wanted, number: usize, piece: Piece) -> Result<Option<Box<Parsed>>> {
        if let Piece::Start(start) = &piece {
            self.parsers[number] = parser(start, wanted)?;
            return Ok(None);
        }
        let Some((format, parser)) = &mut self.parsers[number] else { return Ok(None) };
        let mut parsed = self.free.try_recv().unwrap_or_default();
        if let Piece::Bytes(block) = piece {
            self.spare = std::mem::replace(parsed.block(), block);
            self.unasked = parsed.push_to(parser, self.unasked)?;
        } else {
            self.unasked = parsed.finish(parser, self.unasked)?;
            // A growing file that was rotated starts anew.
            *parser = Parser::new(*format, wanted, &[])?;
        }
        Ok(Some(parsed))
    }

    fn send(&self, message: Message) -> Result<(), Closed> {
        self.sender.send(Ok(message)).map_err(|_| Closed)
    }
}

/// The parser of a file of text; `None` if the file comes in rows.
fn parser(start: &Start, wanted: &Wanted) -> Result<Option<(Format, Parser)>> {
    wanted.check(start.format)?;
    if start.is_columnar() {
        return Ok(None);
    }
    Ok(Some((start.format, Parser::new(start.format, wanted, &start.bytes)?)))
}

/// A growing file, and its first bytes until they tell its format.
struct Tail {
    followed: Followed,
    start: Option<Vec<u8>>,
}

impl Tail {
    fn new(path: &Path) -> Self {
        Self { followed: Followed::new(path), start: Some(Vec::new()) }
    }

    /// What there is to parse after news and new bytes.
    fn take(&mut self, news: News, block: Vec<u8>, told: Told) -> Result<Vec<Piece>> {
        let Some(start) = &mut self.start else {
            return Ok(match news {
                News::Nothing => vec![],
                News::More => vec![Piece::Bytes(block)],
                News::Anew => vec![Piece::End],
            });
        };
        start.extend(block);
        let is_known =
            content::is_enough(start) || START_LEN <= start.len() || Packing::of(start) != Packing::Plain;
        if start.is_empty() || !(is_known || news == News::Anew) {
            return Ok(vec![]);
        }
        let bytes = std::mem::take(start);
        self.start = None;
        let start = Start::new(&self.followed.path, Packing::of(&bytes), bytes.clone(), told)?;
        check_followed(&start)?;
        let mut pieces = vec![Piece::Start(Arc::new(start)), Piece::Bytes(bytes)];
        pieces.extend((news == News::Anew).then_some(Piece::End));
        Ok(pieces)
    }
}

/// Refuses what cannot be read as it grows.
pub(crate) fn check_followed(start: &Start) -> Result<()> {
    if start.packing == Packing::Plain && !start.is_columnar() {
        return Ok(());
    }
    Err(Fault::usage("--follow takes a text file that is not packed"))
}

/// Fills a block with what one read gives; 0 at the end.
pub(crate) fn read_block(source: &mut impl Read, block: &mut Vec<u8>) -> io::Result<usize> {
    block.resize(BLOCK_LEN, 0);
    loop {
        match source.read(block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => {
                let len = read?;
                block.truncate(len);
                return Ok(len);
            }
        }
    }
}

/// Ends once: a terminal that was asked again would wait for another end.
struct Once<R> {
    source: R,
    is_over: bool,
}

impl<R: Read> Read for Once<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        let len = self.source.read(buffer)?;
        self.is_over = len == 0 && !buffer.is_empty();
        Ok(len)
    }
}

/// Counts what was read.
pub(crate) struct Counted {
    pub(crate) file: File,
    pub(crate) progress: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(buffer)?;
        self.progress.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}
