//! Between durable and visible: the marker moves on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use dpsw::WindowView;

use crate::engine::commit::Request;
use crate::engine::gauge::Busy;
use crate::engine::health::Ailment;
use crate::engine::publish::Shown;
use crate::engine::registry::{Shared, Stream};
use crate::store::cipher::Cipher;
use crate::store::disk::Disk;
use crate::store::marker::Marker;
use crate::store::records::{Generation, StreamId};

/// A marker that could not be moved is tried again after this long.
const PAUSE: Duration = Duration::from_millis(200);

/// What a commit has new to show.
pub(crate) struct Release {
    pub(crate) generation: Generation,
    pub(crate) states: Vec<Committed>,
    /// All streams that there are.
    pub(crate) streams: Vec<StreamId>,
    pub(crate) busy: Busy,
}

/// A checkpoint that was committed and read back.
pub(crate) struct Committed {
    pub(crate) stream: Arc<Stream>,
    pub(crate) sealed_until: u64,
    pub(crate) view: WindowView,
    pub(crate) busy: Busy,
}

pub(crate) struct Releaser {
    pub(crate) shared: Arc<Shared>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) cipher: Cipher,
    pub(crate) marker: Marker,
    pub(crate) releases: Receiver<Release>,
    pub(crate) committer: Sender<Request>,
    pub(crate) publisher: Sender<Shown>,
}

impl Releaser {
    /// Works until the engine stops, or the committer is gone.
    pub(crate) fn run(mut self) {
        while let Ok(release) = self.releases.recv() {
            if self.shared.is_stopped() || !self.release(release) {
                return;
            }
        }
    }

    /// Whether the engine goes on.
    fn release(&mut self, release: Release) -> bool {
        let Release { generation, states, streams, busy } = release;
        let shown = |committed: &Committed| (committed.stream.id, committed.sealed_until);
        let mut until: BTreeMap<StreamId, u64> = std::mem::take(&mut self.marker.shown);
        until.retain(|stream, _| streams.contains(stream));
        until.extend(states.iter().map(shown));
        let from = self.marker.generation;
        self.marker = Marker { generation, shown: until, ..self.marker };
        if !self.move_marker(from) {
            return false;
        }
        states.into_iter().for_each(|committed| self.show(committed));
        self.committer.send(Request::Released { generation, busy }).is_ok()
    }

    /// Tries until the marker is moved, or the engine stops.
    fn move_marker(&self, from: Generation) -> bool {
        while let Err(reason) = self.try_move(from) {
            self.shared
                .vitals
                .ail(Ailment::Marker, &format!("the marker cannot be moved: {reason}; nothing new is shown"));
            std::thread::sleep(PAUSE);
            if self.shared.is_stopped() {
                return false;
            }
        }
        self.shared.vitals.heal(Ailment::Marker);
        true
    }

    /// The marker is moved from where this engine left it and from nowhere else: another owner would have moved it.
    fn try_move(&self, from: Generation) -> Result<(), String> {
        let bytes = self.disk.read_marker().map_err(|error| error.to_string())?;
        let marker = bytes.and_then(|bytes| Marker::from_bytes(&bytes, &self.cipher));
        if !marker.is_some_and(|marker| [from, self.marker.generation].contains(&marker.generation)) {
            return Err("it is not where this service left it; is there another one on a copy of the data?"
                .to_owned());
        }
        let bytes = self.marker.to_bytes(&self.cipher).map_err(|error| error.to_string())?;
        self.disk.write_marker(&bytes).map_err(|error| error.to_string())
    }

    fn show(&self, committed: Committed) {
        let Committed { stream, sealed_until, view, busy } = committed;
        stream.show_until(sealed_until);
        // A publisher that is gone means that the engine stops.
        let _ = self.publisher.send(Shown { stream, view, sealed_until, busy });
    }
}
