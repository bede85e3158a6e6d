//! Algorithms 1-3 of the paper, line by line with 1-based positions and the readings of docs/design/architecture.md, as the
//! oracle of the engine. Noise is off.

use proptest::prelude::*;

use crate::item::domain::Domain;
use crate::item::hash::{StreamKey, column_of};
use crate::item::keys::Keys;
use crate::plan::settings::{
    CounterLayout, Grid, Method, PaperMethod, Settings, Shares, SubstreamLen, Unit, Window,
};
use crate::privacy::parameters::{Delta, Epsilon, Threshold};
use crate::ratio::Ratio;
use crate::{DpswSketch, Noise, Plan};

const DOMAIN: u64 = 20;

/// Algorithm 1 without noise.
struct Pcms {
    counts: Vec<Vec<i64>>,
}

struct Hash {
    stream: StreamKey,
    rows: usize,
    columns: u32,
}

impl Hash {
    fn h(&self, r: usize, e: u64) -> usize {
        let key = self.stream.row_keys(0, self.rows)[r];
        column_of(self.stream.fingerprint_key().hash_integer(e), key, self.columns)
    }
}

impl Pcms {
    fn new(hash: &Hash) -> Self {
        Self { counts: vec![vec![0; hash.columns as usize]; hash.rows] }
    }

    fn add(&mut self, hash: &Hash, s: u64) {
        for r in 0..hash.rows {
            self.counts[r][hash.h(r, s)] += 1;
        }
    }

    fn query(&self, hash: &Hash, e: u64) -> i64 {
        (0..hash.rows).map(|r| self.counts[r][hash.h(r, e)]).min().expect("at least one row")
    }
}

/// One substream of Algorithm 2: sketches j = 1..|I| at index j - 1, with their end points v and start points u.
struct Substream {
    first: u64,
    last: u64,
    prefix: Vec<Pcms>,
    v: Vec<u64>,
    suffix: Vec<Pcms>,
    u: Vec<u64>,
}

struct Literal {
    hash: Hash,
    w: u64,
    substream_len: u64,
    list: Vec<u64>,
    t: u64,
    substreams: Vec<Substream>,
}

/// Lines 2-6: the loop over i with deletions, in units of the grid.
fn checkpoints(units: u64, alpha: Ratio) -> Vec<u64> {
    let (num, den) = (alpha.numerator(), alpha.denominator());
    let mut list: Vec<u64> = Vec::new();
    for i in (1..=units).rev() {
        list.push(i);
        let mut j = 1;
        while j + 2 <= list.len() {
            let found = (j + 1..=list.len()).rev().find(|&k| list[k - 1] * den >= (den - num) * list[j - 1]);
            if let Some(k) = found {
                list.drain(j..k - 1);
            }
            j += 1;
        }
    }
    list
}

impl Literal {
    fn insert(&mut self, s: u64) {
        self.t += 1;
        let t = self.t;
        let len = self.substream_len;
        let full = self.substreams.last().is_none_or(|sub| sub.last < t);
        if full {
            let new = |_: &u64| Pcms::new(&self.hash);
            self.substreams.push(Substream {
                first: t,
                last: t + len - 1,
                prefix: self.list.iter().map(new).collect(),
                v: self.list.iter().map(|i| t + i - 1).collect(),
                suffix: self.list.iter().map(new).collect(),
                u: self.list.iter().map(|i| t + len - i).collect(),
            });
        }
        let l = self.substreams.last_mut().expect("a substream was started");
        for j in 0..self.list.len() {
            if l.v[j] >= t {
                l.prefix[j].add(&self.hash, s);
            }
            if j > 0 && l.u[j] <= t {
                l.suffix[j].add(&self.hash, s);
            }
        }
    }

    /// Algorithm 3, lines 1-7.
    fn frequency(&self, e: u64) -> i64 {
        let Some(current) = self.substreams.last() else { return 0 };
        let start = if self.t > self.w { self.t - self.w + 1 } else { 1 };
        // A complete newest substream is a full one; the running substream is then empty.
        let running_is_empty = current.last == self.t;
        let complete = &self.substreams[..self.substreams.len() - usize::from(!running_is_empty)];
        let mut f = 0;
        for sub in complete.iter().filter(|sub| sub.last >= start) {
            f += if sub.first < start {
                let x = (0..self.list.len()).filter(|&j| sub.u[j] <= start).max_by_key(|&j| sub.u[j]);
                match x.expect("the whole substream starts before the window") {
                    0 => sub.prefix[0].query(&self.hash, e),
                    x => sub.suffix[x].query(&self.hash, e),
                }
            } else {
                sub.prefix[0].query(&self.hash, e)
            };
        }
        if !running_is_empty {
            let y = (0..self.list.len()).filter(|&j| current.v[j] <= self.t).max_by_key(|&j| current.v[j]);
            f += y.map_or(0, |y| current.prefix[y].query(&self.hash, e));
        }
        f
    }

