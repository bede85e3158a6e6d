//! Settings ↔ bytes.

use std::sync::Arc;

use crate::bytes::codec::{Reader, Writer};
use crate::error::SnapshotError;
use crate::item::domain::{Domain, SearchCounts, SearchSettings};
use crate::item::keys::{Keys, Strings};
use crate::item::value::Kind;
use crate::plan::settings::{
    Clock, CounterLayout, Grid, Method, NoiseChoice, PaperMethod, Settings, Shares, SubstreamLen, TimeWindow,
    TunedMethod, Unit, Window,
};
use crate::plan::structure::Plan;
use crate::privacy::parameters::{Delta, Epsilon};

impl Writer {
    /// The settings of a plan, from which it is made again.
    pub(crate) fn plan(&mut self, plan: &Plan) {
        let settings = plan.settings();
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
        self.method(plan.method());
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
                    Clock::CallerByItem => 3,
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
            Domain::Found(search) => self.search(*search),
        }
    }

    fn search(&mut self, search: SearchSettings) {
        let SearchSettings { kind, share, search_len, counting, key_len_max } = search;
        self.u8(match kind {
            Kind::Integers => 5,
            Kind::Bytes => 6,
        });
        self.ratio(share.expect("a plan has chosen the share"));
        self.u64(search_len.expect("a plan has chosen the search"));
        self.option(match counting {
            SearchCounts::Exact => None,
            SearchCounts::Summary { keys } => Some(keys),
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
            Method::Tuned(TunedMethod { substreams, counters, noise, levels, pinned }) => {
                self.u8(1);
                self.u64(*substreams);
                self.counters(*counters);
                let number = NoiseChoice::all().position(|known| known == *noise);
                self.u8(number.expect("all laws are numbered") as u8);
                self.u32(*levels);
                self.u32(*pinned);
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

impl Reader<'_> {
    pub(crate) fn settings(&mut self) -> Result<Settings, SnapshotError> {
        let window = self.window()?;
        let unit = match self.u8()? {
            0 => Unit::ReplaceOne,
            1 => Unit::AddRemove,
            2 => Unit::Users { per_substream: self.u32()? },
            _ => return Err(SnapshotError::invalid("its unit is unknown")),
        };
        let epsilon = Epsilon::from_ratio(self.ratio()?)
            .map_err(|_| SnapshotError::invalid("epsilon is out of range"))?;
        let has_delta = self.flag()?;
        let delta = self.f64()?;
        let delta = has_delta.then(|| Delta::new(delta)).transpose();
        let delta = delta.map_err(|_| SnapshotError::invalid("delta is out of range"))?;
        let (domain, method, retention) = (self.domain()?, self.method()?, self.u32()?);
        Ok(Settings { window, unit, epsilon, delta, domain, method: Some(method), retention })
    }

    fn window(&mut self) -> Result<Window, SnapshotError> {
        let tag = self.u8()?;
        let len = self.u64()?;
        let clock = match tag {
            0 => return Ok(Window::Items(len)),
            1 => Clock::Caller,
            2 => Clock::Events,
            3 => Clock::CallerByItem,
            _ => return Err(SnapshotError::invalid("its window is unknown")),
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
            5 => Domain::Found(self.search(Kind::Integers)?),
            6 => Domain::Found(self.search(Kind::Bytes)?),
            _ => return Err(SnapshotError::invalid("its domain is unknown")),
        })
    }

    fn search(&mut self, kind: Kind) -> Result<SearchSettings, SnapshotError> {
        Ok(SearchSettings {
            kind,
            share: Some(self.ratio()?),
            search_len: Some(self.u64()?),
            counting: self.option()?.map_or(SearchCounts::Exact, |keys| SearchCounts::Summary { keys }),
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
                noise: self.noise()?,
                levels: self.u32()?,
                pinned: self.u32()?,
            }),
            _ => return Err(SnapshotError::invalid("its method is unknown")),
        })
    }

    fn noise(&mut self) -> Result<NoiseChoice, SnapshotError> {
        let number = usize::from(self.u8()?);
        NoiseChoice::all().nth(number).ok_or(SnapshotError::invalid("its noise is unknown"))
    }

    fn substream_len(&mut self) -> Result<SubstreamLen, SnapshotError> {
        let (tag, value) = (self.u8()?, self.u64()?);
        Ok(match tag {
            0 => SubstreamLen::Items(value),
            1 => SubstreamLen::PerWindow(value),
            2 => SubstreamLen::Exponent(f64::from_bits(value)),
            _ => return Err(SnapshotError::invalid("its substream length is unknown")),
        })
    }

    fn counters(&mut self) -> Result<CounterLayout, SnapshotError> {
        let (tag, first, second) = (self.u8()?, self.u64()?, self.u64()?);
        let narrow =
            |value: u64| u32::try_from(value).map_err(|_| SnapshotError::invalid("its shape is too large"));
        Ok(match tag {
            0 => CounterLayout::Hashed { rows: narrow(first)?, columns: narrow(second)? },
            1 => CounterLayout::Accuracy {
                relative_error: f64::from_bits(first),
                failure_probability: f64::from_bits(second),
            },
            2 => CounterLayout::Identity,
            _ => return Err(SnapshotError::invalid("its counters are unknown")),
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
