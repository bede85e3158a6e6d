//! Between durable and visible: the marker moves on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use dpsw::WindowView;
use dpsw_durable::cipher::Cipher;
use dpsw_durable::disk::Disk;
use dpsw_durable::marker::{Generation, Marker, MarkerError};

use crate::engine::commit::Request;
use crate::engine::gauge::Busy;
use crate::engine::health::Ailment;
use crate::engine::publish::Shown;
use crate::engine::registry::{Shared, Stream};
use crate::store::records::StreamId;

/// A marker that could not be moved is tried again after this long.
const PAUSE: Duration = Duration::from_millis(200);

/// The news of a commit: checkpoints that may be shown once the marker has moved.
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
        let from = std::mem::replace(&mut self.marker.generation, generation);
        self.marker.shown.retain(|stream, _| streams.contains(&StreamId(*stream)));
        for committed in &states {
            self.marker.shown.insert(committed.stream.id.0, committed.sealed_until);
        }
        if !self.move_marker(from) {
            return false;
        }
        for committed in states {
            self.show(committed);
        }
        self.committer.send(Request::Released { generation, busy }).is_ok()
    }

    /// Tries until the marker is moved, or the engine stops.
    fn move_marker(&self, from: Generation) -> bool {
        while let Err(reason) = self.try_move(from) {
            let reason = format!("the marker cannot be moved: {reason}; nothing new is shown");
            self.shared.health.ail(Ailment::Marker, &reason);
            std::thread::sleep(PAUSE);
            if self.shared.is_stopped() {
                return false;
            }
        }
        self.shared.health.heal(Ailment::Marker);
        true
    }

    fn try_move(&self, from: Generation) -> Result<(), String> {
        self.marker.move_on(&*self.disk, &self.cipher, from).map_err(|error| match error {
            MarkerError::Moved => {
                "it is not where this service left it; is there another one on a copy of the data?".to_owned()
            }
            error => error.to_string(),
        })
    }

    fn show(&self, committed: Committed) {
        let Committed { stream, sealed_until, view, busy } = committed;
        stream.show_until(sealed_until);
        // A publisher that is gone means that the engine stops.
        let _ = self.publisher.send(Shown { stream, view, sealed_until, busy });
    }
}
