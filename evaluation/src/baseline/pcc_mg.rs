//! PCC-MG (Chan, Li, Shi, Xu 2012): a binary tree of blocks with a private Misra-Gries summary each.
//!
//! Pure ε: the counts of a block have a known L1 sensitivity, every item of the public domain gets noise before the
//! largest are kept, an event lies in one block per level, and the levels' costs add up to less than ε.

use std::fmt;

use anyhow::{Context, Result, ensure};
use dpsw::error::EntropyError;
use dpsw::noise::{Generator, Law, Table};
use dpsw::{Claim, Noise, Ratio};

use super::Baseline;
use super::budget::{Task, laplace};
use super::dyadic::Tree;
use super::hierarchy::{Hierarchy, Kept, Level, Listing, Seal, largest};
use super::misra_gries::{Summary, excess};

/// λ in parts of 10,000, as the paper tunes it.
pub(super) const LAMBDAS: [u64; 9] = [250, 375, 500, 625, 750, 875, 1000, 1125, 1250];
pub(super) const LAMBDA_UNIT: u64 = 10_000;

/// Levels beyond this would be longer than any window.
const LEVELS_MAX: u32 = 30;

/// How many levels the tree has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LevelRule {
    /// As many as fit in the window.
    #[default]
    Fit,
    /// ⌈log₂(4/λ)⌉ above the leaves, which may make one level too long to be ever used.
    Paper,
}

/// Which counts of a summary are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counts {
    /// As they are: sensitivity k + 1.
    #[default]
    Original,
    /// Reduced: sensitivity 2, at the price of a bias.
    Reduced,
}

/// What may be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    /// λ: a leaf has λw/4 items.
    pub lambda: Ratio,
    pub levels: LevelRule,
    pub counts: Counts,
    pub listing: Listing,
}

/// PCC-MG with every derived number.
#[derive(Debug, Clone)]
pub struct Plan {
    task: Task,
    parameters: Parameters,
    tree: Tree,
    levels: Vec<LevelPlan>,
}

#[derive(Debug, Clone, Copy)]
struct LevelPlan {
    entries: usize,
    kept: usize,
    cost: Ratio,
    law: Law,
}

impl Plan {
    pub fn new(task: Task, parameters: Parameters) -> Result<Self> {
        let tree = tree(&task, parameters)?;
        let plan = |level| level_plan(&task, parameters.counts, tree.top, level);
        let levels = (0..=tree.top).map(plan).collect::<Result<Vec<_>>>()?;
        task.ensure_covers(&levels.iter().map(|level| level.cost).collect::<Vec<_>>())?;
        Ok(Self { task, parameters, tree, levels })
    }

    /// Bytes of what is kept, sealed and open, at 8 bytes per entry.
    pub fn sketch_bytes(&self) -> u64 {
        let of_level = |(number, level): (u32, &LevelPlan)| {
            level.kept as u64 * (self.task.window_len / self.tree.block_len(number) + 2)
        };
        8 * (0..).zip(&self.levels).map(of_level).sum::<u64>()
    }

    pub fn claim(&self) -> Claim {
        Claim::Pure(self.task.epsilon)
    }

    pub fn start(&self, noise: Noise) -> Result<Box<dyn Baseline>, EntropyError> {
        Ok(Box::new(self.hierarchy(noise)))
    }

    fn hierarchy(&self, noise: Noise) -> Hierarchy<OneDraw> {
        let level = |(number, level): (u32, &LevelPlan)| {
            let excess = match self.parameters.counts {
                Counts::Original => None,
                Counts::Reduced => {
                    Some(excess(level.entries, self.tree.block_len(number), self.task.domain_len))
                }
            };
            let seal = OneDraw { excess, kept: level.kept, table: Table::new(level.law) };
            Level::new(Summary::new(level.entries), seal)
        };
        let levels = (0..).zip(&self.levels).map(level).collect();
        Hierarchy::new(self.task, self.tree, levels, self.parameters.listing, noise)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameters { lambda, levels, counts, listing } = self.parameters;
        write!(f, "lambda {lambda}, {counts:?} counts, levels {} ({levels:?})", self.levels.len())?;
        if listing == Listing::AllKeys { write!(f, ", all keys listed") } else { Ok(()) }
    }
}

