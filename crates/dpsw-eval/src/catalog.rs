//! Every experiment and every figure, as data: a sweep says what is run, a figure what is drawn of it.

use crate::baseline::Kind;
use crate::cores::Cores;
use crate::method::MethodName;
use crate::metric::Metric;

/// What a sweep varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// ε.
    Epsilon,
    /// w; its values are shares of the preset's.
    Window,
    /// Bytes of the sketches.
    Bytes,
    /// m of a synthetic stream, for the paper's default of 25,600.
    Domain,
    /// |I| of the paper's structure.
    Checkpoints,
    /// Substreams of a window of the paper's structure.
    Substreams,
    /// Rows of each sketch of the paper's structure.
    Rows,
    /// Nothing but the stream.
    Stream,
}

/// Which streams a sweep runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// The data sets of the paper that are there.
    Paper,
    /// Synthetic ones.
    Synthetic(&'static [&'static str]),
    /// The real streams that are there.
    Real,
}

/// By what the best parameters of a method are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The absolute errors of frequent and of rare items together.
    Error,
    /// F1 of heavy hitters, and where that is equal the errors.
    F1,
}

/// Methods on streams, for every value of an axis.
#[derive(Debug, Clone, Copy)]
pub struct Sweep {
    /// By which figures refer to it.
    pub name: &'static str,
    /// What is varied.
    pub axis: Axis,
    /// Values of the preset `quick`.
    pub quick: &'static [f64],
    /// Values of the preset `full`: the paper's.
    pub full: &'static [f64],
    /// On what.
    pub streams: Streams,
    /// What is compared.
    pub methods: &'static [MethodName],
    /// Bytes of the sketches, unless varied.
    pub bytes: u64,
    /// How parameters are chosen.
    pub goal: Goal,
    /// One at a time where speed is measured.
    pub cores: Cores,
}

/// What is drawn of a sweep.
#[derive(Debug, Clone, Copy)]
pub enum Shows {
    /// A panel for each metric and stream, over the values of the axis.
    Curves(&'static [Metric]),
    /// Scores over the threshold at one value of the axis.
    Thresholds(fn(f64) -> [Metric; 3], f64),
    /// Predicted against measured errors of the tuned method.
    Predictions,
    /// The share of items with at least a frequency.
    Distribution,
}

/// One figure.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The name on the command line and of its files.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Which figure of the paper it stands for.
    pub paper: Option<&'static str>,
    /// The name of its sweep.
    pub sweep: &'static str,
    /// What is drawn.
    pub shows: Shows,
}

use MethodName::{Baseline, Paper, PaperBalanced, Tuned, TunedDiscovered, TunedUser};
use Metric::{F1, MaeHigh, MaeLow, MreHigh, MreLow, PriceHigh, PriceLow, Throughput};

const ALL: &[MethodName] = &[
    Tuned,
    Paper,
    PaperBalanced,
    Baseline(Kind::Blmz),
    Baseline(Kind::USketch),
    Baseline(Kind::PccMg),
    Baseline(Kind::PccMgReduced),
    Baseline(Kind::Tumbling),
    Baseline(Kind::Microscope),
];
const LISTING: &[MethodName] = &[
    Tuned,
    Paper,
    PaperBalanced,
    Baseline(Kind::Blmz),
    Baseline(Kind::USketch),
    Baseline(Kind::PccMg),
    Baseline(Kind::PccMgReduced),
    Baseline(Kind::PccMgAllKeys),
    Baseline(Kind::Tumbling),
    Baseline(Kind::Microscope),
];
const MICROSCOPES: &[MethodName] =
    &[Baseline(Kind::Microscope), Baseline(Kind::MicroscopeCu), Baseline(Kind::MicroscopeCount)];
const UNKNOWN: &[MethodName] = &[Tuned, TunedDiscovered, TunedUser, Paper, Baseline(Kind::Microscope)];
const STRUCTURE: &[MethodName] = &[Paper, PaperBalanced];

/// The counters of the paper's default structure: 35 sketches of 4 x 2000.
const DEFAULT_BYTES: u64 = 1_120_000;
/// The limit of the paper's appendix.
const SMALL_BYTES: u64 = 100_000;

const DEFAULT: Sweep = Sweep {
    name: "default",
    axis: Axis::Stream,
    quick: &[0.0],
    full: &[0.0],
    streams: Streams::Paper,
    methods: ALL,
    bytes: DEFAULT_BYTES,
    goal: Goal::Error,
    cores: Cores::All,
};
const STRUCTURE_SWEEP: Sweep = Sweep { methods: STRUCTURE, bytes: SMALL_BYTES, cores: Cores::One, ..DEFAULT };

