//! Work that takes long runs on threads of its own, a few at a time, so that quick questions never wait behind it.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;

use crate::http::problem::Problem;

/// Room for work on bodies, and apart from that for questions.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Unpack and read bodies.
    pub(crate) bodies: Room,
    /// Answer questions about windows that nobody asked about since the last seal.
    pub(crate) questions: Room,
}

/// Room for so much work at a time.
#[derive(Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Workers {
    /// As many of each as there are cores, and no more bodies than there is memory for.
    pub(crate) fn new(bodies_max: usize) -> Self {
        let cores = available_parallelism().map_or(1, NonZero::get);
        Self { bodies: Room::new(cores.min(bodies_max)), questions: Room::new(cores) }
    }
}

impl Room {
    fn new(at_a_time: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_a_time)))
    }

    /// Does the work when there is room. How many wait is bounded by how many requests are answered at a time.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(|_| Problem::internal())?;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.map_err(|_| Problem::internal())?
    }
}