fn tree(task: &Task, parameters: Parameters) -> Result<Tree> {
    let Parameters { lambda, levels, .. } = parameters;
    let window_len = task.window_len;
    let product = lambda.numerator().checked_mul(window_len).context("lambda has too many digits")?;
    let leaf_len =
        product.div_ceil(lambda.denominator().checked_mul(4).context("lambda has too many digits")?);
    ensure!((1..=window_len).contains(&leaf_len), "a leaf must hold 1 to {window_len} items, got {leaf_len}");
    let top = match levels {
        LevelRule::Fit => (window_len / leaf_len).ilog2(),
        LevelRule::Paper => {
            (4 * lambda.denominator()).div_ceil(lambda.numerator()).next_power_of_two().ilog2()
        }
    };
    ensure!(top <= LEVELS_MAX, "lambda {lambda} makes {top} levels, more than {LEVELS_MAX}");
    Ok(Tree { leaf_len, top, window_len })
}

fn level_plan(task: &Task, counts: Counts, top: u32, level: u32) -> Result<LevelPlan> {
    let entries = ((u64::from(top) + 1) << (level + 1)).min(task.domain_len as u64);
    let cost = task.part(1, 1 << (top - level + 1))?;
    let sensitivity = match counts {
        Counts::Original => entries + 1,
        Counts::Reduced => 2,
    };
    let entries = entries as usize;
    Ok(LevelPlan { entries, kept: entries, cost, law: laplace(sensitivity, cost)? })
}

/// Noise on every item of the domain, then the largest are kept with their noisy counts.
struct OneDraw {
    /// What reduced counts subtract.
    excess: Option<u32>,
    kept: usize,
    table: Table,
}

impl Seal for OneDraw {
    fn seal(&self, summary: &Summary, cells: &mut [i32], generator: &mut Generator) -> Box<[Kept]> {
        match self.excess {
            None => summary.write_counts(cells),
            Some(excess) => summary.write_reduced(excess, cells),
        }
        self.table.add_to(cells, generator);
        let keep = |item: u32| Kept { item, count: cells[item as usize] };
        largest(cells, self.kept).into_iter().map(keep).collect()
    }

