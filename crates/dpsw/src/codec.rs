//! Framed bytes: a magic word, a version, a body and a checksum. Every length is checked against what is left before
//! anything is allocated.

use std::sync::Arc;

use crate::error::SnapshotError;
use crate::item::{Discovery, Domain, Item, Keys, Kind, Strings, Tracking};
use crate::privacy::{Delta, Epsilon};
use crate::ratio::Ratio;
use crate::settings::{
    Clock, CounterLayout, Grid, Method, NoiseChoice, PaperMethod, Settings, Shares, SubstreamLen, TimeWindow,
    TunedMethod, Unit, Window,
};

/// Bytes of the magic word, the version and the checksum.
const MAGIC_LEN: usize = 8;
const VERSION_LEN: usize = 2;
const CHECKSUM_LEN: usize = 4;

/// Collects the bytes of a frame. Integers are little endian.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new(magic: &[u8; MAGIC_LEN], version: u16) -> Self {
        let mut writer = Self(magic.to_vec());
        writer.0.extend_from_slice(&version.to_le_bytes());
        writer
    }

    /// The frame with its checksum.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let checksum = crc32fast::hash(&self.0);
        self.0.extend_from_slice(&checksum.to_le_bytes());
        self.0
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn len(&mut self, value: usize) {
        self.u64(value as u64);
    }

    pub(crate) fn option(&mut self, value: Option<u64>) {
        self.u8(value.is_some().into());
        self.u64(value.unwrap_or(0));
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.len(value.len());
        self.0.extend_from_slice(value);
    }

    pub(crate) fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Integer(value) => self.u64(value),
            Item::Bytes(bytes) => self.bytes(bytes),
        }
    }

    /// A list of keys whose kind is known.
    pub(crate) fn keys(&mut self, keys: &Keys) {
        self.len(keys.len());
        (0..keys.len()).for_each(|index| self.item(keys.get(index)));
    }

    pub(crate) fn cells(&mut self, cells: &[i32]) {
        self.0.extend(cells.iter().flat_map(|cell| cell.to_le_bytes()));
    }

    fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    fn ratio(&mut self, value: Ratio) {
        self.u64(value.numerator());
        self.u64(value.denominator());
    }

    pub(crate) fn settings(&mut self, settings: &Settings) {
        self.window(settings.window);
        match settings.unit {
            Unit::ReplaceOne => self.u8(0),
            Unit::AddRemove => self.u8(1),
            Unit::Users { per_substream } => {
                self.u8(2);
                self.u32(per_substream);
            }
        }
        self.ratio(settings.epsilon.ratio());
        self.u8(settings.delta.is_some().into());
        self.f64(settings.delta.map_or(0.0, Delta::get));
        self.domain(&settings.domain);
        self.method(&settings.method);
        self.u32(settings.retention);
    }

    fn window(&mut self, window: Window) {
        match window {
            Window::Items(len) => {
                self.u8(0);
                self.u64(len);
            }
            Window::Time(TimeWindow { len, lateness, clock, expected_items }) => {
                self.u8(match clock {
                    Clock::Caller => 1,
                    Clock::Events => 2,
                });
                for value in [len, lateness, expected_items] {
                    self.u64(value);
                }
            }
        }
    }

    fn domain(&mut self, domain: &Domain) {
        match domain {
            Domain::Asked(Kind::Integers) => self.u8(0),
            Domain::Asked(Kind::Bytes) => self.u8(1),
            Domain::Public(Keys::Range(end)) => {
                self.u8(2);
                self.u64(*end);
            }
            Domain::Public(Keys::Integers(keys)) => {
                self.u8(3);
                self.len(keys.len());
                keys.iter().for_each(|&key| self.u64(key));
            }
            Domain::Public(Keys::Bytes(keys)) => {
                self.u8(4);
                self.len(keys.len());
                (0..keys.len()).for_each(|index| self.bytes(keys.get(index)));
            }
            Domain::Discovered(discovery) => self.discovery(*discovery),
        }
    }

    fn discovery(&mut self, discovery: Discovery) {
        let Discovery { kind, share, epoch, tracking, key_len_max } = discovery;
        self.u8(match kind {
            Kind::Integers => 5,
            Kind::Bytes => 6,
        });
        self.ratio(share);
        self.u64(epoch);
        self.option(match tracking {
            Tracking::Exact => None,
            Tracking::Summary { keys } => Some(keys),
        });
        self.u32(key_len_max);
    }

    fn method(&mut self, method: &Method) {
        match method {
            Method::Paper(PaperMethod { substream, alpha, grid, counters, shares }) => {
                self.u8(0);
                self.substream_len(*substream);
                self.ratio(*alpha);
                self.option(match grid {
                    Grid::Items => None,
                    Grid::Units(units) => Some(*units),
                });
                self.counters(*counters);
                self.shares(shares);
            }
            Method::Tuned(TunedMethod { substreams, counters, noise }) => {
                self.u8(1);
                self.u64(*substreams);
                self.counters(*counters);
                self.u8(match noise {
                    NoiseChoice::Laplace => 0,
                    NoiseChoice::Gaussian => 1,
                });
            }
        }
    }

    fn substream_len(&mut self, len: SubstreamLen) {
        let (tag, value) = match len {
            SubstreamLen::Items(items) => (0, items),
            SubstreamLen::PerWindow(count) => (1, count),
            SubstreamLen::Exponent(beta) => (2, beta.to_bits()),
        };
        self.u8(tag);
        self.u64(value);
    }

    fn counters(&mut self, layout: CounterLayout) {
        let (tag, first, second) = match layout {
            CounterLayout::Hashed { rows, columns } => (0, rows.into(), columns.into()),
            CounterLayout::Accuracy { relative_error, failure_probability } => {
                (1, relative_error.to_bits(), failure_probability.to_bits())
            }
            CounterLayout::Identity => (2, 0, 0),
        };
        self.u8(tag);
        self.u64(first);
        self.u64(second);
    }

    fn shares(&mut self, shares: &Shares) {
        match shares {
            Shares::Printed => self.u8(0),
            Shares::Explicit(list) => {
                self.u8(1);
                self.len(list.len());
                list.iter().for_each(|&share| self.ratio(share));
            }
        }
    }
}

