//! A small stream that counts, seals, saves and answers: right, or wrong in one way. Both go through the judgement of the
//! real one, which must let the right one pass and catch the wrong one.

use crate::audit::feed::Choices;
use crate::audit::repeats::{count_repeated_stretches, count_repeats, hash_noise};
use crate::audit::report::{AuditError, Control, Effort};
use crate::audit::tails;
use crate::audit::tally::{Signs, count_altered, unit_distance};
use crate::noise::generator::{Generator, Noise};
use crate::noise::law::Law;
use crate::noise::table::Table;
use crate::ratio::Ratio;

/// Counters of a small stream, and of one with many.
const FEW: usize = 64;
const MANY: usize = 2_560;
/// Random words taken at a time.
const CHUNK: usize = 1_024;
/// Restores, tails and batches that are tried.
const TRIED: usize = 20;
/// How often a seed that is too short repeats at least, on average.
const REPEATS: u64 = 10;

/// A mistake of a small stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PipelineSlip {
    Nothing,
    /// What was sealed is sealed again when it is restored.
    NoiseAfterRestore,
    /// Every seal has the same key.
    SharedNoise,
    /// The keys of the seals come from a seed that is saved.
    SeedInState,
    /// Only this many bits of each key are random.
    ShortSeed(u32),
    /// Every chunk of counters gets the same words.
    ReusedWords,
    /// All but the first item of a batch count twice.
    CountedTwice,
    /// An error bound has the exact total in it.
    ExactBound,
    /// Which key is cut finely next follows from what is open.
    OpenLevels,
}

/// Holds each wrong stream against the right one.
pub(super) fn run_controls(effort: Effort) -> Result<Vec<Control>, AuditError> {
    let table = Table::new(Law::Laplace { scale: Ratio::new(2, 1).expect("1 is not zero") });
    // A seed of this length repeats about `REPEATS` times among the seals (the birthday bound).
    let bits = ((effort.seals as u64).pow(2) / 2 / REPEATS).ilog2().min(32);
    let slips = [
        PipelineSlip::NoiseAfterRestore,
        PipelineSlip::SharedNoise,
        PipelineSlip::SeedInState,
        PipelineSlip::ShortSeed(bits),
        PipelineSlip::ReusedWords,
        PipelineSlip::CountedTwice,
        PipelineSlip::ExactBound,
        PipelineSlip::OpenLevels,
    ];
    slips.into_iter().map(|slip| slip.run_control(&table, effort)).collect()
}

impl PipelineSlip {
    fn run_control(self, table: &Table, effort: Effort) -> Result<Control, AuditError> {
        let (name, by) = self.texts();
        let right = self.count_violations(Self::Nothing, table, effort)?;
        Ok(Control::judge(name, by, right, self.count_violations(self, table, effort)?))
    }

    /// The name of the mistake, and what catches it.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Nothing => ("nothing", "nothing"),
            Self::NoiseAfterRestore => {
                ("new noise after each restore", "sealed counters that differ after a restore")
            }
            Self::SharedNoise => ("noise shared by two ranges", "signs of the noise"),
            Self::SeedInState => ("noise from a seed in the saved state", "tails that share their noise"),
            Self::ShortSeed(32) => ("a seed of 32 bits", "noise repeats"),
            Self::ShortSeed(_) => ("a seed too short for so many seals", "noise repeats"),
            Self::ReusedWords => {
                ("random words used for 1,024 counters and again", "stretches of noise repeat")
            }
            Self::CountedTwice => {
                ("items of a batch that count twice", "counters differ by more than the noise is made for")
            }
            Self::ExactBound => ("an exact total in an error bound", "a view from bytes answers otherwise"),
            Self::OpenLevels => ("keys cut finely by what is open", "what was sealed says otherwise"),
        }
    }

    /// Judges a stream with the `planted` mistake, or none, by the test that is made for this mistake.
    fn count_violations(self, planted: Self, table: &Table, effort: Effort) -> Result<u64, AuditError> {
        match self {
            Self::Nothing => Ok(0),
            Self::NoiseAfterRestore => count_altered_after_restore(table, planted),
            Self::SharedNoise => count_related_signs(table, planted, effort),
            Self::SeedInState => count_tails_alike(table, planted),
            Self::ShortSeed(_) => count_repeated_seals(table, planted, effort.seals),
            Self::ReusedWords => count_reused_words(table, planted),
            Self::CountedTwice => count_exceeded(table, planted),
            Self::ExactBound => count_other_answers(table, planted),
            Self::OpenLevels => count_misled(table, planted),
        }
    }
}

