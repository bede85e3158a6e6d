//! BLMZ-Sketch (Blocki, Lee, Mukherjee, Zhou 2023) with the paper's four levels: Misra-Gries summaries screen
//! candidates, and separate noise decides their counts.
//!
//! Pure ε: reduced counts have L1 sensitivity 2, the candidates come from noisy scores of the whole public domain,
//! and their counts get fresh noise; each stage has half of a level's quarter of ε.

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

/// α in parts of a million, as the paper tunes it.
pub(super) const ALPHAS: [u64; 10] =
    [256_000, 105_000, 52_000, 25_600, 10_500, 5_200, 2_560, 1_050, 520, 256];
pub(super) const ALPHA_UNIT: u64 = 1_000_000;

/// Entries of a summary for each candidate, unless chosen otherwise.
pub const TRACKER_FACTOR: u32 = 4;

const LEVELS: u32 = 4;
const LEAVES: u64 = 16;

/// What may be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    /// α: a block of level i keeps 2^(i + 1) / α candidates.
    pub alpha: Ratio,
    /// Entries of a summary for each candidate.
    pub tracker_factor: u32,
}

/// BLMZ-Sketch with every derived number.
#[derive(Debug, Clone)]
pub struct Plan {
    task: Task,
    parameters: Parameters,
    tree: Tree,
    levels: Vec<LevelPlan>,
    law: Law,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LevelPlan {
    entries: usize,
    kept: usize,
}

impl Plan {
    pub fn new(task: Task, parameters: Parameters) -> Result<Self> {
        let Parameters { alpha, tracker_factor } = parameters;
        ensure!(0 < alpha.numerator(), "alpha must be above 0");
        ensure!(0 < tracker_factor, "a tracker needs at least one entry for each candidate");
        let (leaf_len, top) = (task.window_len.div_ceil(LEAVES), LEVELS - 1);
        ensure!(leaf_len << top <= task.window_len, "a window of {} is too short", task.window_len);
        let cost = task.part(1, 2 * u64::from(LEVELS))?;
        task.ensure_covers(&[cost; 2 * LEVELS as usize])?;
        let plan = |level| level_plan(&task, parameters, level);
        Ok(Self {
            task,
            parameters,
            tree: Tree { leaf_len, top, window_len: task.window_len },
            levels: (0..LEVELS).map(plan).collect::<Result<_>>()?,
            law: laplace(2, cost)?,
        })
    }

    /// Bytes of what is kept, sealed and open, at 8 bytes per entry.
    pub fn sketch_bytes(&self) -> u64 {
        let of_level = |(number, level): (u32, &LevelPlan)| {
            let blocks = self.task.window_len / self.tree.block_len(number) + 1;
            level.kept as u64 * blocks + level.entries as u64
        };
        8 * (0..).zip(&self.levels).map(of_level).sum::<u64>()
    }

    pub fn claim(&self) -> Claim {
        Claim::Pure(self.task.epsilon)
    }

    pub fn start(&self, noise: Noise) -> Result<Box<dyn Baseline>, EntropyError> {
        Ok(Box::new(self.hierarchy(noise)))
    }

    fn hierarchy(&self, noise: Noise) -> Hierarchy<TwoDraws> {
        let level = |(number, level): (u32, &LevelPlan)| {
            let excess = excess(level.entries, self.tree.block_len(number), self.task.domain_len);
            let seal = TwoDraws { excess, kept: level.kept, table: Table::new(self.law) };
            Level::new(Summary::new(level.entries), seal)
        };
        let levels = (0..).zip(&self.levels).map(level).collect();
        Hierarchy::new(self.task, self.tree, levels, Listing::Threshold, noise)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameters { alpha, tracker_factor } = self.parameters;
        write!(f, "alpha {alpha}, tracker factor {tracker_factor}")
    }
}

fn level_plan(task: &Task, parameters: Parameters, level: u32) -> Result<LevelPlan> {
    let Parameters { alpha, tracker_factor } = parameters;
    let wanted = alpha.denominator().checked_mul(2 << level).context("alpha has too many digits")?;
    let kept = wanted.div_ceil(alpha.numerator()).min(task.domain_len as u64);
    let entries = (kept * u64::from(tracker_factor)).min(task.domain_len as u64);
    Ok(LevelPlan { entries: entries as usize, kept: kept as usize })
}

/// Noisy scores of the whole domain choose the candidates, fresh noise their counts.
struct TwoDraws {
    excess: u32,
    kept: usize,
    table: Table,
}

impl Seal for TwoDraws {
    fn seal(&self, summary: &Summary, cells: &mut [i32], generator: &mut Generator) -> Box<[Kept]> {
        summary.write_reduced(self.excess, cells);
        self.table.add_to(cells, generator);
        let candidates = largest(cells, self.kept);
        summary.write_reduced(self.excess, cells);
        let mut counts: Vec<i32> = candidates.iter().map(|&item| cells[item as usize]).collect();
        self.table.add_to(&mut counts, generator);
        candidates.into_iter().zip(counts).map(|(item, count)| Kept { item, count }).collect()
    }

