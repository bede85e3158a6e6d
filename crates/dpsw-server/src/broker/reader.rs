//! Reads the topic of one source: from where the source stands, batch by batch, and again from there after any error.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use crate::broker::access::BrokerAccess;
use crate::broker::batch::Batch;
use crate::broker::claim::Claim;
use crate::broker::connector::{Begun, Connector, connect};
use crate::broker::error::BrokerError;
use crate::broker::values::Layout;
use crate::budget::Reservation;
use crate::config::BrokerConfig;
use crate::engine::Pending;
use crate::events::Events;
use crate::http::App;
use crate::store::position::{Position, Step};

/// After an error, the broker is asked again after this long.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a reader waits for a record before it looks around.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often a reader asks whether the topic is still its own.
const CLAIM_CHECK: Duration = Duration::from_secs(1);
/// How often a reader looks for new partitions.
const GROWTH_CHECK: Duration = Duration::from_secs(10);
const RECORDS_MAX: usize = 1 << 16;
/// The most bytes that the rows of a batch can take, if all are as long as they may be.
const BATCH_BYTES_MAX: usize = 16 << 20;
/// A reader that finds no memory for a batch looks again after this long.
const ROOM_PAUSE: Duration = Duration::from_millis(2);
/// The most batches on their way to the disk; beyond this nothing is read.
const PENDING_MAX: usize = 4;

/// How many records a batch has at most: so many that the longest allowed ones fit, whatever is in them.
fn records_max(events_max: usize, longest_row: usize) -> usize {
    RECORDS_MAX.min(events_max).min(BATCH_BYTES_MAX / longest_row).max(1)
}

/// The reader of one source's topic.
pub(crate) struct Reader {
    app: App,
    source: String,
    config: BrokerConfig,
    access: Option<BrokerAccess>,
}

impl Reader {
    pub(crate) fn new(app: App, source: String, config: BrokerConfig, access: Option<BrokerAccess>) -> Self {
        Self { app, source, config, access }
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Reads until the source has no streams or the service shuts down.
    pub(crate) fn run(self) {
        loop {
            match self.read() {
                Ok(never) => match never {},
                Err(BrokerError::Over) => break,
                Err(BrokerError::Grown) => {}
                Err(error) => {
                    self.app.engine.note_broker(&self.source, Some(error.to_string()));
                    std::thread::sleep(PAUSE);
                }
            }
            if self.app.is_closing() {
                break;
            }
        }
        self.app.engine.note_broker(&self.source, None);
    }

    fn read(&self) -> Result<Infallible, BrokerError> {
        let mut connector = connect(&self.config, self.access.as_ref())?;
        let claim = self.claim(&mut *connector)?;
        let mut position = self.app.engine.position(&self.source)?;
        if position.begins_at_end {
            let to = Position { taken: connector.ends()?, begins_at_end: false, term: position.term };
            position = self.step(position, to)?;
        }
        if connector.begin(&position.taken)? == Begun::Later {
            let source = &self.source;
            self.app.engine.notice(&format!(
                "the broker of source {source:?} no longer has the record that was read last: if it has deleted later ones as \
                well, they are not counted; it is read on with the oldest that it has"
            ));
        }
        self.app.engine.note_broker(&self.source, None);
        tracing::info!(source = self.source, "reads its broker");
        Session { reader: self, connector, claim, position, pending: VecDeque::new() }.read()
    }

    /// Claims the topic. The term is in the database first: killed in between, the next one may go on.
    fn claim(&self, connector: &mut dyn Connector) -> Result<Claim, BrokerError> {
        let engine = &self.app.engine;
        let found = connector.claim()?;
        let position = engine.position(&self.source)?;
        let claim = Claim::next(&engine.reader(&self.source), &position, found.as_ref())?;
        self.step(position.clone(), Position { term: claim.term, ..position })?;
        match connector.replace_claim(found.as_ref(), &claim)? {
            true => Ok(claim),
            false => Err(BrokerError::Failed("somebody else began to read at the same moment".to_owned())),
        }
    }

    /// Moves the source without events. Where it stands then.
    fn step(&self, from: Position, to: Position) -> Result<Position, BrokerError> {
        let step = Step { from, to: to.clone() };
        self.app.engine.ingest_read(&self.source, Events::default(), step)?.wait()?;
        Ok(to)
    }
}

/// One connection, until there is an error.
struct Session<'r> {
    reader: &'r Reader,
    connector: Box<dyn Connector>,
    claim: Claim,
    /// Where the source stands when all that is pending is durable.
    position: Position,
    pending: VecDeque<Pending>,
}