/// The stream, and all that is saved of it.
#[derive(Debug, Clone)]
struct SmallPipeline<'t> {
    slip: PipelineSlip,
    table: &'t Table,
    seed: [u8; 32],
    seals: u64,
    open: Vec<i32>,
    /// What was sealed, exact and noisy.
    sealed: Vec<(Vec<i32>, Vec<i32>)>,
}

impl<'t> SmallPipeline<'t> {
    fn new(table: &'t Table, slip: PipelineSlip, counters: usize) -> Result<Self, AuditError> {
        let seed = *Noise::from_system().draw_key()?;
        Ok(Self { slip, table, seed, seals: 0, open: vec![0; counters], sealed: Vec::new() })
    }

    fn count_batch(&mut self, batch: &[usize]) {
        for (place, &counter) in batch.iter().enumerate() {
            let twice = self.slip == PipelineSlip::CountedTwice && 0 < place;
            self.open[counter] += 1 + i32::from(twice);
        }
    }

    fn draw_key(&mut self) -> Result<[u8; 32], AuditError> {
        self.seals += 1;
        let mut key = *Noise::from_system().draw_key()?;
        match self.slip {
            PipelineSlip::SharedNoise => key = self.seed,
            PipelineSlip::SeedInState => {
                key = self.seed;
                // Two streams restored from one state give their next seal the same number (PRIVACY.md: rule 31).
                key[..8].copy_from_slice(&self.seals.to_le_bytes());
            }
            PipelineSlip::ShortSeed(bits) => {
                let fresh = u64::from_le_bytes(key[..8].try_into().expect("eight of 32 bytes"));
                key[..8].copy_from_slice(&(fresh >> (64 - bits)).to_le_bytes());
                key[8..].fill(0);
            }
            _ => {}
        }
        Ok(key)
    }

    /// Noisy counters, chunk by chunk.
    fn add_noise(&mut self, exact: &[i32]) -> Result<Vec<i32>, AuditError> {
        let key = self.draw_key()?;
        let mut noisy = exact.to_vec();
        let mut generator = Generator::new(&key);
        for chunk in noisy.chunks_mut(CHUNK) {
            if self.slip == PipelineSlip::ReusedWords {
                generator = Generator::new(&key);
            }
            self.table.add_to(chunk, &mut generator);
        }
        Ok(noisy)
    }

    /// Seals what is open, and gives its noise.
    fn seal_open(&mut self) -> Result<Vec<i32>, AuditError> {
        let empty = vec![0; self.open.len()];
        let exact = std::mem::replace(&mut self.open, empty);
        let noisy = self.add_noise(&exact)?;
        let noise = noisy.iter().zip(&exact).map(|(noisy, exact)| noisy - exact).collect();
        self.sealed.push((exact, noisy));
        Ok(noise)
    }

    fn view(&self) -> Vec<Vec<i32>> {
        self.sealed.iter().map(|(_, noisy)| noisy.clone()).collect()
    }

    fn restore(&self) -> Result<Self, AuditError> {
        let mut restored = self.clone();
        if self.slip == PipelineSlip::NoiseAfterRestore {
            for number in 0..self.sealed.len() {
                restored.sealed[number].1 = restored.add_noise(&self.sealed[number].0)?;
            }
        }
        Ok(restored)
    }

    /// An answer with its error bound, of the stream itself or of a view from bytes, which has the noisy counters alone.
    fn answer(&self, is_live: bool) -> String {
        let (exact, noisy) = &self.sealed[0];
        let summed = if is_live && self.slip == PipelineSlip::ExactBound { exact } else { noisy };
        format!("{} ± {}", noisy[0], summed.iter().sum::<i32>())
    }

    /// The key that is cut finely next.
    fn finest_key(&self) -> Option<usize> {
        let sealed = self.sealed.last().map(|(_, noisy)| noisy);
        let counters = if self.slip == PipelineSlip::OpenLevels { Some(&self.open) } else { sealed };
        counters.and_then(|counters| largest_counter(counters))
    }
}

