//! When the database refuses: it is opened again, and what was not acknowledged is taken out.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::engine::commit::Committer;
use crate::engine::health::Ailment;
use crate::error::Unavailable;
use crate::store::StoreError;
use crate::store::changes::Changes;
use crate::store::read::Catalogue;

/// A database that refused is opened again after this long.
const RETRY: Duration = Duration::from_millis(200);

impl Committer {
    /// Notes that the database refused, and says what that means for what was to be made durable.
    pub(crate) fn fail(&mut self, error: &StoreError) -> Unavailable {
        let unavailable = self.store.refusal(error);
        self.shared.health.ail(Ailment::Storage, &unavailable.to_string());
        self.failed = Some((Instant::now(), unavailable.clone()));
        // It is taken out when the database is open again. Until then the service may be killed, and the next start finds it.
        if error.is_unconfirmed { Unavailable::Unconfirmed(error.reason.clone()) } else { unavailable }
    }

    /// Opens a database that refused before, if it is time to try, and takes out what was not acknowledged.
    pub(crate) fn ensure_open(&mut self) -> Result<(), Unavailable> {
        let Some((since, unavailable)) = &self.failed else { return Ok(()) };
        if since.elapsed() < RETRY {
            return Err(unavailable.clone());
        }
        self.recover()
            .inspect_err(|unavailable| self.failed = Some((Instant::now(), unavailable.clone())))?;
        self.failed = None;
        self.shared.health.heal(Ailment::Storage);
        Ok(())
    }

    fn recover(&mut self) -> Result<(), Unavailable> {
        self.store.reopen()?;
        let storage = |error: &dyn std::fmt::Display| Unavailable::Storage(error.to_string());
        let catalogue = self.store.catalogue().map_err(|error| storage(&error))?;
        if !self.agrees_with(&catalogue) {
            let lost = "a source or stream was made or deleted, and nobody was told".to_owned();
            return Err(Unavailable::Lost(lost));
        }
        let refused = self.sources.iter().map(|(id, state)| (*id, state.next)).collect();
        let brokered = self.sources.iter().filter(|(_, state)| state.source.config.broker.is_some());
        let positions = brokered.map(|(id, state)| (*id, &state.position)).collect();
        let senders = self.unconfirmed.clone();
        let changes = Changes { refused, positions, senders, ..Changes::default() };
        self.store.commit(&changes).map_err(|error| storage(&error))?;
        self.unconfirmed.clear();
        // A commit that was not confirmed may be there all the same: nothing of it was shown.
        let meta = self.store.meta().map_err(|error| storage(&error))?;
        self.meta = meta.ok_or_else(|| storage(&"the database is empty"))?;
        // The same with a view that was sent: it is there, so it is shown.
        self.shared.show_views_of(&self.store).map_err(|error| storage(&error))
    }

    /// Whether the database has the sources and streams that are counted.
    fn agrees_with(&self, catalogue: &Catalogue) -> bool {
        let sources = catalogue.sources.iter().filter(|(_, record)| !record.is_deleted).map(|(id, _)| *id);
        let streams = catalogue.streams.iter().map(|(id, _)| *id);
        sources.eq(self.sources.keys().copied())
            && streams.collect::<BTreeSet<_>>()
                == self.sources.values().flat_map(|state| state.streams().keys().copied()).collect()
    }
}