    /// Algorithm 3, lines 9-13, with ζ = 1/b.
    fn heavy_hitters(&self, gamma: f64) -> Vec<u64> {
        let zeta = 1.0 / f64::from(self.hash.columns);
        let least = (gamma - zeta) * self.w as f64;
        (0..DOMAIN).filter(|&e| self.frequency(e) as f64 >= least).collect()
    }
}

#[derive(Debug, Clone)]
struct Case {
    window_len: u64,
    substream_len: u64,
    units: Option<u64>,
    alpha: f64,
    rows: u32,
    columns: u32,
    stream: Vec<u64>,
}

fn cases() -> impl Strategy<Value = Case> {
    let alpha = prop::sample::select(vec![0.1, 0.25, 0.5, 0.6, 0.75, 0.9]);
    let shape = (1_u32..4, 2_u32..30);
    let stream = prop::collection::vec(0..DOMAIN, 0..250);
    (1_u64..120, 1_u64..40, prop::option::of(1_u64..8), alpha, shape, stream).prop_map(
        |(window_len, substream_len, units, alpha, (rows, columns), stream)| {
            // The oracle's grid divides the substream exactly.
            let substream_len = units.map_or(substream_len, |units| units * substream_len.div_ceil(units));
            Case { window_len, substream_len, units, alpha, rows, columns, stream }
        },
    )
}

/// Equal shares: the printed ones are too small to be drawn from for some of the cases.
fn equal_shares(case: &Case) -> Shares {
    let units = case.units.unwrap_or(case.substream_len);
    let count = checkpoints(units, Ratio::from_decimal(case.alpha).expect("a ratio")).len();
    Shares::Explicit(vec![Ratio::new(1, 2 * count as u64).expect("not zero"); count])
}

fn engine(case: &Case) -> DpswSketch {
    let plan = Plan::new(Settings {
        window: Window::Items(case.window_len),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1e6).expect("in range"),
        delta: Some(Delta::new(1e-9).expect("in range")),
        domain: Domain::Public(Keys::Range(DOMAIN)),
        method: Some(Method::Paper(PaperMethod {
            substream: SubstreamLen::Items(case.substream_len),
            alpha: Ratio::from_decimal(case.alpha).expect("a ratio"),
            grid: case.units.map_or(Grid::Items, Grid::Units),
            counters: CounterLayout::Hashed { rows: case.rows, columns: case.columns },
            shares: equal_shares(case),
        })),
        retention: 1,
    });
    DpswSketch::with_key(plan.expect("a valid plan"), StreamKey::from_bytes([3; 32]), Noise::off())
}

fn literal(case: &Case) -> Literal {
    let units = case.units.unwrap_or(case.substream_len);
    let grid = case.substream_len / units;
    let alpha = Ratio::from_decimal(case.alpha).expect("a ratio");
    Literal {
        hash: Hash {
            stream: StreamKey::from_bytes([3; 32]),
            rows: case.rows as usize,
            columns: case.columns,
        },
        w: case.window_len,
        substream_len: case.substream_len,
        list: checkpoints(units, alpha).into_iter().map(|i| i * grid).collect(),
        t: 0,
        substreams: Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_answers_like_the_algorithms_of_the_paper(case in cases()) {
        let mut engine = engine(&case);
        let mut literal = literal(&case);
        for &item in &case.stream {
            engine.add(item).expect("a valid item");
            literal.insert(item);
            let view = engine.view();
            for e in [0, item, DOMAIN - 1] {
                let got = view.frequency(e).expect("a valid question").value;
                prop_assert_eq!(got, literal.frequency(e) as f64, "t = {}, item {}", literal.t, e);
            }
            for gamma in [0.05, 0.3] {
                let threshold = Threshold::new(gamma).expect("in range");
                let mut got: Vec<u64> = Vec::new();
                for ranked in view.heavy_hitters(threshold).expect("a public domain") {
                    let crate::Item::Integer(e) = ranked.item else { unreachable!("integers") };
                    got.push(e);
                }
                got.sort_unstable();
                prop_assert_eq!(got, literal.heavy_hitters(gamma), "t = {}", literal.t);
            }
        }
    }
}
