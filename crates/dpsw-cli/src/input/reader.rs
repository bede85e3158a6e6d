//! Reads files one after the other in a thread of its own and hands over their bytes in blocks.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use anyhow::{Error, Result};

use crate::arguments::Format;
use crate::fault::{self, Fault, Kind};
use crate::input::columnar::{self, Rows, Selection};
use crate::input::follow::Followed;
use crate::input::format::{self, Packing};

const BLOCK_LEN: usize = 256 * 1024;
/// Blocks that are read ahead.
const BLOCKS_MAX: usize = 4;

/// What the reading thread has to say.
pub(crate) enum Message {
    /// The next file starts.
    Start { name: String, format: Format },
    /// Some of its bytes.
    Bytes(Vec<u8>),
    /// Some of its rows.
    Rows(Box<Rows>),
    /// It ends, or is continued in a new file after a rotation.
    End,
    /// Nothing came for a while.
    Idle,
    /// All files have ended.
    Done,
}

/// What is to be read.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) format: Option<Format>,
    pub(crate) follow: bool,
    pub(crate) selection: Selection,
}

impl Files {
    pub(crate) fn format_of(&self, path: &Path) -> Format {
        self.format.unwrap_or_else(|| format::guess(path))
    }
}

/// The main thread's end.
pub(crate) struct Reader {
    messages: Receiver<Result<Message>>,
    used: Sender<Vec<u8>>,
    /// Bytes read from the files so far, before unpacking; Arrow files are not counted.
    progress: Arc<AtomicU64>,
}

impl Reader {
    pub(crate) fn start(files: Files) -> Self {
        let (sender, messages) = sync_channel(BLOCKS_MAX);
        let (used, free) = channel();
        let progress = Arc::new(AtomicU64::new(0));
        let thread = Thread { sender, free, progress: Arc::clone(&progress) };
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
    pub(crate) fn give_back(&self, block: Vec<u8>) {
        // The thread may be gone already.
        let _ = self.used.send(block);
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}

/// Nobody listens any more.
struct Closed;

pub(crate) struct Thread {
    sender: SyncSender<Result<Message>>,
    free: Receiver<Vec<u8>>,
    progress: Arc<AtomicU64>,
}

impl Thread {
    fn run(&self, files: &Files) {
        for path in &files.paths {
            if let Err(error) = self.file(path, files) {
                // If nobody listens, nobody misses it.
                let _ = self.sender.send(Err(error));
                return;
            }
        }
        let _ = self.send(Message::Done);
    }

    fn file(&self, path: &Path, files: &Files) -> Result<()> {
        let name = name(path);
        let format = files.format_of(path);
        if self.send(Message::Start { name: name.clone(), format }).is_err() {
            return Ok(());
        }
        let read = match format {
            Format::Parquet | Format::Arrow => {
                let rows = |rows| self.send(Message::Rows(Box::new(rows))).is_ok();
                columnar::read(path, format, &files.selection, &self.progress, rows)
            }
            _ if is_stdin(path) => self.blocks(io::stdin().lock()),
            _ if files.follow => self.follow(path),
            _ => self.blocks(open(path, &self.progress)?).map_err(|error| of_packing(error, path)),
        };
        read.map_err(|error| cannot_read(path, error))?;
        // Whoever no longer listens needs no end.
        let _ = self.send(Message::End);
        Ok(())
    }

    fn blocks(&self, mut source: impl Read) -> Result<()> {
        loop {
            let mut block = self.block();
            if read_block(&mut source, &mut block)? == 0 || self.send(Message::Bytes(block)).is_err() {
                return Ok(());
            }
        }
    }

    /// Never ends, unless nobody listens.
    fn follow(&self, path: &Path) -> Result<()> {
        let mut file = Followed::open(path)?;
        loop {
            let mut block = self.block();
            let message = match file.next(|file| read_block(file, &mut block))? {
                0 => Message::End,
                _ => Message::Bytes(block),
            };
            if self.send(message).is_err() {
                return Ok(());
            }
        }
    }

    fn block(&self) -> Vec<u8> {
        self.free.try_recv().unwrap_or_default()
    }

    fn send(&self, message: Message) -> Result<(), Closed> {
        self.sender.send(Ok(message)).map_err(|_| Closed)
    }
}

/// Fills a block with what one read gives; 0 at the end.
fn read_block(source: &mut impl Read, block: &mut Vec<u8>) -> io::Result<usize> {
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

/// A file, unpacked.
fn open(path: &Path, progress: &Arc<AtomicU64>) -> Result<Box<dyn Read>> {
    let file = Counted { file: open_file(path)?, progress: Arc::clone(progress) };
    Ok(match format::packing(path) {
        Packing::Plain => Box::new(file),
        Packing::Gzip => {
            Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(BLOCK_LEN, file)))
        }
        Packing::Zstd => Box::new(zstd::Decoder::new(file)?),
    })
}

pub(crate) fn open_file(path: &Path) -> Result<File> {
    check_is_there(path)?;
    File::open(path).map_err(|error| cannot_open(path, &error))
}

/// Refuses what cannot be opened. A pipe, which opens once, is not opened.
pub(crate) fn check_file(path: &Path) -> Result<()> {
    if is_pipe(path) { Ok(()) } else { open_file(path).map(|_| ()) }
}

#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(path: &Path) -> bool {
    path.exists() && !path.is_file() && !path.is_dir()
}

fn check_is_there(path: &Path) -> Result<()> {
    if std::fs::metadata(path).map_err(|error| cannot_open(path, &error))?.is_dir() {
        return Err(Fault::data(format!("{} is a directory; name the files in it", path.display())));
    }
    Ok(())
}

fn cannot_open(path: &Path, error: &io::Error) -> Error {
    Fault::data(format!("{} cannot be opened: {error}", path.display()))
}

/// What the system refuses to read is data that cannot be read.
pub(crate) fn cannot_read(path: &Path, error: Error) -> Error {
    let context = format!("{} cannot be read", name(path));
    match fault::kind(&error) {
        Kind::Failure => Fault::data(format!("{context}: {error:#}")),
        _ => error.context(context),
    }
}

/// A packed file that cannot be unpacked is damaged, whatever the system says of it.
fn of_packing(error: Error, path: &Path) -> Error {
    match format::packing(path) {
        Packing::Plain => error,
        _ => Fault::data(format!("it is damaged, cut off or not packed as its name says: {error:#}")),
    }
}

/// The whole of a small file, unpacked.
pub(crate) fn read_all(path: &Path) -> Result<Vec<u8>> {
    let len = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    // One more tells the end of the file without growing.
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0) + 1);
    open(path, &Arc::default())?
        .read_to_end(&mut bytes)
        .map_err(|error| cannot_read(path, of_packing(error.into(), path)))?;
    Ok(bytes)
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Counts what was read, for the progress bar.
struct Counted {
    file: File,
    progress: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(buffer)?;
        self.progress.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}
