//! How much is run.

use serde::{Deserialize, Serialize};

use crate::dataset::SYNTHETIC_DOMAIN;
use crate::figure::{Axis, Sweep};

/// How much is run: streams, seeds, questions and values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// The name on the command line.
    pub name: String,
    /// w, unless varied; a multiple of 1000.
    pub window: u64,
    /// m of synthetic streams, unless varied.
    pub domain: usize,
    /// n at this window.
    pub items: u64,
    /// Streams (synthetic) and noise draws.
    pub seeds: u64,
    pub queries: usize,
    /// n of the runs that choose parameters.
    pub pilot_items: u64,
    /// Query times of the runs that choose parameters.
    pub pilot_queries: usize,
    /// The largest number of parameter choices that are tried per method, spread over its grid.
    pub tries: usize,
    pub gammas: Vec<f64>,
    /// Which values of an axis are run.
    pub values: Values,
}

/// Which values of an axis are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// The first and the last; of ε, 1 and the last where it has them.
    Ends,
    Some,
    /// Those of the paper.
    All,
}

impl Preset {
    /// Minutes.
    pub fn quick() -> Self {
        Self {
            name: "quick".to_owned(),
            window: 1_000_000,
            domain: SYNTHETIC_DOMAIN,
            items: 2_500_000,
            seeds: 3,
            queries: 25,
            pilot_items: 1_500_000,
            pilot_queries: 5,
            tries: 100,
            gammas: vec![0.002, 0.0035, 0.005, 0.0075, 0.01, 0.0125],
            values: Values::Some,
        }
    }

    /// Hours: the paper's streams and values; it asks at 1 % of all positions, this at 1,000.
    pub fn full() -> Self {
        Self {
            name: "full".to_owned(),
            items: 10_000_000,
            seeds: 10,
            queries: 1_000,
            pilot_items: 2_500_000,
            pilot_queries: 50,
            values: Values::All,
            ..Self::quick()
        }
    }

    /// Seconds: shows that everything runs; its numbers mean nothing.
    pub fn tiny() -> Self {
        Self {
            name: "tiny".to_owned(),
            window: 20_000,
            domain: 640,
            items: 50_000,
            seeds: 2,
            queries: 3,
            pilot_items: 30_000,
            pilot_queries: 1,
            tries: 2,
            values: Values::Ends,
            ..Self::quick()
        }
    }

    /// The values of a sweep's axis: windows in items, domains relative to the preset's.
    pub fn values(&self, sweep: &Sweep) -> Vec<f64> {
        let values: &[f64] = match (self.values, sweep.quick.as_slice()) {
            _ if sweep.axis == Axis::Stream => &[0.0],
            (Values::All, _) => &sweep.full,
            (Values::Ends, [before @ .., last]) if sweep.axis == Axis::Epsilon && before.contains(&1.0) => {
                &[1.0, *last]
            }
            (Values::Ends, [first, .., last]) => &[*first, *last],
            (Values::Some | Values::Ends, some) => some,
        };
        let unit = match sweep.axis {
            Axis::Domain => self.domain as f64 / SYNTHETIC_DOMAIN as f64,
            Axis::Window => self.window as f64,
            _ => 1.0,
        };
        values.iter().map(|value| value * unit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::figure;

    #[test]
    fn the_ends_of_an_axis_are_two_of_its_values() {
        for (quick, ends) in [
            (&[0.1, 1.0, 2.0][..], &[1.0, 2.0][..]),
            (&[0.1, 0.5, 1.0], &[0.1, 1.0]),
            (&[0.1, 0.2, 0.5], &[0.1, 0.5]),
            (&[0.5], &[0.5]),
        ] {
            let sweep = figure("frequency-high").expect("a figure").sweep.clone().expect("a sweep");
            assert_eq!(Preset::tiny().values(&Sweep { quick: quick.to_vec(), ..sweep }), ends);
        }
    }
}
