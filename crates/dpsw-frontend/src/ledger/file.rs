//! The file of a ledger: locked while it is read and added to, and on the disk before anything else happens.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::ledger::accounts::Accounts;
use crate::ledger::entry::{Entry, VERSION, folder};
use crate::ledger::error::{LedgerError, Remark};

/// The start of every ledger.
const MAGIC: &[u8] = b"{\"entry\":\"dpsw ledger\"";

/// A ledger that nobody else can change until this is dropped.
pub(crate) struct LedgerFile {
    path: PathBuf,
    file: File,
    /// The whole lines that are there.
    text: Vec<u8>,
}

impl LedgerFile {
    /// Opens a ledger to add to it, or makes an empty one, once nobody else holds it.
    pub(crate) fn open(path: &Path, say: &dyn Fn(&Remark)) -> Result<(Self, Accounts), LedgerError> {
        let (file, mut text) = open_locked(path, say).map_err(|error| unwritten(path, error))?;
        let (accounts, end) = parse(&text, path, say)?;
        text.truncate(end);
        Ok((Self { path: path.to_owned(), file, text }, accounts))
    }

    /// Adds lines. When this returns they are on the disk.
    pub(crate) fn append(mut self, entries: &[Entry]) -> Result<(), LedgerError> {
        let end = self.text.len();
        if end == 0 {
            self.text.extend(line(&Entry::Start { version: VERSION }));
        } else if !self.text.ends_with(b"\n") {
            self.text.push(b'\n');
        }
        for entry in entries {
            self.text.extend(line(entry));
        }
        self.write_from(end).map_err(|error| unwritten(&self.path, error))
    }

    fn write_from(&mut self, end: usize) -> io::Result<()> {
        // What was cut off in the middle of a line is written over.
        self.file.set_len(end as u64)?;
        self.file.seek(SeekFrom::Start(end as u64))?;
        self.file.write_all(&self.text[end..])?;
        self.file.sync_all()?;
        if end == 0 { sync_name(&self.path) } else { Ok(()) }
    }
}

fn open_locked(path: &Path, say: &dyn Fn(&Remark)) -> io::Result<(File, Vec<u8>)> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    lock(&file, path, say)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((file, bytes))
}

fn lock(file: &File, path: &Path, say: &dyn Fn(&Remark)) -> io::Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            say(&Remark::Waiting(path.to_owned()));
            file.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(()),
    }
}

/// What a ledger says now; nothing is changed.
pub(crate) fn read(path: &Path, say: &dyn Fn(&Remark)) -> Result<Accounts, LedgerError> {
    let unread = |step| move |error| LedgerError::Unread { ledger: path.to_owned(), step, error };
    let mut file = File::open(path).map_err(unread("opened"))?;
    let mut bytes = Vec::new();
    file.lock_shared().and_then(|()| file.read_to_end(&mut bytes)).map_err(unread("read"))?;
    Ok(parse(&bytes, path, say)?.0)
}

/// Whether these are the bytes of a ledger.
pub fn is_ledger(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

fn unwritten(path: &Path, error: io::Error) -> LedgerError {
    LedgerError::Unwritten { ledger: path.to_owned(), error }
}

fn line(entry: &Entry) -> Vec<u8> {
    let mut text = serde_json::to_vec(entry).expect("an entry has text and numbers alone");
    text.push(b'\n');
    text
}

/// The sums, and where the last whole line ends.
fn parse(bytes: &[u8], path: &Path, say: &dyn Fn(&Remark)) -> Result<(Accounts, usize), LedgerError> {
    let mut accounts = Accounts::default();
    let mut end = 0;
    for (index, text) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let entry = serde_json::from_slice(text).map_err(|error| error.to_string());
        let taken =
            entry.and_then(|entry| if index == 0 { check_start(&entry) } else { accounts.take(entry) });
        match taken {
            Err(reason) if index == 0 => return Err(foreign(path, text, &reason)),
            // A run that was cut off while it wrote this had not begun to read: it goes on once all is on the disk.
            Err(_) if !text.ends_with(b"\n") => {
                say(&Remark::CutOff(path.to_owned()));
                break;
            }
            Err(_) if text.trim_ascii().is_empty() => end += text.len(),
            Err(reason) => {
                return Err(LedgerError::Damaged { ledger: path.to_owned(), line: index + 1, reason });
            }
            Ok(()) => end += text.len(),
        }
    }
    Ok((accounts, end))
}

fn check_start(entry: &Entry) -> Result<(), String> {
    match entry {
        Entry::Start { version: VERSION } => Ok(()),
        Entry::Start { version } => {
            Err(format!("it has version {version}, and this program knows {VERSION}"))
        }
        _ => Err("its first line is another one".to_owned()),
    }
}

fn foreign(path: &Path, first: &[u8], reason: &str) -> LedgerError {
    let reason = if is_ledger(first) { reason } else { "a ledger starts with a line that says so" };
    LedgerError::Foreign { ledger: path.to_owned(), reason: reason.to_owned() }
}

/// A new file has its name on the disk once its folder is there.
#[cfg(unix)]
fn sync_name(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

/// Other systems have no handle on folders.
#[cfg(not(unix))]
fn sync_name(_: &Path) -> io::Result<()> {
    Ok(())
}
