//! Partial counters: workers of a trusted cluster count their share of a time window's substreams; one sealer absorbs
//! the counts and adds the noise once.
//!
//! ```text
//! 0            8         10                                         len - 4
//! +------------+---------+------------------- ... ------------------+----------+
//! | "DPSWPART" | version | body                                     | checksum |
//! +------------+---------+------------------- ... ------------------+----------+
//!   8 bytes      u16                                                  CRC-32 of all before it
//!
//! body        plan u64  key u64    a hash of the settings, a word that follows from the stream's key
//!             substream u64
//!             parts                count, then of each:
//!               id                   source u64, batch u64, partition u64
//!               segments             count, then of each:
//!                 number u64
//!                 sparse u8  items u64
//!                 cells                if sparse is 0: i32 each
//!                                      if it is 1: how many are above zero u64, then of each
//!                                        the zeros before it and its count, both as varints
//! ```
//!
//! Integers are little endian, a count is a u64, and a varint has seven bits in each byte, the lowest first.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::bytes::codec::{Reader, Writer};
use crate::error::{PartialError, SnapshotError};
use crate::item::hash::StreamKey;
use crate::plan::structure::Plan;
use crate::secret::counters::Counters;

const MAGIC: &[u8; 8] = b"DPSWPART";
const VERSION: u16 = 1;
/// Counters that are written without their zeros grow when they are read: partial counters hold at most this many in all.
const CELLS_MAX: usize = 1 << 28;

/// The name of the events in partial counters: a partition of a batch of a source. If one is absorbed twice it counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartialId {
    /// The source of events.
    pub source: u64,
    /// The batch, for instance an offset range or an epoch of the engine.
    pub batch: u64,
    /// The partition of the batch.
    pub partition: u64,
}

/// Everything that partial counters must have in common with the sketch that absorbs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) plan: u64,
    pub(crate) key: u64,
}

impl Origin {
    pub(crate) fn new(plan: &Plan, key: &StreamKey) -> Self {
        let mut writer = Writer::new(MAGIC, VERSION);
        writer.put_plan(plan);
        // A hash stands for the settings, as a list of keys may be long.
        Self { plan: xxh3_64(&writer.finish()), key: key.check_word() }
    }
}

/// Exact counts of one substream, **secret**: their bytes stay inside the trusted cluster. Not `Clone`.
///
/// Merged counters stay apart by id, so that leaving out an id which was absorbed before leaves out nothing else.
pub struct PartialCounters {
    pub(crate) origin: Origin,
    pub(crate) substream: u64,
    pub(crate) parts: BTreeMap<PartialId, Segments>,
}

/// The counters of a substream, by segment; those without an event are left out.
pub(crate) type Segments = BTreeMap<usize, Counters>;

impl std::fmt::Debug for PartialCounters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PartialCounters(substream {})", self.substream)
    }
}

impl PartialCounters {
    /// The substream whose events they hold.
    #[must_use]
    pub fn substream(&self) -> u64 {
        self.substream
    }

    /// Adds what another worker, batch or partition counted in the same substream.
    ///
    /// # Errors
    /// Plan, stream key or substream differ, or an id is in both; nothing is changed then.
    pub fn merge(&mut self, other: Self) -> Result<(), PartialError> {
        self.origin.check_equal(other.origin)?;
        if self.substream != other.substream {
            return Err(PartialError::Substream(self.substream, other.substream));
        }
        // A part that came in twice would count twice (PRIVACY.md: rule 11).
        if let Some(id) = other.parts.keys().find(|id| self.parts.contains_key(id)) {
            return Err(id.duplicate_error());
        }
        self.parts.extend(other.parts);
        Ok(())
    }

    /// Which events they hold, ascending.
    pub fn ids(&self) -> impl Iterator<Item = PartialId> {
        self.parts.keys().copied()
    }

    /// The counts as **secret** bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(MAGIC, VERSION);
        for word in [self.origin.plan, self.origin.key, self.substream] {
            writer.put_u64(word);
        }
        writer.put_len(self.parts.len());
        for (id, segments) in &self.parts {
            id.write_to(&mut writer);
            writer.put_len(segments.len());
            for (segment, counters) in segments {
                writer.put_len(*segment);
                counters.write_short(&mut writer);
            }
        }
        writer.finish()
    }

    /// The counts that these bytes were made of, for a sketch or worker of this plan.
    ///
    /// # Errors
    /// The bytes are no partial counters, have another version, are damaged, or do not fit the plan.
    pub fn from_bytes(bytes: &[u8], plan: &Plan) -> Result<Self, SnapshotError> {
        let mut reader = Reader::new(bytes, MAGIC, VERSION)?;
        let origin = Origin { plan: reader.read_u64()?, key: reader.read_u64()? };
        let substream = reader.read_u64()?;
        let count = reader.read_len(PartialId::LEN)?;
        let mut parts = BTreeMap::new();
        // Zeros are not written, so few bytes can ask for many arrays: they are counted before they are made.
        let mut arrays_max = CELLS_MAX / plan.shape().cells().max(1);
        for _ in 0..count {
            let id = PartialId::read_from(&mut reader)?;
            let segments = read_segments(&mut reader, plan, arrays_max)?;
            arrays_max -= segments.len();
            // Parts are told apart by their ids alone (PRIVACY.md: rule 11).
            if parts.insert(id, segments).is_some() {
                return Err(SnapshotError::invalid("an id occurs twice"));
            }
        }
        reader.finish()?;
        if parts.is_empty() {
            return Err(SnapshotError::invalid("it has no id"));
        }
        Ok(Self { origin, substream, parts })
    }
}

