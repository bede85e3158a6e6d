//! What every broker must be able to do.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::broker::access::BrokerAccess;
use crate::broker::claim::Claim;
use crate::broker::error::BrokerError;
use crate::config::{BrokerConfig, BrokerKind};

/// One record of a topic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'r> {
    pub(crate) partition: u32,
    pub(crate) offset: u128,
    /// When it came to the broker, in milliseconds since 1970, as the broker says.
    pub(crate) time_ms: u64,
    /// Nothing where the record has no value.
    pub(crate) value: Option<&'r [u8]>,
}

/// The point at which reading began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// Right after what was taken.
    After,
    /// Later, perhaps: the broker no longer has the record that was taken last, nor perhaps some after it.
    Later,
}

/// Takes a record, and says whether more are wanted.
pub(crate) type Take<'t> = &'t mut dyn FnMut(Record<'_>) -> bool;

/// The last record of each partition.
pub(crate) type Offsets = BTreeMap<u32, u128>;

/// A connection to a broker that reads one topic. Whatever fails, it is dropped and made anew.
pub(crate) trait Connector {
    /// Who reads the topic, as the broker has it.
    fn claim(&mut self) -> Result<Option<Claim>, BrokerError>;

    /// Makes a new claim if the broker still has the old one. Whether it did.
    fn replace_claim(&mut self, old: Option<&Claim>, new: &Claim) -> Result<bool, BrokerError>;

    /// The last record that each partition has now.
    fn ends(&mut self) -> Result<Offsets, BrokerError>;

    /// Begins to read after these; partitions that are not named, with their oldest record.
    fn begin(&mut self, taken: &Offsets) -> Result<Begun, BrokerError>;

    /// Hands over records in the order of their offsets, at most so many, until there is no more at once or `take` wants no more.
    /// Waits so long for the first.
    fn poll(&mut self, most: usize, patience: Duration, take: Take<'_>) -> Result<(), BrokerError>;

    /// Whether the topic has partitions that it had not.
    fn has_grown(&mut self) -> Result<bool, BrokerError> {
        Ok(false)
    }
}

/// Connects to a broker, with a password and TLS where the operator has named them.
#[cfg_attr(
    not(any(feature = "kafka", feature = "nats", feature = "redis")),
    expect(unused_variables, reason = "no broker is built")
)]
pub(crate) fn connect(
    config: &BrokerConfig,
    access: Option<&BrokerAccess>,
) -> Result<Box<dyn Connector>, BrokerError> {
    match config.kind {
        #[cfg(feature = "kafka")]
        BrokerKind::Kafka => Ok(Box::new(crate::broker::kafka::Kafka::connect(config, access)?)),
        #[cfg(feature = "nats")]
        BrokerKind::Nats => Ok(Box::new(crate::broker::nats::Nats::connect(config, access)?)),
        #[cfg(feature = "redis")]
        BrokerKind::Redis => Ok(Box::new(crate::broker::redis::Redis::connect(config, access)?)),
        #[allow(unreachable_patterns, reason = "where all brokers are built, none is left")]
        kind => Err(BrokerError::NotBuilt(kind.name())),
    }
}
