//! A small stream that counts, seals, saves and answers: right, or wrong in one way. Both go through the judgement of the
//! real one, which must let the right one pass and catch the wrong one.

use crate::audit::feed::Choices;
use crate::audit::repeats::{count_repeats, hash, repeated_stretches};
use crate::audit::report::{AuditError, Control, Effort};
use crate::audit::tails;
use crate::audit::tally::{Signs, altered, distance};
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

/// What a stream does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// What was sealed is sealed again when it is restored.
    NoiseAfterRestore,
    /// Every seal has the same key.
    SharedNoise,
    /// The keys of the seals come from a seed that is saved.
    SeedInState,
    /// So many bits of each key are random.
    ShortSeed(u32),
    /// Every chunk of counters gets the same words.
    ReusedWords,
    /// All but the first item of a batch count twice.
    CountedTwice,
    /// An error bound has the exact total in it.
    ExactBound,
    /// Which key is cut finely next follows from what is open.
    OpenRungs,
}

/// Holds each wrong stream against the right one.
pub(super) fn controls(effort: Effort) -> Result<Vec<Control>, AuditError> {
    let table = Table::new(Law::Laplace { scale: Ratio::new(2, 1).expect("1 is not zero") });
    let bits = ((effort.seals as u64).pow(2) / 2 / REPEATS).ilog2().min(32);
    let short = if bits == 32 { "a seed of 32 bits" } else { "a seed too short for so many seals" };
    type Judge<'a> = &'a dyn Fn(Slip) -> Result<u64, AuditError>;
    let cases: [(Slip, &'static str, &'static str, Judge<'_>); 8] = [
        (
            Slip::NoiseAfterRestore,
            "new noise after each restore",
            "sealed counters that differ after a restore",
            &|slip| restored(&table, slip),
        ),
        (Slip::SharedNoise, "noise shared by two ranges", "signs of the noise", &|slip| {
            shared(&table, slip, effort)
        }),
        (
            Slip::SeedInState,
            "noise from a seed in the saved state",
            "tails that share their noise",
            &|slip| retold(&table, slip),
        ),
        (Slip::ShortSeed(bits), short, "noise repeats", &|slip| repeated(&table, slip, effort.seals)),
        (
            Slip::ReusedWords,
            "random words used for 1,024 counters and again",
            "stretches of noise repeat",
            &|slip| reused(&table, slip),
        ),
        (
            Slip::CountedTwice,
            "items of a batch that count twice",
            "counters differ by more than the noise is made for",
            &|slip| exceeded(&table, slip),
        ),
        (
            Slip::ExactBound,
            "an exact total in an error bound",
            "a view from bytes answers otherwise",
            &|slip| unsaid(&table, slip),
        ),
        (Slip::OpenRungs, "keys cut finely by what is open", "what was sealed says otherwise", &|slip| {
            misled(&table, slip)
        }),
    ];
    let control = |(slip, name, by, judge): (Slip, &'static str, &'static str, Judge<'_>)| {
        let caught = judge(Slip::Nothing)? == 0 && judge(slip)? != 0;
        Ok(Control { name, caught, by: caught.then_some(by) })
    };
    cases.into_iter().map(control).collect()
}

/// The stream, and all that is saved of it.
#[derive(Debug, Clone)]
struct Small<'t> {
    slip: Slip,
    table: &'t Table,
    seed: [u8; 32],
    seals: u64,
    open: Vec<i32>,
    /// What was sealed, exact and noisy.
    sealed: Vec<(Vec<i32>, Vec<i32>)>,
}

impl<'t> Small<'t> {
    fn new(table: &'t Table, slip: Slip, counters: usize) -> Result<Self, AuditError> {
        let seed = *Noise::from_system().key()?;
        Ok(Self { slip, table, seed, seals: 0, open: vec![0; counters], sealed: Vec::new() })
    }

    fn count(&mut self, batch: &[usize]) {
        for (place, &counter) in batch.iter().enumerate() {
            let twice = self.slip == Slip::CountedTwice && 0 < place;
            self.open[counter] += 1 + i32::from(twice);
        }
    }

    fn key(&mut self) -> Result<[u8; 32], AuditError> {
        self.seals += 1;
        let mut key = *Noise::from_system().key()?;
        match self.slip {
            Slip::SharedNoise => key = self.seed,
            Slip::SeedInState => {
                key = self.seed;
                key[..8].copy_from_slice(&self.seals.to_le_bytes());
            }
            Slip::ShortSeed(bits) => {
                let fresh = u64::from_le_bytes(key[..8].try_into().expect("eight of 32 bytes"));
                key[..8].copy_from_slice(&(fresh >> (64 - bits)).to_le_bytes());
                key[8..].fill(0);
            }
            _ => {}
        }
        Ok(key)
    }

    /// Noisy counters, chunk by chunk.
    fn noised(&mut self, exact: &[i32]) -> Result<Vec<i32>, AuditError> {
        let key = self.key()?;
        let mut noisy = exact.to_vec();
        let mut generator = Generator::new(&key);
        for chunk in noisy.chunks_mut(CHUNK) {
            if self.slip == Slip::ReusedWords {
                generator = Generator::new(&key);
            }
            self.table.add_to(chunk, &mut generator);
        }
        Ok(noisy)
    }