const EPSILONS: &[f64] = &[0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0];
const SOME_EPSILONS: &[f64] = &[0.1, 0.2, 0.4, 1.0, 2.0];
const SIZES: &[f64] = &[4e3, 10e3, 20e3, 40e3, 100e3, 200e3, 400e3, 1e6, 2e6, 4e6];
const SOME_SIZES: &[f64] = &[4e3, 20e3, 100e3, 400e3, 1e6, 4e6];
const DOMAINS: &[f64] = &[400.0, 1_600.0, 6_400.0, 25_600.0, 102_400.0, 409_600.0];
const SOME_DOMAINS: &[f64] = &[400.0, 6_400.0, 25_600.0, 409_600.0];

/// What is run.
pub const SWEEPS: &[Sweep] = &[
    Sweep { name: "epsilon", axis: Axis::Epsilon, quick: SOME_EPSILONS, full: EPSILONS, ..DEFAULT },
    Sweep {
        name: "epsilon-listing",
        axis: Axis::Epsilon,
        quick: SOME_EPSILONS,
        full: EPSILONS,
        methods: LISTING,
        goal: Goal::F1,
        ..DEFAULT
    },
    Sweep {
        name: "window",
        axis: Axis::Window,
        quick: &[0.1, 0.3, 1.0],
        full: &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
        ..DEFAULT
    },
    Sweep { name: "bytes", axis: Axis::Bytes, quick: SOME_SIZES, full: SIZES, ..DEFAULT },
    Sweep {
        name: "domain",
        axis: Axis::Domain,
        quick: SOME_DOMAINS,
        full: DOMAINS,
        streams: Streams::Synthetic(&["gauss", "zipf"]),
        ..DEFAULT
    },
    Sweep { name: "speed", cores: Cores::One, ..DEFAULT },
    Sweep {
        name: "checkpoints",
        axis: Axis::Checkpoints,
        quick: &[2.0, 3.0, 5.0, 10.0, 15.0],
        full: &[2.0, 3.0, 4.0, 5.0, 8.0, 10.0, 15.0],
        ..STRUCTURE_SWEEP
    },
    Sweep {
        name: "substreams",
        axis: Axis::Substreams,
        quick: &[2.0, 5.0, 10.0, 20.0, 50.0],
        full: &[2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0],
        ..STRUCTURE_SWEEP
    },
    Sweep {
        name: "rows",
        axis: Axis::Rows,
        quick: &[2.0, 3.0, 4.0, 5.0, 7.0, 10.0],
        full: &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
        ..STRUCTURE_SWEEP
    },
    Sweep { name: "microscopes", methods: MICROSCOPES, bytes: SMALL_BYTES, ..DEFAULT },
    Sweep { name: "drift", streams: Streams::Synthetic(&["zipf", "drift", "swap"]), ..DEFAULT },
    Sweep {
        name: "unknown-domain",
        axis: Axis::Epsilon,
        quick: &[0.4, 1.0, 2.0],
        full: EPSILONS,
        methods: UNKNOWN,
        goal: Goal::F1,
        ..DEFAULT
    },
    Sweep { name: "real", streams: Streams::Real, bytes: 280_000, ..DEFAULT },
];

