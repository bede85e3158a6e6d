//! A database on a disk that is full: what would be written stays in memory, so that it can be read and nothing more.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::sync::Mutex;

use redb::{BackendError, StorageBackend};

use crate::sync::LockAnyway;

/// Bytes are kept in pieces of this length.
const PIECE_LEN: u64 = 4096;

/// The bytes on the disk under those that were written here. Nothing reaches the disk.
#[derive(Debug)]
pub(crate) struct Overlay {
    inner: Box<dyn StorageBackend>,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    len: u64,
    pieces: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    pub(crate) fn new(inner: Box<dyn StorageBackend>) -> io::Result<Self> {
        let len = inner.len()?;
        Ok(Self { inner, written: Mutex::new(Written { len, pieces: BTreeMap::new() }) })
    }

    /// A piece as it is on the disk, with zeros behind its end.
    fn piece(&self, number: u64) -> io::Result<Vec<u8>> {
        let start = number * PIECE_LEN;
        let mut piece = vec![0; PIECE_LEN as usize];
        let there = self.inner.len()?.saturating_sub(start).min(PIECE_LEN);
        if 0 < there {
            self.inner.read(start, &mut piece[..there as usize])?;
        }
        Ok(piece)
    }
}

/// The pieces of a range: the number of each, where the part in it begins, and how long that is.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + len as u64;
    (offset / PIECE_LEN..end.div_ceil(PIECE_LEN)).map(move |number| {
        let start = offset.max(number * PIECE_LEN);
        let piece = number * PIECE_LEN;
        let stop = end.min(piece + PIECE_LEN);
        (number, (start - piece) as usize, (stop - start) as usize)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock_anyway().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written.lock_anyway();
        let mut rest = out;
        for (number, at, len) in pieces(offset, rest.len()) {
            let (here, after) = std::mem::take(&mut rest).split_at_mut(len);
            match written.pieces.get(&number) {
                Some(piece) => here.copy_from_slice(&piece[at..at + len]),
                None => here.copy_from_slice(&self.piece(number)?[at..at + len]),
            }
            rest = after;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.written.lock_anyway().len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written.lock_anyway();
        let mut rest = data;
        for (number, at, len) in pieces(offset, data.len()) {
            let mut piece = match written.pieces.remove(&number) {
                Some(piece) => piece,
                None => self.piece(number)?,
            };
            piece[at..at + len].copy_from_slice(&rest[..len]);
            rest = &rest[len..];
            written.pieces.insert(number, piece);
        }
        written.len = written.len.max(offset + data.len() as u64);
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.inner.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.inner.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.inner.unlock_range(start, end)
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_disk_stays_as_it_was() {
        let inner = InMemoryBackend::new();
        inner.set_len(10_000).and_then(|()| inner.write(0, &[7; 10_000])).expect("memory");
        let overlay = Overlay::new(Box::new(inner)).expect("memory");
        overlay.set_len(20_000).and_then(|()| overlay.write(4_090, &[8; 9_000])).expect("memory");
        let mut read = vec![0; 20_000];
        overlay.read(0, &mut read).expect("memory");
        let wanted = [vec![7; 4_090], vec![8; 9_000], vec![0; 6_910]].concat();
        assert_eq!((overlay.len().expect("memory"), read == wanted), (20_000, true));
        let mut below = vec![0; 10_000];
        overlay.inner.read(0, &mut below).expect("memory");
        assert_eq!((overlay.inner.len().expect("memory"), below == [7; 10_000]), (10_000, true));
    }
}