    /// Seals what is open, and gives its noise.
    fn seal(&mut self) -> Result<Vec<i32>, AuditError> {
        let empty = vec![0; self.open.len()];
        let exact = std::mem::replace(&mut self.open, empty);
        let noisy = self.noised(&exact)?;
        let noise = noisy.iter().zip(&exact).map(|(noisy, exact)| noisy - exact).collect();
        self.sealed.push((exact, noisy));
        Ok(noise)
    }

    fn view(&self) -> Vec<Vec<i32>> {
        self.sealed.iter().map(|(_, noisy)| noisy.clone()).collect()
    }

    fn restore(&self) -> Result<Self, AuditError> {
        let mut restored = self.clone();
        if self.slip == Slip::NoiseAfterRestore {
            for number in 0..self.sealed.len() {
                restored.sealed[number].1 = restored.noised(&self.sealed[number].0)?;
            }
        }
        Ok(restored)
    }

    /// An answer with its error bound, of the stream itself or of a view from bytes, which has the noisy counters alone.
    fn answer(&self, is_live: bool) -> String {
        let sum = |cells: &[i32]| cells.iter().sum::<i32>();
        let (exact, noisy) = &self.sealed[0];
        let total = if is_live && self.slip == Slip::ExactBound { sum(exact) } else { sum(noisy) };
        format!("{} ± {total}", noisy[0])
    }

    /// The key that is cut finely next.
    fn finest(&self) -> Option<usize> {
        let sealed = self.sealed.last().map(|(_, noisy)| noisy);
        let counters = if self.slip == Slip::OpenRungs { Some(&self.open) } else { sealed };
        counters.and_then(|counters| largest(counters))
    }
}

fn largest(counters: &[i32]) -> Option<usize> {
    (0..counters.len()).max_by_key(|&key| counters[key])
}

fn restored(table: &Table, slip: Slip) -> Result<u64, AuditError> {
    let mut small = Small::new(table, slip, FEW)?;
    small.seal()?;
    let of = |_| Ok(altered(&small.view(), &small.restore()?.view()));
    (0..TRIED).map(of).sum()
}

fn shared(table: &Table, slip: Slip, effort: Effort) -> Result<u64, AuditError> {
    let mut signs = Signs::default();
    for _ in 0..effort.runs.div_ceil(FEW) {
        let mut small = Small::new(table, slip, FEW)?;
        signs.compare(&small.seal()?, &small.seal()?);
    }
    Ok(signs.related(effort.doubt()))
}

fn retold(table: &Table, slip: Slip) -> Result<u64, AuditError> {
    let mut small = Small::new(table, slip, FEW)?;
    small.seal()?;
    let tail = |number: usize| {
        let mut tail = small.restore()?;
        tail.count(&[number]);
        tail.seal()
    };
    let tails = (0..TRIED).map(tail).collect::<Result<Vec<_>, AuditError>>()?;
    let mut retold = 0;
    tails::judge(&tails, &mut retold, &mut Signs::default());
    Ok(retold)
}

fn repeated(table: &Table, slip: Slip, seals: usize) -> Result<u64, AuditError> {
    let mut small = Small::new(table, slip, FEW)?;
    let mut hashes = Vec::with_capacity(seals);
    for _ in 0..seals {
        hashes.push(hash(&small.seal()?));
        small.sealed.clear();
    }
    Ok(count_repeats(hashes))
}

fn reused(table: &Table, slip: Slip) -> Result<u64, AuditError> {
    let mut small = Small::new(table, slip, MANY)?;
    Ok(repeated_stretches(&[small.seal()?]))
}

/// The same items in other batches, but for one of them.
fn exceeded(table: &Table, slip: Slip) -> Result<u64, AuditError> {
    let mut choices = Choices::new()?;
    let mut counted = |changed: usize| -> Result<Vec<i32>, AuditError> {
        let mut small = Small::new(table, slip, FEW)?;
        let items: Vec<usize> = (0..FEW).map(|place| if place == 0 { changed } else { place % 7 }).collect();
        let mut rest = items.as_slice();
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(1 + choices.below(rest.len() as u64) as usize);
            small.count(batch);
            rest = after;
        }
        Ok(small.open)
    };
    let of = |_| Ok(u64::from(2 < distance(&counted(8)?, &counted(9)?)));
    (0..TRIED).map(of).sum()
}

fn unsaid(table: &Table, slip: Slip) -> Result<u64, AuditError> {
    let of = |_| {
        let mut small = Small::new(table, slip, FEW)?;
        small.count(&[0, 1, 2]);
        small.seal()?;
        Ok(u64::from(small.answer(true) != small.answer(false)))
    };
    (0..TRIED).map(of).sum()
}

/// The key is found again from the view.
fn misled(table: &Table, slip: Slip) -> Result<u64, AuditError> {
    let of = |_| {
        let mut small = Small::new(table, slip, FEW)?;
        small.seal()?;
        small.count(&[7; FEW]);
        Ok(u64::from(small.finest() != small.view().last().and_then(|sealed| largest(sealed))))
    };
    (0..TRIED).map(of).sum()
}