    fn bytes(&self) -> usize {
        Table::bytes(self.table.law())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::audit::{Side, Trials, reveals};
    use crate::baseline::budget::{laplace_of, task};
    use crate::baseline::model::{counts, stream};

    fn lambda(parts: u64) -> Parameters {
        let lambda = Ratio::new(parts, LAMBDA_UNIT).expect("a ratio");
        Parameters { lambda, levels: LevelRule::Fit, counts: Counts::Original, listing: Listing::Threshold }
    }

    fn plan(window_len: u64, domain_len: usize, parameters: Parameters) -> Plan {
        Plan::new(task(window_len, domain_len, 1.0), parameters).expect("a plan")
    }

    #[test]
    fn plans_agree_with_the_table() {
        for (parts, leaf_len, paper, fit, first, last, scales, kilobytes) in [
            (250, 6250, 8, 7, 16, 2048, (4352, 4098), 221),
            (375, 9375, 7, 6, 14, 896, (1920, 1794), 104),
            (500, 12500, 7, 6, 14, 896, (1920, 1794), 88),
            (625, 15625, 6, 6, 14, 896, (1920, 1794), 79),
            (1000, 25000, 6, 5, 12, 384, (832, 770), 34),
            (1250, 31250, 5, 5, 12, 384, (832, 770), 31),
        ] {
            let by_paper = Parameters { levels: LevelRule::Paper, ..lambda(parts) };
            assert_eq!(plan(1_000_000, 25_600, by_paper).tree.top, paper);
            let plan = plan(1_000_000, 25_600, lambda(parts));
            assert_eq!((plan.tree.leaf_len, plan.tree.top), (leaf_len, fit));
            let (bottom, top) = (plan.levels[0], plan.levels[fit as usize]);
            assert_eq!((bottom.entries, top.entries), (first, last));
            assert_eq!((bottom.law, top.law), (laplace_of(scales.0), laplace_of(scales.1)));
            assert_eq!((plan.sketch_bytes() + 500) / 1000, kilobytes);
        }
    }

    #[test]
    fn covers_have_as_many_blocks_as_in_the_table() {
        for (parts, mean, most) in
            [(250, 7.3, 9), (375, 6.7, 10), (500, 6.3, 8), (625, 6.0, 7), (1000, 5.3, 7), (1250, 5.0, 6)]
        {
            let tree = plan(1_000_000, 25_600, lambda(parts)).tree;
            let len_at = |leaf: u64| tree.cover(leaf * tree.leaf_len).len();
            let lens: Vec<usize> = (200..200 + (1 << tree.top)).map(len_at).collect();
            assert_eq!(lens.iter().max(), Some(&most), "lambda {parts}");
            let sum: usize = lens.iter().sum();
            assert!((sum as f64 / lens.len() as f64 - mean).abs() <= 0.06, "lambda {parts}");
        }
    }

    #[test]
    fn the_levels_cost_less_than_epsilon() {
        for levels in [LevelRule::Fit, LevelRule::Paper] {
            for parts in LAMBDAS {
                let plan = plan(1_000_000, 25_600, Parameters { levels, ..lambda(parts) });
                let sum =
                    plan.levels.iter().map(|level| level.cost).reduce(|a, b| a.checked_add(b).expect("fits"));
                let whole = 1 << plan.levels.len();
                assert_eq!(sum, Some(Ratio::new(whole - 1, whole).expect("a ratio")));
            }
        }
    }

    #[test]
    fn without_noise_and_with_room_for_all_items_the_lagged_window_is_exact() {
        let items = stream(400, 6, 1);
        let mut plan = plan(64, 6, lambda(1250));
        plan.levels.iter_mut().for_each(|level| (level.entries, level.kept) = (6, 6));
        let mut method = plan.hierarchy(Noise::off());
        for t in 1..=items.len() {
            method.insert(&items[t - 1..t]).expect("no entropy needed");
            let covered = plan.tree.covered(t as u64);
            let window = &items[covered.start as usize..covered.end as usize];
            let wanted = counts(window, 6);
            assert_eq!(method.estimates(), wanted);
            assert!((0..6).all(|item| method.frequency(item) == wanted[item as usize]));
        }
    }

    #[test]
    fn without_noise_an_estimate_misses_at_most_what_the_summaries_of_the_cover_miss() {
        let items = stream(1000, 30, 2);
        for released in [Counts::Original, Counts::Reduced] {
            let mut plan = plan(200, 30, Parameters { counts: released, ..lambda(2500) });
            plan.levels.iter_mut().for_each(|level| level.entries = level.entries.min(8));
            let mut method = plan.hierarchy(Noise::off());
            for (t, item) in (1..).zip(&items) {
                method.insert(&[*item]).expect("no entropy needed");
                let slack: u64 = plan.tree.cover(t).iter().map(|block| miss(&plan, block.level)).sum();
                let covered = plan.tree.covered(t);
                let window = &items[covered.start as usize..covered.end as usize];
                for (count, estimate) in counts(window, 30).into_iter().zip(method.estimates()) {
                    assert!(count - slack as f64 <= estimate && estimate <= count, "{estimate} for {count}");
                }
            }
        }
    }

    fn miss(plan: &Plan, level: u32) -> u64 {
        plan.tree.block_len(level) / (plan.levels[level as usize].entries as u64 + 1)
    }

    #[test]
    fn a_small_stream_gives_the_answers_of_the_definition() {
        for (counts, wanted) in [(Counts::Original, [4.0, 1.0, 0.0]), (Counts::Reduced, [3.0, 0.0, 0.0])] {
            let mut plan = plan(8, 3, Parameters { counts, ..lambda(10_000) });
            assert_eq!((plan.tree.leaf_len, plan.tree.top), (2, 2));
            plan.levels.iter_mut().for_each(|level| (level.entries, level.kept) = (2, 2));
            let mut method = plan.hierarchy(Noise::off());
            method.insert(&[0, 0, 1, 0, 2, 0, 0, 1]).expect("no entropy needed");
            assert_eq!(method.estimates(), wanted);
            method.insert(&[2]).expect("no entropy needed");
            assert_eq!(method.estimates(), wanted);
        }
        let blocks = Tree { leaf_len: 2, top: 2, window_len: 8 }.cover(10);
        let blocks: Vec<_> = blocks.iter().map(|block| (block.level, block.index)).collect();
        assert_eq!(blocks, [(0, 1), (1, 1), (0, 4)]);
    }

    #[test]
    fn answers_change_only_when_a_block_is_sealed() {
        let items = stream(500, 20, 3);
        let mut method = plan(100, 20, lambda(2500)).hierarchy(Noise::seeded(1));
        let mut before = method.estimates();
        for (t, item) in (1..).zip(&items) {
            method.insert(&[*item]).expect("seeded");
            let after = method.estimates();
            assert_eq!(after, method.estimates());
            assert_eq!(after == before, t % method.tree.leaf_len != 0, "at {t}");
            before = after;
        }
    }

    #[test]
    fn all_kept_keys_are_listed_on_request_and_else_those_that_reach_the_threshold() {
        let items = stream(200, 50, 4);
        let listed = |listing| {
            let mut plan = plan(100, 50, Parameters { listing, ..lambda(2500) });
            plan.levels.iter_mut().for_each(|level| level.kept = 10);
            let mut method = plan.hierarchy(Noise::off());
            method.insert(&items).expect("no entropy needed");
            let wanted = (0..50).filter(|&item| 4.0 <= method.frequency(item)).collect::<Vec<_>>();
            (method.heavy_hitters(4.0), wanted)
        };
        let (by_threshold, wanted) = listed(Listing::Threshold);
        assert_eq!(by_threshold, wanted);
        let (all, _) = listed(Listing::AllKeys);
        assert!(by_threshold.iter().all(|item| all.contains(item)) && by_threshold.len() < all.len());
    }

    /// One leaf of six items, two entries, sealed again and again; every cell is kept.
    fn audited(counts: Counts, blocks: [[u64; 6]; 2], exact: [[i32; 3]; 2], scale: u64) -> Trials {
        let mut plan = plan(6, 3, Parameters { counts, ..lambda(40_000) });
        let level = &mut plan.levels[0];
        (level.entries, level.kept) = (2, 3);
        level.law = laplace_of(scale);
        let mut method = plan.hierarchy(Noise::seeded(5));
        Trials::run(30_000, |side| {
            method.insert(&side.of(blocks[0], blocks[1])).expect("seeded");
            let released: Vec<i32> = method.estimates().iter().map(|&cell| cell as i32).collect();
            reveals(&released, &exact[0], &exact[1])
        })
    }

    #[test]
    fn a_sealed_leaf_costs_its_part_of_epsilon_and_less_noise_is_caught() {
        let blocks = [[0, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1]];
        // The only level of this tree has half of epsilon: scales 3 / 0.5 and 2 / 0.5.
        let law = |counts| level_plan(&task(6, 2, 1.0), counts, 0, 0).expect("a plan").law;
        assert_eq!((law(Counts::Original), law(Counts::Reduced)), (laplace_of(6), laplace_of(4)));
        let exact = [[5, 1, 0], [3, 0, 0]];
        audited(Counts::Original, blocks, exact, 6).check_costs(0.5);
        audited(Counts::Original, blocks, exact, 3).check_leaks(0.5);
        audited(Counts::Original, blocks, exact, 4).check_leaks(0.5);
        let blocks = [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]];
        let exact = [[2, 0, 0], [1, 1, 0]];
        audited(Counts::Reduced, blocks, exact, 4).check_costs(0.5);
        audited(Counts::Reduced, blocks, exact, 2).check_leaks(0.5);
    }

    #[test]
    fn noise_on_surviving_keys_alone_is_caught_by_the_presence_of_a_key() {
        let table = Table::new(laplace_of(6));
        let mut generator = Noise::seeded(6).generator().expect("seeded");
        let mut leaky = |side: Side| {
            let mut summary = Summary::new(2);
            side.of([0, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1]).iter().for_each(|&item| summary.add(item));
            let mut cells = [0; 3];
            summary.write_counts(&mut cells);
            let survives = cells.map(|cell| cell != 0);
            table.add_to(&mut cells, &mut generator);
            survives[1]
        };
        Trials::run(2_000, &mut leaky).check_leaks(0.5);
        let mut method = plan(6, 3, lambda(40_000));
        (method.levels[0].entries, method.levels[0].kept) = (2, 2);
        let mut method = method.hierarchy(Noise::seeded(7));
        let sound = Trials::run(30_000, |side| {
            method.insert(&side.of([0, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1])).expect("seeded");
            method.cover().flatten().any(|kept| kept.item == 1)
        });
        assert!(sound.bound() <= 0.5);
    }
}