    fn bytes(&self) -> usize {
        Table::bytes(self.table.law())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::audit::{Side, Trials, check_uncorrelated, check_variance, reveals};
    use crate::baseline::budget::{laplace_of, task};
    use crate::baseline::model::{counts, stream};

    fn alpha(parts: u64) -> Parameters {
        let alpha = Ratio::new(parts, ALPHA_UNIT).expect("a ratio");
        Parameters { alpha, tracker_factor: TRACKER_FACTOR }
    }

    fn plan(window_len: u64, domain_len: usize, parameters: Parameters) -> Plan {
        Plan::new(task(window_len, domain_len, 1.0), parameters).expect("a plan")
    }

    #[test]
    fn plans_agree_with_the_examples() {
        let plan_of = |parts| plan(1_000_000, 25_600, alpha(parts));
        let example = plan_of(105_000);
        assert_eq!(example.tree, Tree { leaf_len: 62_500, top: 3, window_len: 1_000_000 });
        let sizes: Vec<_> = example.levels.iter().map(|level| (level.kept, level.entries)).collect();
        assert_eq!(sizes, [(20, 80), (39, 156), (77, 308), (153, 612)]);
        assert_eq!(example.law, laplace_of(16));
        let finest = plan_of(256);
        assert_eq!((finest.levels[3].kept, finest.levels[3].entries), (25_600, 25_600));
        let excess =
            |level: usize| excess(finest.levels[level].entries, finest.tree.block_len(level as u32), 25_600);
        assert_eq!((excess(3), excess(2)), (0, 0));
    }

    #[test]
    fn a_cover_has_two_to_five_blocks() {
        let tree = plan(160, 5, alpha(105_000)).tree;
        let blocks: Vec<usize> = (0..16).map(|leaf| tree.cover(160 + 10 * leaf).len()).collect();
        assert_eq!(blocks[..8], [2, 5, 4, 5, 3, 5, 4, 5]);
        assert_eq!(blocks[8..], blocks[..8]);
        assert_eq!(tree.covered(237), 70..230);
    }

    #[test]
    fn without_noise_and_with_room_for_all_items_the_lagged_window_is_exact() {
        let items = stream(500, 6, 1);
        let plan = plan(64, 6, alpha(1000));
        assert!(plan.levels.iter().all(|level| (level.kept, level.entries) == (6, 6)));
        let mut method = plan.hierarchy(Noise::off());
        for t in 1..=items.len() {
            method.insert(&items[t - 1..t]).expect("no entropy needed");
            let covered = plan.tree.covered(t as u64);
            let window = &items[covered.start as usize..covered.end as usize];
            assert_eq!(method.estimates(), counts(window, 6));
        }
    }

    #[test]
    fn without_noise_a_block_keeps_its_largest_reduced_counts() {
        let items = stream(64, 30, 2);
        let mut summary = Summary::new(12);
        items.iter().for_each(|&item| summary.add(item as u32));
        let seal = TwoDraws { excess: excess(12, 64, 30), kept: 5, table: Table::new(laplace_of(1)) };
        let mut generator = Noise::off().generator().expect("no entropy needed");
        let (mut cells, mut reduced) = ([0; 30], [0; 30]);
        let kept = seal.seal(&summary, &mut cells, &mut generator);
        summary.write_reduced(seal.excess, &mut reduced);
        assert_eq!(kept.len(), 5);
        for Kept { item, count } in &kept {
            assert_eq!(*count, reduced[*item as usize]);
            let exact = counts(&items, 30)[*item as usize];
            assert!(exact - 4.0 <= f64::from(*count) && f64::from(*count) <= exact);
        }
        let least = kept.iter().map(|kept| kept.count).min().expect("five are kept");
        let is_kept = |item: usize| kept.iter().any(|kept| kept.item as usize == item);
        assert!((0..30).all(|item| is_kept(item) || reduced[item] <= least));
    }

    /// Seals one block of these items again and again; returns what was kept.
    fn sealed(seal: &TwoDraws, summary: &Summary, generator: &mut Generator) -> [i32; 4] {
        let mut counts = [0; 4];
        for kept in seal.seal(summary, &mut [0; 4], generator) {
            counts[kept.item as usize] = kept.count;
        }
        counts
    }

    fn summary(items: &[u32], len_max: usize) -> Summary {
        let mut summary = Summary::new(len_max);
        items.iter().for_each(|&item| summary.add(item));
        summary
    }

    #[test]
    fn the_score_tells_nothing_about_the_noise_of_the_count() {
        let seal = TwoDraws { excess: 0, kept: 1, table: Table::new(laplace_of(16)) };
        let summary = summary(&[0; 1000], 4);
        let (mut scores, mut noises) = (Vec::new(), Vec::new());
        for seed in 0..10_000 {
            // The seal spends the draws of its generator in order, scores first: an equal generator shows the scores.
            let generator = || Noise::seeded(seed).generator().expect("seeded");
            let mut score = [1000, 0, 0, 0];
            seal.table.add_to(&mut score, &mut generator());
            scores.push(f64::from(score[0] - 1000));
            noises.push(f64::from(sealed(&seal, &summary, &mut generator())[0] - 1000));
        }
        check_uncorrelated(&scores, &noises);
        check_variance(&noises, laplace_of(16).variance(), 6.0);
        check_variance(&scores, laplace_of(16).variance(), 6.0);
    }

    /// One block of six items whose summaries with three entries differ most; all cells are kept.
    const BLOCKS: [[u32; 6]; 2] = [[0, 0, 0, 0, 1, 2], [3, 0, 0, 0, 1, 2]];

    fn reduced(side: Side) -> [i32; 4] {
        let mut cells = [0; 4];
        summary(&side.of(BLOCKS[0], BLOCKS[1]), 3).write_reduced(excess(3, 6, 4), &mut cells);
        cells
    }

    #[test]
    fn a_sealed_block_costs_its_part_of_epsilon_and_less_noise_is_caught() {
        let exact = [reduced(Side::Stream), reduced(Side::Neighbour)];
        assert_eq!(exact, [[3, 0, 0, 0], [2, 0, 0, 0]]);
        // These differ by 1 of 2, so a stage costs half of what it may: with scale 2, half of 1.
        let trials = |scale_of: u64| {
            let seal = TwoDraws { excess: 1, kept: 4, table: Table::new(laplace_of(scale_of)) };
            let mut generator = Noise::seeded(2).generator().expect("seeded");
            Trials::run(30_000, |side| {
                let summary = summary(&side.of(BLOCKS[0], BLOCKS[1]), 3);
                reveals(&sealed(&seal, &summary, &mut generator), &exact[0], &exact[1])
            })
        };
        trials(2).check_costs(0.5);
        trials(1).check_leaks(0.5);
    }

    #[test]
    fn both_stages_together_stay_within_their_cost() {
        // Blocks that move one item by +1 and another by -1; stage one must choose the first, stage two show it.
        let blocks = [[0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 2]];
        let seal = TwoDraws { excess: 0, kept: 1, table: Table::new(laplace_of(2)) };
        let mut generator = Noise::seeded(3).generator().expect("seeded");
        let trials = Trials::run(30_000, |side| {
            let summary = summary(&side.of(blocks[0], blocks[1]), 4);
            3 <= sealed(&seal, &summary, &mut generator)[0]
        });
        assert!(trials.bound() <= 2.0 && 0.5 < trials.bound(), "{}", trials.bound());
    }

    #[test]
    fn exact_keys_or_counts_without_noise_are_caught() {
        let blocks = [[0, 0, 0, 1, 1, 2], [2, 0, 0, 1, 1, 2]];
        let exact_keys = Trials::run(2_000, |side| {
            let mut cells = [0; 4];
            summary(&side.of(blocks[0], blocks[1]), 2).write_counts(&mut cells);
            cells[0] != 0
        });
        exact_keys.check_leaks(1.0);
        let table = Table::new(laplace_of(2));
        let mut generator = Noise::seeded(4).generator().expect("seeded");
        let no_second_stage = Trials::run(5_000, |side| {
            let exact = reduced(side);
            let mut scores = exact;
            table.add_to(&mut scores, &mut generator);
            largest(&scores, 1) == [0] && exact[0] == 3
        });
        no_second_stage.check_leaks(1.0);
    }
}
