//! Which parameters a baseline is tried with at a given size: results show the best of them.

use std::fmt;

use anyhow::{Context, Result};
use dpsw::error::EntropyError;
use dpsw::{Claim, Noise, Ratio};

use super::{Baseline, Listing, Task, blmz, microscope, pcc_mg, tumbling, u_sketch};
use crate::method::Size;

/// A baseline by the name that results use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// PCC-MG with its own counts: a binary tree of private Misra-Gries summaries.
    PccMg,
    /// PCC-MG with reduced counts, whose sensitivity is 2.
    PccMgReduced,
    /// PCC-MG that lists every key it kept, as the paper reads it.
    PccMgAllKeys,
    /// U-Sketch: 100 blocks of count-min sketches.
    USketch,
    /// BLMZ-Sketch: four levels, candidates screened by Misra-Gries summaries.
    Blmz,
    /// Microscope-Sketch of count-min cells: no privacy.
    Microscope,
    /// Microscope-Sketch with conservative updates: no privacy.
    MicroscopeCu,
    /// Microscope-Sketch of CountSketch cells: no privacy.
    MicroscopeCount,
    /// Tumbling buckets: histograms with Laplace noise.
    Tumbling,
    /// Tumbling buckets with Gaussian noise.
    TumblingGauss,
}

/// A baseline with every derived number; it prints its parameters.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Plan {
    PccMg(pcc_mg::Plan),
    USketch(u_sketch::Plan),
    Blmz(blmz::Plan),
    Microscope(microscope::Plan),
    Tumbling(tumbling::Plan),
}

impl Kind {
    pub const ALL: [Self; 10] = [
        Self::PccMg,
        Self::PccMgReduced,
        Self::PccMgAllKeys,
        Self::USketch,
        Self::Blmz,
        Self::Microscope,
        Self::MicroscopeCu,
        Self::MicroscopeCount,
        Self::Tumbling,
        Self::TumblingGauss,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::PccMg => "pcc-mg",
            Self::PccMgReduced => "pcc-mg-reduced",
            Self::PccMgAllKeys => "pcc-mg-all-keys",
            Self::USketch => "u-sketch",
            Self::Blmz => "blmz",
            Self::Microscope => "microscope",
            Self::MicroscopeCu => "microscope-cu",
            Self::MicroscopeCount => "microscope-count",
            Self::Tumbling => "tumbling",
            Self::TumblingGauss => "tumbling-gauss",
        }
    }

    /// The plans to try that need no more than the bytes of this size; none if not even the smallest fits.
    pub fn grid(self, size: Size) -> Result<Vec<Plan>> {
        use microscope::Sketch;
        use pcc_mg::Counts;
        use tumbling::NoiseKind;
        let task = Task::new(size)?;
        let plans = match self {
            Self::PccMg => pcc_mg_grid(task, Counts::Original, Listing::Threshold)?,
            Self::PccMgReduced => pcc_mg_grid(task, Counts::Reduced, Listing::Threshold)?,
            Self::PccMgAllKeys => pcc_mg_grid(task, Counts::Original, Listing::AllKeys)?,
            Self::USketch => u_sketch_grid(task, size.bytes)?,
            Self::Blmz => blmz_grid(task)?,
            Self::Microscope => microscope_grid(task, size.bytes, Sketch::CountMin)?,
            Self::MicroscopeCu => microscope_grid(task, size.bytes, Sketch::ConservativeUpdate)?,
            Self::MicroscopeCount => microscope_grid(task, size.bytes, Sketch::CountSketch)?,
            Self::Tumbling => tumbling_grid(task, NoiseKind::Laplace)?,
            Self::TumblingGauss => tumbling_grid(task, NoiseKind::Gauss)?,
        };
        Ok(plans.into_iter().filter(|plan| plan.sketch_bytes() <= size.bytes).collect())
    }

    /// The plan that is used where nothing is tried: the one that spends the most of the bytes, and of equal ones the
    /// first.
    pub fn largest(self, size: Size) -> Result<Plan> {
        let last_first = self.grid(size)?.into_iter().rev();
        last_first.max_by_key(Plan::sketch_bytes).context("not even the smallest sketch fits")
    }
}

