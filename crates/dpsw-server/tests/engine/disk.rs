//! A disk in memory that crashes, fills up, and forgets or mixes up what was not synced.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use dpsw_server::Disk;
use redb::{Database, StorageBackend};

/// What becomes of writes that were not synced when the disk crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsynced {
    /// All are lost.
    Dropped,
    /// Some are there, in any order, and some only in part.
    Reordered,
}

/// A disk, which outlives the engines that use it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimDisk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// What reads see.
    image: Vec<u8>,
    /// What a crash leaves.
    durable: Vec<u8>,
    unsynced: Vec<Write>,
    marker: Option<Vec<u8>>,
    /// How many more operations there are before the crash.
    until_crash: Option<u64>,
    is_crashed: bool,
    /// Writes that succeed before some fail, and how many fail.
    failing: Option<(u64, u64)>,
    /// Whether writes that fail are done all the same.
    does_what_fails: bool,
    bytes_max: Option<u64>,
    refusal: Option<ErrorKind>,
    marker_refusal: Option<ErrorKind>,
    loses_syncs: bool,
    /// Whether syncs wait.
    is_held: bool,
    /// How many there were.
    syncs: u64,
}

#[derive(Debug, Clone)]
enum Write {
    Bytes(u64, Vec<u8>),
    Len(u64),
}

/// A small generator: tests are the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 >> 11) * u128::from(end)) >> 53) as u64
    }
}

impl SimDisk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic in a disk")
    }

    /// Crashes after so many operations.
    pub(crate) fn crash_after(&self, operations: u64) {
        self.lock().until_crash = Some(operations);
    }

    /// Of the writes that come, those from this number on fail, so many of them.
    pub(crate) fn fail(&self, from: u64, count: u64) {
        let mut state = self.lock();
        (state.failing, state.does_what_fails) = (Some((from, count)), false);
    }

    /// One write that comes, with this number, is done and fails all the same.
    pub(crate) fn do_and_fail(&self, number: u64) {
        let mut state = self.lock();
        (state.failing, state.does_what_fails) = (Some((number, 1)), true);
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.lock().failing.is_some()
    }

    pub(crate) fn is_crashed(&self) -> bool {
        self.lock().is_crashed
    }

    /// The disk after a crash: what was synced, and what became of the rest.
    pub(crate) fn restart(&self, unsynced: Unsynced, random: &mut Random) {
        let mut state = self.lock();
        let mut writes = std::mem::take(&mut state.unsynced);
        if unsynced == Unsynced::Reordered {
            for at in (1..writes.len()).rev() {
                writes.swap(at, random.below(at as u64 + 1) as usize);
            }
            let kept = random.below(writes.len() as u64 + 1) as usize;
            writes.into_iter().take(kept).for_each(|write| apply(&mut state.durable, torn(write, random)));
        }
        state.image = state.durable.clone();
        (state.until_crash, state.is_crashed) = (None, false);
    }

    /// There is room for so many bytes; more are refused like those of a full disk.
    pub(crate) fn limit(&self, bytes_max: Option<u64>) {
        self.lock().bytes_max = bytes_max;
    }

    /// Nothing can be opened or marked.
    pub(crate) fn refuse(&self, refusal: Option<ErrorKind>) {
        self.lock().refusal = refusal;
    }

    /// The marker cannot be moved.
    pub(crate) fn refuse_markers(&self, refusal: Option<ErrorKind>) {
        self.lock().marker_refusal = refusal;
    }

    /// Syncs fail, and nobody knows what of them is there.
    pub(crate) fn lose_syncs(&self, loses_syncs: bool) {
        self.lock().loses_syncs = loses_syncs;
    }

    /// Syncs wait from now on, or go on.
    pub(crate) fn hold(&self, is_held: bool) {
        self.lock().is_held = is_held;
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// What a copy of the data folder holds; the marker is elsewhere.
    pub(crate) fn backup(&self) -> Vec<u8> {
        self.lock().image.clone()
    }

    pub(crate) fn restore(&self, backup: &[u8]) {
        let mut state = self.lock();
        (state.image, state.durable) = (backup.to_vec(), backup.to_vec());
        state.unsynced.clear();
    }

    pub(crate) fn marker(&self) -> Option<Vec<u8>> {
        self.lock().marker.clone()
    }

    pub(crate) fn set_marker(&self, marker: Option<Vec<u8>>) {
        self.lock().marker = marker;
    }
}

