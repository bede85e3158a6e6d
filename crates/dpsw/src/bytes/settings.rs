//! Settings ↔ bytes, as they stand in views, in saved states and, hashed, in partial counters.
//!
//! ```text
//! window      u8: 0 items, 1 caller's clock, 2 events' clock, 3 caller's clock where items decide the order
//!             length u64; unless it counts items: lateness u64, expected items u64
//! unit        u8: 0 replace-one, 1 add/remove, 2 users: items of a user per substream u32
//! epsilon     ratio: numerator u64, denominator u64
//! delta       u8: 0 none, 1 some; f64 either way
//! domain      u8: 0 asked integers   1 asked bytes
//!                 2 range: end u64   3 integers: count, u64 each   4 byte strings: count, bytes each
//!                 5 found integers   6 found bytes: share ratio, substreams of a search u64, keys of a summary option,
//!                                                   longest key u32
//! method      u8: 0 paper: substream length (u8, u64), alpha ratio, grid option, counters, shares
//!                 1 tuned: substreams u64, counters, noise u8, levels u32, pinned keys u32
//! retention   u32
//!
//! counters    u8: 0 rows and columns, 1 relative error and failure probability, 2 identity; u64 twice either way
//! shares      u8: 0 as printed, 1 explicit: count, ratio each
//! ```

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
    pub(crate) fn put_plan(&mut self, plan: &Plan) {
        let settings = plan.settings();
        self.put_window(settings.window);
        match settings.unit {
            Unit::ReplaceOne => self.put_u8(0),
            Unit::AddRemove => self.put_u8(1),
            Unit::Users { per_substream } => {
                self.put_u8(2);
                self.put_u32(per_substream);
            }
        }
        self.put_ratio(settings.epsilon.ratio());
        self.put_u8(settings.delta.is_some().into());
        self.put_f64(settings.delta.map_or(0.0, Delta::get));
        self.put_domain(&settings.domain);
        // That of the plan, which has chosen what the settings left open: whoever reads it must not choose otherwise.
        self.put_method(plan.method());
        self.put_u32(settings.retention);
    }

    fn put_window(&mut self, window: Window) {
        match window {
            Window::Items(len) => {
                self.put_u8(0);
                self.put_u64(len);
            }
            Window::Time(TimeWindow { len, lateness, clock, expected_items }) => {
                self.put_u8(match clock {
                    Clock::Caller => 1,
                    Clock::Events => 2,
                    Clock::CallerByItem => 3,
                });
                for value in [len, lateness, expected_items] {
                    self.put_u64(value);
                }
            }
        }
    }

    fn put_domain(&mut self, domain: &Domain) {
        match domain {
            Domain::Asked(Kind::Integers) => self.put_u8(0),
            Domain::Asked(Kind::Bytes) => self.put_u8(1),
            Domain::Public(Keys::Range(end)) => {
                self.put_u8(2);
                self.put_u64(*end);
            }
            Domain::Public(Keys::Integers(keys)) => {
                self.put_u8(3);
                self.put_len(keys.len());
                keys.iter().for_each(|&key| self.put_u64(key));
            }
            Domain::Public(Keys::Bytes(keys)) => {
                self.put_u8(4);
                self.put_len(keys.len());
                (0..keys.len()).for_each(|index| self.put_bytes(keys.get(index)));
            }
            Domain::Found(search) => self.put_search(*search),
        }
    }

    fn put_search(&mut self, search: SearchSettings) {
        let SearchSettings { kind, share, search_len, counting, key_len_max } = search;
        self.put_u8(match kind {
            Kind::Integers => 5,
            Kind::Bytes => 6,
        });
        self.put_ratio(share.expect("a plan has chosen the share"));
        self.put_u64(search_len.expect("a plan has chosen the search"));
        self.put_option(match counting {
            SearchCounts::Exact => None,
            SearchCounts::Summary { keys } => Some(keys),
        });
        self.put_u32(key_len_max);
    }

    fn put_method(&mut self, method: &Method) {
        match method {
            Method::Paper(PaperMethod { substream, alpha, grid, counters, shares }) => {
                self.put_u8(0);
                self.put_substream_len(*substream);
                self.put_ratio(*alpha);
                self.put_option(match grid {
                    Grid::Items => None,
                    Grid::Units(units) => Some(*units),
                });
                self.put_counters(*counters);
                self.put_shares(shares);
            }
            Method::Tuned(TunedMethod { substreams, counters, noise, levels, pinned }) => {
                self.put_u8(1);
                self.put_u64(*substreams);
                self.put_counters(*counters);
                let number = NoiseChoice::all().position(|known| known == *noise);
                self.put_u8(number.expect("all laws are numbered") as u8);
                self.put_u32(*levels);
                self.put_u32(*pinned);
            }
        }
    }

    fn put_substream_len(&mut self, len: SubstreamLen) {
        let (tag, value) = match len {
            SubstreamLen::Items(items) => (0, items),
            SubstreamLen::PerWindow(count) => (1, count),
            SubstreamLen::Exponent(beta) => (2, beta.to_bits()),
        };
        self.put_u8(tag);
        self.put_u64(value);
    }

    fn put_counters(&mut self, layout: CounterLayout) {
        let (tag, first, second) = match layout {
            CounterLayout::Hashed { rows, columns } => (0, rows.into(), columns.into()),
            CounterLayout::Accuracy { relative_error, failure_probability } => {
                (1, relative_error.to_bits(), failure_probability.to_bits())
            }
            CounterLayout::Identity => (2, 0, 0),
        };
        self.put_u8(tag);
        self.put_u64(first);
        self.put_u64(second);
    }

    fn put_shares(&mut self, shares: &Shares) {
        match shares {
            Shares::Printed => self.put_u8(0),
            Shares::Explicit(list) => {
                self.put_u8(1);
                self.put_len(list.len());
                list.iter().for_each(|&share| self.put_ratio(share));
            }
        }
    }
}