/// What is drawn, in the order of the report.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "frequency-high",
        title: "Errors of the 50 most frequent items against ε",
        paper: Some("Figure 2"),
        sweep: "epsilon",
        shows: Shows::Curves(&[MaeHigh, MreHigh]),
    },
    Figure {
        name: "frequency-low",
        title: "Errors of other items, with a count of at least 100, against ε",
        paper: Some("Figure 3"),
        sweep: "epsilon",
        shows: Shows::Curves(&[MaeLow, MreLow]),
    },
    Figure {
        name: "heavy-hitters",
        title: "F1 of heavy hitters against ε",
        paper: Some("Figure 4, left and middle"),
        sweep: "epsilon-listing",
        shows: Shows::Curves(&[F1(0.005), F1(0.01)]),
    },
    Figure {
        name: "heavy-hitters-gamma",
        title: "Scores of heavy hitters against the threshold γ, ε = 1",
        paper: Some("Figures 4 and 12, right"),
        sweep: "epsilon-listing",
        shows: Shows::Thresholds(Metric::scores, 1.0),
    },
    Figure {
        name: "precision-recall",
        title: "Precision and recall of heavy hitters against ε",
        paper: Some("Figure 12"),
        sweep: "epsilon-listing",
        shows: Shows::Curves(&[
            Metric::Precision(0.005),
            Metric::Recall(0.005),
            Metric::Precision(0.01),
            Metric::Recall(0.01),
        ]),
    },
    Figure {
        name: "window",
        title: "Errors and F1 against the window, ε = 1",
        paper: Some("Figures 5 and 13"),
        sweep: "window",
        shows: Shows::Curves(&[MaeHigh, MaeLow, MreHigh, MreLow, F1(0.01)]),
    },
    Figure {
        name: "sketch-size",
        title: "Errors and F1 against the bytes of the sketches, ε = 1",
        paper: Some("Figures 6 and 13"),
        sweep: "bytes",
        shows: Shows::Curves(&[MaeHigh, MaeLow, MreHigh, MreLow, F1(0.01)]),
    },
    Figure {
        name: "throughput",
        title: "Insertions in a second, one thread",
        paper: Some("Figure 7"),
        sweep: "speed",
        shows: Shows::Curves(&[Throughput]),
    },
    Figure {
        name: "distribution",
        title: "The share of the domain with at least a frequency",
        paper: Some("Figure 8"),
        sweep: "speed",
        shows: Shows::Distribution,
    },
    Figure {
        name: "checkpoints",
        title: "The number of checkpoints of the paper's structure, 100 KB, ε = 1",
        paper: Some("Figure 9"),
        sweep: "checkpoints",
        shows: Shows::Curves(&[MaeHigh, MaeLow, Throughput]),
    },
    Figure {
        name: "substreams",
        title: "The number of substreams of the paper's structure, 100 KB, ε = 1",
        paper: Some("Figure 10"),
        sweep: "substreams",
        shows: Shows::Curves(&[MaeHigh, MaeLow, Throughput]),
    },
    Figure {
        name: "hash-functions",
        title: "The number of hash functions of the paper's structure, 100 KB, ε = 1",
        paper: Some("Figure 11"),
        sweep: "rows",
        shows: Shows::Curves(&[MaeHigh, MaeLow, Throughput]),
    },
    Figure {
        name: "domain",
        title: "Errors against the size of the domain, ε = 1",
        paper: Some("Figure 14"),
        sweep: "domain",
        shows: Shows::Curves(&[MaeHigh, MaeLow, MreHigh, MreLow]),
    },
    Figure {
        name: "microscopes",
        title: "Which Microscope-Sketch stands for all: count-min, conservative update, CountSketch; 100 KB",
        paper: Some("Appendix, Baseline Implementation"),
        sweep: "microscopes",
        shows: Shows::Curves(&[MaeHigh, MaeLow, F1(0.01)]),
    },
    Figure {
        name: "price-of-privacy",
        title: "The price of privacy: errors as multiples of Microscope-Sketch's at the same bytes",
        paper: None,
        sweep: "epsilon",
        shows: Shows::Curves(&[PriceHigh, PriceLow]),
    },
    Figure {
        name: "drift",
        title: "Streams that stand still (zipf) and that move, ε = 1",
        paper: None,
        sweep: "drift",
        shows: Shows::Curves(&[MaeHigh, MaeLow, F1(0.005)]),
    },
    Figure {
        name: "predictions",
        title: "Predicted against measured errors of the tuned method, all sweeps",
        paper: None,
        sweep: "epsilon",
        shows: Shows::Predictions,
    },
    Figure {
        name: "unknown-domain",
        title: "Without a list of keys (found in the stream), and for whole users",
        paper: None,
        sweep: "unknown-domain",
        shows: Shows::Curves(&[MaeHigh, MaeLow, F1(0.005), F1(0.01)]),
    },
    Figure {
        name: "real-streams",
        title: "Real streams, 280 KB, ε = 1",
        paper: None,
        sweep: "real",
        shows: Shows::Curves(&[MreHigh, MreLow, F1(0.005)]),
    },
];

/// The figure of this name.
#[must_use]
pub fn figure(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().find(|figure| figure.name == name)
}

impl Figure {
    /// Its sweep.
    #[must_use]
    pub fn sweep(&self) -> &'static Sweep {
        SWEEPS.iter().find(|sweep| sweep.name == self.sweep).expect("every figure names a sweep")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_sweep_is_drawn() {
        for (index, sweep) in SWEEPS.iter().enumerate() {
            assert!(SWEEPS[..index].iter().all(|other| other.name != sweep.name), "{}", sweep.name);
            assert!(FIGURES.iter().any(|figure| figure.sweep().name == sweep.name), "{}", sweep.name);
            let is_subset = sweep.quick.iter().all(|value| sweep.full.contains(value));
            assert!(is_subset && sweep.quick.is_sorted() && sweep.full.is_sorted(), "{}", sweep.name);
        }
        for (index, figure) in FIGURES.iter().enumerate() {
            assert!(FIGURES[..index].iter().all(|other| other.name != figure.name), "{}", figure.name);
        }
    }
}