/// Of a torn write some sectors are there.
fn torn(write: Write, random: &mut Random) -> Write {
    match write {
        Write::Bytes(offset, bytes) if random.below(3) == 0 => {
            let sectors = random.below(bytes.len().div_ceil(512) as u64 + 1) as usize;
            let len = bytes.len().min(512 * sectors);
            Write::Bytes(offset, bytes[..len].to_vec())
        }
        whole => whole,
    }
}

fn apply(image: &mut Vec<u8>, write: Write) {
    match write {
        Write::Len(len) => image.resize(len as usize, 0),
        Write::Bytes(offset, bytes) => {
            let (start, end) = (offset as usize, offset as usize + bytes.len());
            // A write behind an end that was lost makes the file longer again.
            image.resize(image.len().max(end), 0);
            image[start..end].copy_from_slice(&bytes);
        }
    }
}

/// The bytes of a database without anything. It is moved to its place whole.
fn empty_database() -> Vec<u8> {
    let disk = SimDisk::default();
    drop(Database::builder().create_with_backend(disk.clone()).expect("an empty disk"));
    disk.backup()
}

impl State {
    fn operate(&mut self) -> io::Result<()> {
        if let Some(left) = &mut self.until_crash {
            self.is_crashed |= *left == 0;
            *left = left.saturating_sub(1);
        }
        if self.is_crashed { Err(io::Error::other("the disk is gone")) } else { Ok(()) }
    }

    /// Whether this write fails.
    fn fails(&mut self) -> bool {
        match &mut self.failing {
            None => false,
            Some((0, 0)) => {
                self.failing = None;
                false
            }
            Some((0, left)) => {
                *left -= 1;
                true
            }
            Some((before, _)) => {
                *before -= 1;
                false
            }
        }
    }

    fn write(&mut self, write: Write) -> io::Result<()> {
        self.operate()?;
        let fails = self.fails();
        if fails && !self.does_what_fails {
            return Err(io::Error::from(ErrorKind::StorageFull));
        }
        let end = match &write {
            Write::Len(len) => *len,
            Write::Bytes(offset, bytes) => offset + bytes.len() as u64,
        };
        if self.bytes_max.is_some_and(|most| most < end && self.image.len() as u64 <= end) {
            return Err(io::Error::from(ErrorKind::StorageFull));
        }
        apply(&mut self.image, write.clone());
        self.unsynced.push(write);
        if fails { Err(io::Error::other("the disk says that it failed")) } else { Ok(()) }
    }
}

impl Disk for SimDisk {
    fn database(&self) -> io::Result<Box<dyn StorageBackend>> {
        let mut state = self.lock();
        state.operate()?;
        if let Some(refusal) = state.refusal {
            return Err(refusal.into());
        }
        if state.durable.is_empty() {
            state.durable = empty_database();
            state.image = state.durable.clone();
        }
        Ok(Box::new(self.clone()))
    }

    fn read_marker(&self) -> io::Result<Option<Vec<u8>>> {
        let mut state = self.lock();
        state.operate()?;
        Ok(state.marker.clone())
    }

    fn write_marker(&self, marker: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.operate()?;
        if let Some(refusal) = state.refusal.or(state.marker_refusal) {
            return Err(refusal.into());
        }
        state.marker = Some(marker.to_vec());
        // The file may be replaced, and the crash come before anybody learns it.
        state.operate()
    }

    fn name(&self) -> String {
        "a disk in memory".to_owned()
    }
}

impl StorageBackend for SimDisk {
    fn len(&self) -> io::Result<u64> {
        let mut state = self.lock();
        state.operate()?;
        Ok(state.image.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.operate()?;
        let range = offset as usize..offset as usize + out.len();
        let bytes = state.image.get(range).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.lock().write(Write::Len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        while self.lock().is_held {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut state = self.lock();
        state.syncs += 1;
        state.operate()?;
        if state.loses_syncs {
            return Err(io::Error::other("the disk did not confirm"));
        }
        let writes = std::mem::take(&mut state.unsynced);
        writes.into_iter().for_each(|write| apply(&mut state.durable, write));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.lock().write(Write::Bytes(offset, data.to_vec()))
    }
}