impl Reader<'_> {
    pub(crate) fn read_settings(&mut self) -> Result<Settings, SnapshotError> {
        let window = self.read_window()?;
        let unit = match self.read_u8()? {
            0 => Unit::ReplaceOne,
            1 => Unit::AddRemove,
            2 => Unit::Users { per_substream: self.read_u32()? },
            _ => return Err(SnapshotError::invalid("its unit is unknown")),
        };
        let epsilon = Epsilon::from_ratio(self.read_ratio()?)
            .map_err(|_| SnapshotError::invalid("epsilon is out of range"))?;
        let has_delta = self.read_flag()?;
        let delta = self.read_f64()?;
        let delta = has_delta.then(|| Delta::new(delta)).transpose();
        let delta = delta.map_err(|_| SnapshotError::invalid("delta is out of range"))?;
        let (domain, method, retention) = (self.read_domain()?, self.read_method()?, self.read_u32()?);
        Ok(Settings { window, unit, epsilon, delta, domain, method: Some(method), retention })
    }

    fn read_window(&mut self) -> Result<Window, SnapshotError> {
        let tag = self.read_u8()?;
        let len = self.read_u64()?;
        let clock = match tag {
            0 => return Ok(Window::Items(len)),
            1 => Clock::Caller,
            2 => Clock::Events,
            3 => Clock::CallerByItem,
            _ => return Err(SnapshotError::invalid("its window is unknown")),
        };
        Ok(Window::Time(TimeWindow {
            len,
            lateness: self.read_u64()?,
            clock,
            expected_items: self.read_u64()?,
        }))
    }

    fn read_domain(&mut self) -> Result<Domain, SnapshotError> {
        Ok(match self.read_u8()? {
            0 => Domain::Asked(Kind::Integers),
            1 => Domain::Asked(Kind::Bytes),
            2 => Domain::Public(Keys::Range(self.read_u64()?)),
            3 => {
                let len = self.read_len(8)?;
                Domain::Public(Keys::Integers((0..len).map(|_| self.read_u64()).collect::<Result<_, _>>()?))
            }
            4 => {
                let len = self.read_len(8)?;
                let strings = (0..len).map(|_| self.read_bytes()).collect::<Result<Strings, _>>()?;
                Domain::Public(Keys::Bytes(Arc::new(strings)))
            }
            5 => Domain::Found(self.read_search(Kind::Integers)?),
            6 => Domain::Found(self.read_search(Kind::Bytes)?),
            _ => return Err(SnapshotError::invalid("its domain is unknown")),
        })
    }

    fn read_search(&mut self, kind: Kind) -> Result<SearchSettings, SnapshotError> {
        Ok(SearchSettings {
            kind,
            share: Some(self.read_ratio()?),
            search_len: Some(self.read_u64()?),
            counting: self.read_option()?.map_or(SearchCounts::Exact, |keys| SearchCounts::Summary { keys }),
            key_len_max: self.read_u32()?,
        })
    }

    fn read_method(&mut self) -> Result<Method, SnapshotError> {
        Ok(match self.read_u8()? {
            0 => Method::Paper(PaperMethod {
                substream: self.read_substream_len()?,
                alpha: self.read_ratio()?,
                grid: self.read_option()?.map_or(Grid::Items, Grid::Units),
                counters: self.read_counters()?,
                shares: self.read_shares()?,
            }),
            1 => Method::Tuned(TunedMethod {
                substreams: self.read_u64()?,
                counters: self.read_counters()?,
                noise: self.read_noise()?,
                levels: self.read_u32()?,
                pinned: self.read_u32()?,
            }),
            _ => return Err(SnapshotError::invalid("its method is unknown")),
        })
    }

    fn read_noise(&mut self) -> Result<NoiseChoice, SnapshotError> {
        let number = usize::from(self.read_u8()?);
        NoiseChoice::all().nth(number).ok_or(SnapshotError::invalid("its noise is unknown"))
    }

    fn read_substream_len(&mut self) -> Result<SubstreamLen, SnapshotError> {
        let (tag, value) = (self.read_u8()?, self.read_u64()?);
        Ok(match tag {
            0 => SubstreamLen::Items(value),
            1 => SubstreamLen::PerWindow(value),
            2 => SubstreamLen::Exponent(f64::from_bits(value)),
            _ => return Err(SnapshotError::invalid("its substream length is unknown")),
        })
    }

    fn read_counters(&mut self) -> Result<CounterLayout, SnapshotError> {
        let (tag, first, second) = (self.read_u8()?, self.read_u64()?, self.read_u64()?);
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

    fn read_shares(&mut self) -> Result<Shares, SnapshotError> {
        if !self.read_flag()? {
            return Ok(Shares::Printed);
        }
        let len = self.read_len(16)?;
        Ok(Shares::Explicit((0..len).map(|_| self.read_ratio()).collect::<Result<_, _>>()?))
    }
}