/// The same expression of whichever plan it is.
macro_rules! of_any {
    ($any:expr, $plan:ident => $of:expr) => {
        match $any {
            Plan::PccMg($plan) => $of,
            Plan::USketch($plan) => $of,
            Plan::Blmz($plan) => $of,
            Plan::Microscope($plan) => $of,
            Plan::Tumbling($plan) => $of,
        }
    };
}

impl Plan {
    /// Bytes of what the method keeps, as the paper counts them: counters of 4 bytes, entries of 8, cells packed.
    pub fn sketch_bytes(&self) -> u64 {
        of_any!(self, plan => plan.sketch_bytes())
    }

    /// What is promised of everything that the method ever answers, with noise from the system.
    pub fn claim(&self) -> Claim {
        of_any!(self, plan => plan.claim())
    }

    /// The method before the first item.
    pub fn start(&self, noise: Noise) -> Result<Box<dyn Baseline>, EntropyError> {
        of_any!(self, plan => plan.start(noise))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of_any!(self, plan => plan.fmt(f))
    }
}

fn pcc_mg_grid(task: Task, counts: pcc_mg::Counts, listing: Listing) -> Result<Vec<Plan>> {
    let plan = |parts| {
        let lambda = Ratio::new(parts, pcc_mg::LAMBDA_UNIT)?;
        let parameters = pcc_mg::Parameters { lambda, levels: pcc_mg::LevelRule::Fit, counts, listing };
        pcc_mg::Plan::new(task, parameters).map(Plan::PccMg)
    };
    pcc_mg::LAMBDAS.into_iter().map(plan).collect()
}

fn u_sketch_grid(task: Task, bytes: u64) -> Result<Vec<Plan>> {
    let counters = bytes / u_sketch::BYTES_PER_COUNTER;
    let mut plans = Vec::new();
    for rows in u_sketch::ROWS.filter(|&rows| u64::from(rows) <= counters) {
        let columns = u32::try_from(counters / u64::from(rows)).context("too many columns")?;
        let (combine, release) = (u_sketch::Combine::MinOfSums, u_sketch::Release::PerBlock);
        let parameters = u_sketch::Parameters { rows, columns, combine, release };
        plans.push(Plan::USketch(u_sketch::Plan::new(task, parameters)?));
    }
    Ok(plans)
}

fn blmz_grid(task: Task) -> Result<Vec<Plan>> {
    let plan = |parts| {
        let alpha = Ratio::new(parts, blmz::ALPHA_UNIT)?;
        let parameters = blmz::Parameters { alpha, tracker_factor: blmz::TRACKER_FACTOR };
        blmz::Plan::new(task, parameters).map(Plan::Blmz)
    };
    blmz::ALPHAS.into_iter().map(plan).collect()
}

fn microscope_grid(task: Task, bytes: u64, sketch: microscope::Sketch) -> Result<Vec<Plan>> {
    let divides = |sub_windows: &u32| task.window_len.is_multiple_of((*sub_windows).into());
    let shapes = microscope::SUB_WINDOWS.into_iter().filter(divides).flat_map(|sub_windows| {
        microscope::ROWS.flat_map(move |rows| microscope::PIXEL_BITS.map(|bits| (sub_windows, rows, bits)))
    });
    let parameters = shapes.map(|(sub_windows, rows, pixel_bits)| {
        let published = microscope::Parameters::PUBLISHED;
        microscope::Parameters { sub_windows, rows, pixel_bits, sketch, ..published }.fill(bytes)
    });
    let plan = |parameters| microscope::Plan::new(task, parameters).map(Plan::Microscope);
    parameters.filter(|parameters| 0 < parameters.columns).map(plan).collect()
}