/// Reads the body of a frame whose magic word, version and checksum are right.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], magic: &[u8; MAGIC_LEN], version: u16) -> Result<Self, SnapshotError> {
        if bytes.get(..MAGIC_LEN) != Some(magic.as_slice()) {
            return Err(SnapshotError::Foreign);
        }
        let body_start = MAGIC_LEN + VERSION_LEN;
        let body_end = bytes.len().checked_sub(CHECKSUM_LEN).filter(|&end| body_start <= end);
        let body_end = body_end.ok_or(SnapshotError::Truncated)?;
        let found = u16::from_le_bytes([bytes[MAGIC_LEN], bytes[MAGIC_LEN + 1]]);
        if found != version {
            return Err(SnapshotError::Version { found, known: version });
        }
        let (framed, checksum) = bytes.split_at(body_end);
        if crc32fast::hash(framed).to_le_bytes() != checksum {
            return Err(SnapshotError::Checksum);
        }
        Ok(Self(&framed[body_start..]))
    }

    /// Nothing may be left over.
    pub(crate) fn finish(self) -> Result<(), SnapshotError> {
        if self.0.is_empty() { Ok(()) } else { Err(SnapshotError::Invalid("there are bytes after its end")) }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], SnapshotError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(SnapshotError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        Ok(self.take(N)?.try_into().expect("exactly N bytes were taken"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, SnapshotError> {
        self.array::<1>().map(|[value]| value)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, SnapshotError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, SnapshotError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of elements of at least `element` bytes each, which are all still there.
    pub(crate) fn len(&mut self, element: usize) -> Result<usize, SnapshotError> {
        let len = usize::try_from(self.u64()?).map_err(|_| SnapshotError::Truncated)?;
        let needed = len.checked_mul(element).ok_or(SnapshotError::Truncated)?;
        if needed <= self.0.len() { Ok(len) } else { Err(SnapshotError::Truncated) }
    }

    pub(crate) fn option(&mut self) -> Result<Option<u64>, SnapshotError> {
        let is_some = self.flag()?;
        let value = self.u64()?;
        Ok(is_some.then_some(value))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, SnapshotError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(SnapshotError::Invalid("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], SnapshotError> {
        let len = self.len(1)?;
        self.take(len)
    }

    pub(crate) fn item(&mut self, kind: Kind) -> Result<Item<'a>, SnapshotError> {
        Ok(match kind {
            Kind::Integers => Item::Integer(self.u64()?),
            Kind::Bytes => Item::Bytes(self.bytes()?),
        })
    }

    /// A list of keys of this kind.
    pub(crate) fn keys(&mut self, kind: Kind) -> Result<Vec<Item<'a>>, SnapshotError> {
        let len = self.len(8)?;
        (0..len).map(|_| self.item(kind)).collect()
    }

    pub(crate) fn cells(&mut self, count: usize) -> Result<Vec<i32>, SnapshotError> {
        let bytes = self.take(count.checked_mul(4).ok_or(SnapshotError::Truncated)?)?;
        let cell = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("chunks of four bytes"));
        Ok(bytes.chunks_exact(4).map(cell).collect())
    }

    fn f64(&mut self) -> Result<f64, SnapshotError> {
        self.u64().map(f64::from_bits)
    }

    fn ratio(&mut self) -> Result<Ratio, SnapshotError> {
        let (numerator, denominator) = (self.u64()?, self.u64()?);
        Ratio::new(numerator, denominator).map_err(|_| SnapshotError::Invalid("a denominator is zero"))
    }

    pub(crate) fn settings(&mut self) -> Result<Settings, SnapshotError> {
        let window = self.window()?;
        let unit = match self.u8()? {
            0 => Unit::ReplaceOne,
            1 => Unit::AddRemove,
            2 => Unit::Users { per_substream: self.u32()? },
            _ => return Err(SnapshotError::Invalid("its unit is unknown")),
        };
        let epsilon = Epsilon::from_ratio(self.ratio()?)
            .map_err(|_| SnapshotError::Invalid("epsilon is out of range"))?;
        let has_delta = self.flag()?;
        let delta = self.f64()?;
        let delta = has_delta.then(|| Delta::new(delta)).transpose();
        let delta = delta.map_err(|_| SnapshotError::Invalid("delta is out of range"))?;
        let (domain, method, retention) = (self.domain()?, self.method()?, self.u32()?);
        Ok(Settings { window, unit, epsilon, delta, domain, method, retention })
    }

    fn window(&mut self) -> Result<Window, SnapshotError> {
        let tag = self.u8()?;
        let len = self.u64()?;
        let clock = match tag {
            0 => return Ok(Window::Items(len)),
            1 => Clock::Caller,
            2 => Clock::Events,
            _ => return Err(SnapshotError::Invalid("its window is unknown")),
        };
        Ok(Window::Time(TimeWindow { len, lateness: self.u64()?, clock, expected_items: self.u64()? }))
    }

    fn domain(&mut self) -> Result<Domain, SnapshotError> {
        Ok(match self.u8()? {
            0 => Domain::Asked(Kind::Integers),
            1 => Domain::Asked(Kind::Bytes),
            2 => Domain::Public(Keys::Range(self.u64()?)),
            3 => {
                let len = self.len(8)?;
                Domain::Public(Keys::Integers((0..len).map(|_| self.u64()).collect::<Result<_, _>>()?))
            }
            4 => {
                let len = self.len(8)?;
                let strings = (0..len).map(|_| self.bytes()).collect::<Result<Strings, _>>()?;
                Domain::Public(Keys::Bytes(Arc::new(strings)))
            }
            5 => Domain::Discovered(self.discovery(Kind::Integers)?),
            6 => Domain::Discovered(self.discovery(Kind::Bytes)?),
            _ => return Err(SnapshotError::Invalid("its domain is unknown")),
        })
    }

    fn discovery(&mut self, kind: Kind) -> Result<Discovery, SnapshotError> {
        Ok(Discovery {
            kind,
            share: self.ratio()?,
            epoch: self.u64()?,
            tracking: self.option()?.map_or(Tracking::Exact, |keys| Tracking::Summary { keys }),
            key_len_max: self.u32()?,
        })
    }

    fn method(&mut self) -> Result<Method, SnapshotError> {
        Ok(match self.u8()? {
            0 => Method::Paper(PaperMethod {
                substream: self.substream_len()?,
                alpha: self.ratio()?,
                grid: self.option()?.map_or(Grid::Items, Grid::Units),
                counters: self.counters()?,
                shares: self.shares()?,
            }),
            1 => Method::Tuned(TunedMethod {
                substreams: self.u64()?,
                counters: self.counters()?,
                noise: match self.u8()? {
                    0 => NoiseChoice::Laplace,
                    1 => NoiseChoice::Gaussian,
                    _ => return Err(SnapshotError::Invalid("its noise is unknown")),
                },
            }),
            _ => return Err(SnapshotError::Invalid("its method is unknown")),
        })
    }

    fn substream_len(&mut self) -> Result<SubstreamLen, SnapshotError> {
        let (tag, value) = (self.u8()?, self.u64()?);
        Ok(match tag {
            0 => SubstreamLen::Items(value),
            1 => SubstreamLen::PerWindow(value),
            2 => SubstreamLen::Exponent(f64::from_bits(value)),
            _ => return Err(SnapshotError::Invalid("its substream length is unknown")),
        })
    }

    fn counters(&mut self) -> Result<CounterLayout, SnapshotError> {
        let (tag, first, second) = (self.u8()?, self.u64()?, self.u64()?);
        let narrow =
            |value: u64| u32::try_from(value).map_err(|_| SnapshotError::Invalid("its shape is too large"));
        Ok(match tag {
            0 => CounterLayout::Hashed { rows: narrow(first)?, columns: narrow(second)? },
            1 => CounterLayout::Accuracy {
                relative_error: f64::from_bits(first),
                failure_probability: f64::from_bits(second),
            },
            2 => CounterLayout::Identity,
            _ => return Err(SnapshotError::Invalid("its counters are unknown")),
        })
    }

    fn shares(&mut self) -> Result<Shares, SnapshotError> {
        if !self.flag()? {
            return Ok(Shares::Printed);
        }
        let len = self.len(16)?;
        Ok(Shares::Explicit((0..len).map(|_| self.ratio()).collect::<Result<_, _>>()?))
    }
}
