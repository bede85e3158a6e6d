//! Streams that are sealed elsewhere: their views are sent here, made durable, and shown.
//!
//! Such a view is released data. The marker has nothing to say about it: an older one, from a backup, shows nothing that was
//! not shown before.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use dpsw::{Claim, Plan, WindowView};
use tokio::sync::watch;

use crate::config::check_name;
use crate::engine::change::check_room;
use crate::engine::commit::Committer;
use crate::engine::publish::{Published, work_out};
use crate::engine::registry::Shared;
use crate::error::{ChangeError, Unavailable, Unknown};
use crate::store::changes::Changes;
use crate::store::read::ReadError;
use crate::store::records::{Meta, StreamId, ViewRecord};
use crate::store::{Store, StoreError};

/// A stream that is sealed elsewhere.
#[derive(Debug)]
pub(crate) struct RemoteStream {
    pub(crate) id: StreamId,
    pub(crate) name: String,
    pub(crate) plan: Arc<Plan>,
    published: watch::Sender<Arc<Published>>,
}

/// A view that was sent: it promises something, and is worked out.
pub(crate) struct SentView {
    view: WindowView,
    bytes: Bytes,
}

impl SentView {
    pub(crate) fn read(bytes: Bytes, keys_max: usize) -> Result<Self, ChangeError> {
        let view = WindowView::from_bytes(&bytes)?;
        let keys = view.keys().map_or(0, dpsw::Keys::len);
        if keys_max < keys {
            return Err(ChangeError::ViewKeys { got: keys, most: keys_max });
        }
        if view.claim() == Claim::None {
            return Err(ChangeError::NoClaim);
        }
        work_out(&view);
        Ok(Self { view, bytes })
    }
}

impl RemoteStream {
    fn new(id: StreamId, name: &str, first: Published) -> Self {
        let plan = Arc::new(first.view.plan().clone());
        Self { id, name: name.to_owned(), plan, published: watch::Sender::new(Arc::new(first)) }
    }

    pub(crate) fn published(&self) -> Arc<Published> {
        Arc::clone(&self.published.borrow())
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Arc<Published>> {
        self.published.subscribe()
    }
}

impl Shared {
    /// Lets everybody see a view that is in the database.
    fn show(&self, id: StreamId, name: &str, view: WindowView) {
        let sealed_until = view.covered().end;
        let shown = Published { view, sealed_until, number: 0 };
        match self.remote.get(name) {
            Ok(stream) if stream.id == id => stream.published.send_modify(|published| {
                *published = Arc::new(Published { number: published.number + 1, ..shown });
            }),
            _ => self.remote.insert(name, Arc::new(RemoteStream::new(id, name, shown))),
        }
    }

    /// Shows the views that the database has, and no others.
    pub(crate) fn show_views_of(&self, store: &Store) -> Result<(), ReadError> {
        let mut names = BTreeSet::new();
        store.views(|id, ViewRecord { name, view }| {
            let view = WindowView::from_bytes(&view).map_err(|error| ReadError::Damaged {
                what: format!("the view of stream {name:?}"),
                reason: error.to_string(),
            })?;
            work_out(&view);
            self.show(id, &name, view);
            names.insert(name);
            Ok(())
        })?;
        for stream in self.remote.all() {
            if !names.contains(&stream.name) {
                self.remote.remove(&stream.name);
            }
        }
        Ok(())
    }
}

impl Committer {
    /// Makes a view durable and shows it, unless it is the one that is shown.
    pub(crate) fn put_view(&mut self, name: &str, sent: SentView, may_make: bool) -> Result<(), ChangeError> {
        if self.shared.streams.get(name).is_ok() {
            return Err(ChangeError::CountedHere(name.to_owned()));
        }
        self.ensure_open()?;
        let id = match self.shared.remote.get(name) {
            Ok(before) if self.kept(before.id)?.view == sent.bytes => return Ok(()),
            Ok(before) => {
                sent.view.check_succeeds(&before.published().view)?;
                before.id
            }
            Err(_) if may_make => {
                check_name(name)?;
                check_room(&self.shared)?;
                self.meta.next_stream
            }
            Err(_) => return Err(Unknown { what: "stream", name: name.to_owned() }.into()),
        };
        let SentView { view, bytes } = sent;
        let record = ViewRecord { name: name.to_owned(), view: bytes };
        let meta = Meta { next_stream: self.meta.next_stream.max(StreamId(id.0 + 1)), ..self.meta };
        self.make(meta, Changes { views: vec![(id, &record)], ..Changes::default() })?;
        let kept = self.store.view(id);
        if !kept.is_ok_and(|kept| kept == record) {
            let error = StoreError::new("what was read back is not what was committed").unconfirmed();
            return Err(self.fail(&error).into());
        }
        self.shared.show(id, name, view);
        Ok(())
    }

    fn kept(&mut self, id: StreamId) -> Result<ViewRecord, Unavailable> {
        self.store.view(id).map_err(|error| self.fail(&StoreError::new(error.to_string())))
    }

    /// Forgets a stream that is sealed elsewhere; whether there was one.
    pub(crate) fn delete_remote(&mut self, name: &str) -> Result<bool, ChangeError> {
        let Ok(stream) = self.shared.remote.get(name) else { return Ok(false) };
        self.make(self.meta, Changes { ended: vec![stream.id], ..Changes::default() })?;
        self.shared.remote.remove(name);
        Ok(true)
    }
}