fn read_segments(reader: &mut Reader<'_>, plan: &Plan, arrays_max: usize) -> Result<Segments, SnapshotError> {
    let mut segments = Segments::new();
    let count = reader.read_len(8)?;
    if arrays_max < count {
        return Err(SnapshotError::invalid("it has too many counters"));
    }
    for _ in 0..count {
        let segment = reader.read_index(plan.boundaries().len(), "a segment is not in its plan")?;
        if segments.insert(segment, Counters::read_short(reader, plan.shape())?).is_some() {
            return Err(SnapshotError::invalid("a segment occurs twice"));
        }
    }
    Ok(segments)
}

impl Origin {
    pub(crate) fn check_equal(self, other: Self) -> Result<(), PartialError> {
        match (self.plan == other.plan, self.key == other.key) {
            (false, _) => Err(PartialError::Plan),
            (true, false) => Err(PartialError::Keys),
            (true, true) => Ok(()),
        }
    }
}

impl PartialId {
    /// The least of all ids.
    pub(crate) const FIRST: Self = Self { source: 0, batch: 0, partition: 0 };

    /// Bytes of an id.
    pub(crate) const LEN: usize = 24;

    pub(crate) fn write_to(self, writer: &mut Writer) {
        for word in [self.source, self.batch, self.partition] {
            writer.put_u64(word);
        }
    }

    pub(crate) fn read_from(reader: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        Ok(Self { source: reader.read_u64()?, batch: reader.read_u64()?, partition: reader.read_u64()? })
    }

    pub(crate) fn duplicate_error(self) -> PartialError {
        let Self { source, batch, partition } = self;
        PartialError::Duplicate { source_id: source, batch, partition }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::domain::Domain;
    use crate::item::keys::Keys;
    use crate::plan::settings::{
        Clock, Method, PaperMethod, Settings, SubstreamLen, TimeWindow, Unit, Window,
    };
    use crate::privacy::parameters::{Delta, Epsilon};

    fn plan(epsilon: f64) -> Plan {
        let time = TimeWindow { len: 100, lateness: 0, clock: Clock::Caller, expected_items: 1000 };
        Plan::new(Settings {
            window: Window::Time(time),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(epsilon).expect("in range"),
            delta: Delta::new(1e-9).ok(),
            domain: Domain::Public(Keys::Range(4)),
            method: Some(Method::Paper(PaperMethod {
                substream: SubstreamLen::PerWindow(4),
                ..PaperMethod::default()
            })),
            retention: 1,
        })
        .expect("a plan")
    }

    fn partial(plan: &Plan, key: u8, substream: u64, parts: &[(u64, usize)]) -> PartialCounters {
        let origin = Origin::new(plan, &StreamKey::from_bytes([key; 32]));
        let part = |&(batch, segment): &(u64, usize)| {
            let counters = Counters::new(plan.shape(), 0);
            (PartialId { source: 1, batch, partition: 2 }, Segments::from([(segment, counters)]))
        };
        PartialCounters { origin, substream, parts: parts.iter().map(part).collect() }
    }

    #[test]
    fn partial_counters_travel_as_bytes_and_those_that_do_not_fit_the_plan_are_refused() {
        let plan = plan(1.0);
        let last = plan.boundaries().len() - 1;
        let sent = partial(&plan, 1, 7, &[(3, 0), (4, last)]);
        let got = PartialCounters::from_bytes(&sent.to_bytes(), &plan).expect("partial counters");
        assert_eq!((got.substream(), got.origin), (7, sent.origin));
        assert!(got.ids().eq(sent.ids()));
        let segments = |partial: &PartialCounters| -> Vec<Vec<usize>> {
            partial.parts.values().map(|segments| segments.keys().copied().collect()).collect()
        };
        assert_eq!(segments(&got), [vec![0], vec![last]]);
        for wrong in [partial(&plan, 1, 7, &[(3, last + 1)]), partial(&plan, 1, 7, &[])] {
            assert!(PartialCounters::from_bytes(&wrong.to_bytes(), &plan).is_err());
        }
        assert_eq!(format!("{got:?}"), "PartialCounters(substream 7)");
    }

    #[test]
    fn only_counts_of_one_plan_key_and_substream_are_merged_and_no_id_twice() {
        let (here, elsewhere) = (plan(1.0), plan(2.0));
        let mut all = partial(&here, 1, 7, &[(3, 0)]);
        assert_eq!(all.merge(partial(&elsewhere, 1, 7, &[(4, 0)])), Err(PartialError::Plan));
        assert_eq!(all.merge(partial(&here, 2, 7, &[(4, 0)])), Err(PartialError::Keys));
        assert_eq!(all.merge(partial(&here, 1, 8, &[(4, 0)])), Err(PartialError::Substream(7, 8)));
        let twice = PartialError::Duplicate { source_id: 1, batch: 3, partition: 2 };
        assert_eq!(all.merge(partial(&here, 1, 7, &[(3, 1), (4, 0)])), Err(twice));
        assert_eq!(all.ids().count(), 1);
        all.merge(partial(&here, 1, 7, &[(4, 0)])).expect("another batch");
        assert_eq!(all.ids().map(|id| id.batch).collect::<Vec<_>>(), [3, 4]);
    }
}