impl Session<'_> {
    /// What is on its way when there is an error has arrived, or not, before anybody asks where the source stands.
    fn read(mut self) -> Result<Infallible, BrokerError> {
        let ended = self.read_on();
        while let Some(first) = self.pending.pop_front() {
            // Why it did not arrive is the error, or follows from it.
            let _ = first.wait().map(|receipt| self.note(receipt.events));
        }
        ended
    }

    fn read_on(&mut self) -> Result<Infallible, BrokerError> {
        let mut claimed = Instant::now();
        let mut grown = Instant::now();
        loop {
            if CLAIM_CHECK <= claimed.elapsed() {
                self.check_claim()?;
                claimed = Instant::now();
            }
            if GROWTH_CHECK <= grown.elapsed() {
                self.check_growth()?;
                grown = Instant::now();
            }
            self.read_batch()?;
            self.collect()?;
        }
    }

    fn check_claim(&mut self) -> Result<(), BrokerError> {
        match self.connector.claim()? {
            Some(found) if found == self.claim => Ok(()),
            Some(found) if found.reader == self.claim.reader => Err(BrokerError::Fenced),
            Some(found) => Err(BrokerError::Taken(found.reader)),
            None => Err(BrokerError::Failed("it has forgotten who reads the topic".to_owned())),
        }
    }

    fn check_growth(&mut self) -> Result<(), BrokerError> {
        if self.connector.has_grown()? { Err(BrokerError::Grown) } else { Ok(()) }
    }

    fn read_batch(&mut self) -> Result<(), BrokerError> {
        let app = &self.reader.app;
        let wanted = app.engine.wanted(&self.reader.source)?;
        if wanted.columns.is_empty() || app.is_closing() {
            return Err(BrokerError::Over);
        }
        let layout = Layout::new(&self.reader.config, &wanted);
        let limits = app.limits.input();
        let mut batch = Batch::new(&layout, &wanted, limits, &self.position);
        let most = records_max(limits.events_max, wanted.longest_row(limits));
        let mut refused = None;
        self.connector.poll(most, PATIENCE, &mut |record| match batch.take(record) {
            Ok(wants_more) => wants_more,
            Err(error) => {
                refused = Some(error);
                false
            }
        })?;
        // A batch has room for as many records as are asked for. Were one refused, all would be read again.
        if let Some(error) = refused {
            return Err(error.into());
        }
        if batch.is_empty() {
            return Ok(());
        }
        let (events, step) = batch.finish()?;
        let room = self.wait_for_room(events.len() * wanted.longest_row(limits))?;
        let events = events.read_for(wanted.version).with_room(room);
        self.position = step.to.clone();
        self.pending.push_back(app.engine.ingest_read(&self.reader.source, events, step)?);
        Ok(())
    }

    /// Memory for a batch, by its number of rows and the longest ones that are allowed. Waits until there is some.
    fn wait_for_room(&self, bytes: usize) -> Result<Reservation, BrokerError> {
        let Reader { app, source, .. } = self.reader;
        // Names of sources have no blank, and ids of tokens neither.
        let holder = format!("source {source}");
        while !app.is_closing() {
            match app.budget.reserve(&holder, bytes) {
                Ok(room) => return Ok(room),
                Err(_) => std::thread::sleep(ROOM_PAUSE),
            }
        }
        Err(BrokerError::Over)
    }

    /// Notes what is durable, and waits where too much is on its way.
    fn collect(&mut self) -> Result<(), BrokerError> {
        while let Some(mut first) = self.pending.pop_front() {
            let receipt = match first.now() {
                Some(receipt) => receipt,
                None if PENDING_MAX <= self.pending.len() + 1 => first.wait(),
                None => {
                    self.pending.push_front(first);
                    break;
                }
            };
            self.note(receipt?.events);
        }
        Ok(())
    }

    /// So many events are durable, which is said where arrivals are public.
    fn note(&self, events: usize) {
        let Reader { app, source, .. } = self.reader;
        if app.engine.wanted(source).is_ok_and(|wanted| wanted.has_public_arrivals) {
            app.metrics.add_events(source, events);
        }
    }
}