fn largest_counter(counters: &[i32]) -> Option<usize> {
    (0..counters.len()).max_by_key(|&key| counters[key])
}

/// The sum over all tries.
fn sum_tries(mut try_once: impl FnMut() -> Result<u64, AuditError>) -> Result<u64, AuditError> {
    (0..TRIED).map(|_| try_once()).sum()
}

fn count_altered_after_restore(table: &Table, slip: PipelineSlip) -> Result<u64, AuditError> {
    let mut small = SmallPipeline::new(table, slip, FEW)?;
    small.seal_open()?;
    sum_tries(|| Ok(count_altered(&small.view(), &small.restore()?.view())))
}

fn count_related_signs(table: &Table, slip: PipelineSlip, effort: Effort) -> Result<u64, AuditError> {
    let mut signs = Signs::default();
    for _ in 0..effort.runs.div_ceil(FEW) {
        let mut small = SmallPipeline::new(table, slip, FEW)?;
        signs.compare_adjacent(&[small.seal_open()?, small.seal_open()?]);
    }
    Ok(signs.related(effort.doubt()))
}

fn count_tails_alike(table: &Table, slip: PipelineSlip) -> Result<u64, AuditError> {
    let mut small = SmallPipeline::new(table, slip, FEW)?;
    small.seal_open()?;
    let mut tails = Vec::with_capacity(TRIED);
    for number in 0..TRIED {
        let mut tail = small.restore()?;
        tail.count_batch(&[number]);
        tails.push(tail.seal_open()?);
    }
    let mut retold = 0;
    tails::judge_tails(&tails, &mut retold, &mut Signs::default());
    Ok(retold)
}

fn count_repeated_seals(table: &Table, slip: PipelineSlip, seals: usize) -> Result<u64, AuditError> {
    let mut small = SmallPipeline::new(table, slip, FEW)?;
    let mut hashes = Vec::with_capacity(seals);
    for _ in 0..seals {
        hashes.push(hash_noise(&small.seal_open()?));
        // The hashes are enough, and 400,000 seals would take 200 MB.
        small.sealed.clear();
    }
    Ok(count_repeats(hashes))
}

fn count_reused_words(table: &Table, slip: PipelineSlip) -> Result<u64, AuditError> {
    let mut small = SmallPipeline::new(table, slip, MANY)?;
    Ok(count_repeated_stretches(&[small.seal_open()?]))
}

/// The same items in other batches, but for one of them.
fn count_exceeded(table: &Table, slip: PipelineSlip) -> Result<u64, AuditError> {
    let mut choices = Choices::new()?;
    sum_tries(|| {
        let first = count_in_batches(SmallPipeline::new(table, slip, FEW)?, 8, &mut choices);
        let second = count_in_batches(SmallPipeline::new(table, slip, FEW)?, 9, &mut choices);
        Ok(u64::from(2 < unit_distance(&first, &second)))
    })
}

/// The counters of a stream whose first item is `changed`, fed in batches of random sizes.
fn count_in_batches(mut small: SmallPipeline<'_>, changed: usize, choices: &mut Choices) -> Vec<i32> {
    let items: Vec<usize> = (0..FEW).map(|place| if place == 0 { changed } else { place % 7 }).collect();
    for batch in choices.cut_batches(&items) {
        small.count_batch(batch);
    }
    small.open
}

fn count_other_answers(table: &Table, slip: PipelineSlip) -> Result<u64, AuditError> {
    sum_tries(|| {
        let mut small = SmallPipeline::new(table, slip, FEW)?;
        small.count_batch(&[0, 1, 2]);
        small.seal_open()?;
        Ok(u64::from(small.answer(true) != small.answer(false)))
    })
}

/// The key is found again from the view.
fn count_misled(table: &Table, slip: PipelineSlip) -> Result<u64, AuditError> {
    sum_tries(|| {
        let mut small = SmallPipeline::new(table, slip, FEW)?;
        small.seal_open()?;
        small.count_batch(&[7; FEW]);
        let sealed = small.view().last().and_then(|sealed| largest_counter(sealed));
        Ok(u64::from(small.finest_key() != sealed))
    })
}