fn tumbling_grid(task: Task, noise: tumbling::NoiseKind) -> Result<Vec<Plan>> {
    let plan = |buckets| {
        let parameters = tumbling::Parameters { buckets, noise, edges: tumbling::Edges::Whole };
        let plan = tumbling::Plan::new(task, parameters).with_context(|| format!("{buckets} buckets"))?;
        Ok(Plan::Tumbling(plan))
    };
    tumbling::BUCKETS.into_iter().map(plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The large budget makes noise tables small.
    fn size(bytes: u64) -> Size {
        Size { window_len: 4800, domain_len: 300, bytes, epsilon: 8.0, delta: 1e-9 }
    }

    #[test]
    fn grids_hold_what_fits() {
        let lens = |bytes| Kind::ALL.map(|kind| kind.grid(size(bytes)).expect("a grid").len());
        assert_eq!(lens(10_000_000), [9, 9, 9, 4, 10, 40, 40, 40, 10, 10]);
        assert_eq!(lens(5), [0; 10]);
        for kind in Kind::ALL {
            let grid = kind.grid(size(40_000)).expect("a grid");
            let largest = kind.largest(size(40_000)).expect("something fits").sketch_bytes();
            assert!(largest <= 40_000 && grid.iter().all(|plan| plan.sketch_bytes() <= largest), "{kind:?}");
        }
    }

    #[test]
    fn every_plan_follows_a_stream_and_repeats_itself() {
        let items: Vec<u64> = (0..9000_u64).map(|i| i * i % 300).collect();
        for plan in Kind::ALL.iter().flat_map(|kind| kind.grid(size(100_000)).expect("a grid")) {
            let run = |seed| {
                let mut method = plan.start(Noise::seeded(seed)).expect("seeded");
                items.chunks(1000).for_each(|part| method.insert(part).expect("seeded"));
                assert!((1..10_000_000).contains(&method.resident_bytes()), "{plan}");
                let estimates = method.estimates();
                for item in 0..300 {
                    assert_eq!(method.frequency(item), estimates[item as usize], "{plan}");
                }
                let listed = method.heavy_hitters(50.0);
                let lists_all = plan.to_string().contains("all keys listed");
                assert!(lists_all || listed.iter().all(|&item| 50.0 <= estimates[item as usize]), "{plan}");
                estimates
            };
            assert_eq!(run(1), run(1), "{plan}");
            // Without noise the seed changes the hash functions alone.
            if plan.claim() != Claim::None {
                assert_ne!(run(1), run(2), "{plan}");
            }
        }
    }

    #[test]
    fn what_a_private_method_answers_does_not_depend_on_its_open_blocks() {
        let items: Vec<u64> = (0..9000_u64).map(|i| i * i % 300).collect();
        let is_private = |plan: &Plan| plan.claim() != Claim::None;
        let plans = Kind::ALL.iter().flat_map(|kind| kind.grid(size(1_000_000)).expect("a grid"));
        for plan in plans.filter(is_private) {
            let ending_with = |item: u64| {
                let mut method = plan.start(Noise::seeded(1)).expect("seeded");
                method.insert(&items).expect("seeded");
                method.insert(&[item]).expect("seeded");
                method.estimates()
            };
            assert_eq!(ending_with(1), ending_with(2), "{plan}");
        }
    }

    #[test]
    fn only_the_promises_that_hold_are_made() {
        for kind in Kind::ALL {
            let claim = kind.largest(size(1_000_000)).expect("something fits").claim();
            match kind {
                Kind::Microscope | Kind::MicroscopeCu | Kind::MicroscopeCount => {
                    assert_eq!(claim, Claim::None);
                }
                Kind::TumblingGauss => assert!(matches!(claim, Claim::Approximate(..))),
                _ => assert!(matches!(claim, Claim::Pure(_))),
            }
        }
    }

    #[test]
    #[should_panic(expected = "every item lies in the domain 0..300")]
    fn items_outside_the_domain_are_refused() {
        let plans = Kind::Tumbling.grid(size(1_000_000)).expect("a grid");
        let mut method = plans[0].start(Noise::seeded(1)).expect("seeded");
        method.insert(&[300]).expect("seeded");
    }
}
