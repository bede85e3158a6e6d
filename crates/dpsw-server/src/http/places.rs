//! Places for connections: so many in all, and a fair part for each address.
//!
//! A connection on which nothing is being answered keeps nobody out: when there is no place for a new one, the one that has been quiet
//! the longest is closed. And it is closed anyway when it has been quiet for as long as a client may take to begin.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

use crate::budget::{Budget, Reservation};
use crate::sync::LockAnyway;

/// All connections.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    budget: Budget,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    /// Requests that are being answered.
    answering: usize,
    /// Since when none is.
    quiet_since: Instant,
    close: Arc<Notify>,
    place: Option<Reservation>,
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    id: u64,
    close: Arc<Notify>,
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub(crate) struct Answering {
    places: Places,
    id: u64,
}

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Shared { budget: Budget::new(most), open: Mutex::default() }))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock_anyway()
    }

    /// A place for a connection from this address, perhaps that of a quiet one.
    pub(crate) fn take(&self, address: IpAddr) -> Option<Place> {
        let mut open = self.open();
        let place = self.reserve(address).or_else(|| {
            // Its own quiet ones first: an address that has its part cannot take that of others.
            open.close_quiet(|entry| entry.address == address);
            self.reserve(address)
        });
        // Then one of others, for an address that has none: no address empties the places of all.
        let place = place.or_else(|| {
            let has_places = |entry: &Entry| entry.address == address && entry.place.is_some();
            if !open.connections.values().any(has_places) {
                open.close_quiet(|_| true);
            }
            self.reserve(address)
        })?;
        let id = open.next;
        let close = Arc::new(Notify::new());
        open.next += 1;
        let entry = Entry {
            address,
            answering: 0,
            quiet_since: Instant::now(),
            close: Arc::clone(&close),
            place: Some(place),
        };
        open.connections.insert(id, entry);
        Some(Place { places: self.clone(), id, close })
    }

    fn reserve(&self, address: IpAddr) -> Option<Reservation> {
        self.0.budget.reserve(&address.to_string(), 1).ok()
    }
}

impl Open {
    /// Tells the connection to end that has been quiet the longest, and gives its place away.
    fn close_quiet(&mut self, is_meant: impl Fn(&Entry) -> bool) {
        let quiet =
            self.connections.values_mut().filter(|entry| entry.answering == 0 && entry.place.is_some());
        if let Some(entry) = quiet.filter(|entry| is_meant(entry)).min_by_key(|entry| entry.quiet_since) {
            entry.place = None;
            entry.close.notify_one();
        }
    }
}

impl Place {
    pub(crate) fn answering(&self) -> Answering {
        if let Some(entry) = self.places.open().connections.get_mut(&self.id) {
            entry.answering += 1;
        }
        Answering { places: self.places.clone(), id: self.id }
    }

    /// Ends when the connection should: it has been quiet for so long, or its place was given away.
    pub(crate) async fn quiet_for(&self, time: Duration) {
        loop {
            let left = self.left(time);
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = self.close.notified() => return,
            }
        }
    }

    /// How long it may still be quiet.
    fn left(&self, time: Duration) -> Duration {
        let open = self.places.open();
        let Some(entry) = open.connections.get(&self.id) else { return Duration::ZERO };
        if 0 < entry.answering { time } else { time.saturating_sub(entry.quiet_since.elapsed()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.open().connections.remove(&self.id);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(entry) = self.places.open().connections.get_mut(&self.id) {
            entry.answering -= 1;
            entry.quiet_since = Instant::now();
        }
    }
}

/// The body of a reply, with what is held until it is sent.
pub(crate) struct Held<T> {
    body: Body,
    _held: T,
}

impl<T: Send + Unpin + 'static> Held<T> {
    pub(crate) fn wrap(body: Body, held: T) -> Body {
        Body::new(Self { body, _held: held })
    }
}

impl<T: Unpin> HttpBody for Held<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

    #[tokio::test]
    async fn a_quiet_connection_keeps_nobody_out_and_one_that_is_answered_stays() {
        let places = Places::new(2);
        let first = places.take(HERE).expect("a place");
        let answering = first.answering();
        let second = places.take(THERE).expect("a place");
        // Both are taken, and one of them is quiet.
        assert!(places.take(HERE).is_none(), "it has its part");
        let third = places.take(THERE).expect("the quiet one goes");
        tokio::time::timeout(Duration::from_secs(60), second.quiet_for(Duration::from_secs(3600)))
            .await
            .expect("it was told");
        let _third = third.answering();
        assert!(places.take(THERE).is_none(), "both are answering");
        drop((second, answering));
        assert!(places.take(HERE).is_some(), "the first is quiet now");
    }

    #[tokio::test]
    async fn one_address_leaves_a_part_to_others() {
        let places = Places::new(8);
        let taken: Vec<(Place, Answering)> = std::iter::from_fn(|| {
            let place = places.take(HERE)?;
            let answering = place.answering();
            Some((place, answering))
        })
        .collect();
        assert_eq!(taken.len(), 4);
        assert!(places.take(THERE).is_some());
    }

    #[tokio::test]
    async fn a_connection_that_is_quiet_for_long_ends() {
        let places = Places::new(1);
        let place = places.take(HERE).expect("a place");
        let time = Duration::from_millis(20);
        let answering = place.answering();
        assert!(tokio::time::timeout(3 * time, place.quiet_for(time)).await.is_err(), "it is being answered");
        drop(answering);
        place.quiet_for(time).await;
    }
}
