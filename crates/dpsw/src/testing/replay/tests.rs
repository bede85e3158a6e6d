//! The pairs that are run, and the mistakes that they catch.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::plan::settings::Unit;
use crate::plan::structure::Plan;
use crate::testing::fault::{Fault, planted};
use crate::testing::replay::dice::Dice;
use crate::testing::replay::judge::complaints;
use crate::testing::replay::neighbour::{chosen, neighbour};
use crate::testing::replay::plans::{Kind, kinds};
use crate::testing::replay::play::play;
use crate::testing::replay::story::{Operation, Story};
use crate::testing::replay::tape::taped;

/// What a pair did.
struct Pair {
    seals: usize,
    complaints: Vec<String>,
}

/// Which story is told of a plan.
#[derive(Debug, Clone, Copy)]
enum Tale {
    /// With every operation.
    Full,
    /// With some of them, and some more than once.
    Random,
    /// An event opens a substream, the clock lands there, and neighbours differ in that event.
    EarlyBeforeJump,
}

/// One stream, and a neighbour that is forced to seal the same.
fn pair(kind: Kind, seed: u64, tale: Tale) -> Pair {
    let mut dice = Dice::new(seed);
    let plan = kind.plan(&mut dice);
    let story = match tale {
        Tale::Full => Story::with(&Operation::of(&plan), &plan, &mut dice),
        Tale::Random => Story::random(&plan, &mut dice),
        Tale::EarlyBeforeJump => Story::early_before_jump(&plan, &mut dice),
    };
    let one = match tale {
        Tale::EarlyBeforeJump => story.early.expect("told by this tale"),
        Tale::Full | Tale::Random => chosen(&story, &mut dice),
    };
    let seed = dice.word();
    let first = taped(None, || play(&story, &plan, seed, 0));
    let other = neighbour(&story, one, &plan, &first.0.places, &mut dice);
    let script = first.1.entries.clone();
    let second = taped(Some(script), || play(&other, &plan, seed, 1));
    Pair { seals: first.1.seals().count(), complaints: complaints(&plan, [&first, &second]) }
}

/// Runs pairs of these kinds, each with its seed. Says how often they sealed.
#[track_caller]
fn check_hold(pairs: impl Iterator<Item = (u64, Kind)>, tale: Tale) -> usize {
    let (mut seals, mut failed) = (0, Vec::new());
    for (seed, kind) in pairs {
        let pair = pair(kind, seed, tale);
        seals += pair.seals;
        if let Some(complaint) = pair.complaints.first() {
            failed.push(format!("{tale:?} {seed} of {kind:?}: {complaint:.600}"));
        }
    }
    assert!(failed.is_empty(), "{} pairs:\n{}", failed.len(), failed[..failed.len().min(10)].join("\n"));
    seals
}

/// The fixed set: every kind of plan with every operation, each with its seed. It is never made smaller.
static FIXED: LazyLock<Vec<(u64, Kind, Plan)>> = LazyLock::new(|| {
    let kinds = kinds();
    assert_eq!(kinds.len(), KINDS, "no kind of plan is left out");
    (0..).zip(kinds).map(|(seed, kind)| (seed, kind, kind.plan(&mut Dice::new(seed)))).collect()
});

/// Those whose plans have something.
fn fixed(has_it: fn(&Plan) -> bool) -> impl Iterator<Item = (u64, Kind)> {
    FIXED.iter().filter(move |(_, _, plan)| has_it(plan)).map(|(seed, kind, _)| (*seed, *kind))
}

const KINDS: usize = 300;

#[test]
fn neighbours_that_seal_the_same_show_the_same_in_every_plan_with_every_operation() {
    let seals = check_hold(fixed(any), Tale::Full);
    assert!(20 * KINDS < seals, "{seals} seals");
}

#[test]
fn an_early_event_before_a_jump_of_the_clock_shows_nothing() {
    check_hold(fixed(is_timed), Tale::EarlyBeforeJump);
}

fn is_timed(plan: &Plan) -> bool {
    plan.settings().window.time().is_some()
}

/// `./soak replay` runs many more than the few hundred here, of other seeds.
#[test]
fn neighbours_that_seal_the_same_show_the_same_in_random_stories() {
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let (pairs, first) =
        (number("DPSW_REPLAY_PAIRS").unwrap_or(150), number("DPSW_REPLAY_SEED").unwrap_or(0));
    let (kinds, next, seals) = (kinds(), AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let pairs =
            std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|pair| *pair < pairs);
        let pairs = pairs.map(|pair| {
            let seed = first.wrapping_add(pair);
            (seed, *Dice::new(!seed).one_of(&kinds))
        });
        seals.fetch_add(check_hold(pairs, Tale::Random) as u64, Ordering::Relaxed);
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    println!("{pairs} pairs from seed {first}: {} seals, no difference", seals.load(Ordering::Relaxed));
}

/// How many pairs of the fixed set it takes to catch a mistake in plans that have it.
fn caught_after(fault: Fault, tale: Tale, has_it: fn(&Plan) -> bool) -> Option<(usize, String)> {
    for (count, (seed, kind)) in (1..).zip(fixed(has_it)) {
        if let Some(complaint) = planted(fault, || pair(kind, seed, tale)).complaints.pop() {
            return Some((count, complaint));
        }
    }
    None
}

fn any(_: &Plan) -> bool {
    true
}

fn has_workers(plan: &Plan) -> bool {
    Operation::of(plan).contains(&Operation::Work)
}

fn has_slices(plan: &Plan) -> bool {
    plan.has_slices()
}

fn is_pinned(plan: &Plan) -> bool {
    0 < plan.pinned()
}

fn is_found(plan: &Plan) -> bool {
    plan.search_plan().is_some()
}

fn is_private(plan: &Plan) -> bool {
    plan.settings().unit == Unit::AddRemove
}

fn is_by_users(plan: &Plan) -> bool {
    plan.settings().unit.per_substream().is_some()
}

fn is_counted(plan: &Plan) -> bool {
    !is_timed(plan)
}

#[test]
fn mistakes_are_caught_by_the_fixed_set() {
    let full = |fault, has_it: fn(&Plan) -> bool| (fault, Tale::Full, has_it);
    let plants = [
        // Noise that is missing somewhere.
        full(Fault::QuietSlicesAtFinish, has_slices),
        full(Fault::QuietWholeAtFinish, any),
        full(Fault::QuietAfterResume, any),
        full(Fault::QuietAfterJump, is_timed),
        full(Fault::QuietWhereBegun, is_counted),
        full(Fault::QuietOnceAbsorbed, has_workers),
        full(Fault::NoNoise, any),
        full(Fault::HalfNoise, any),
        // Less of it than neighbours need.
        full(Fault::AddRemoveNoise, any),
        full(Fault::FewSubstreams, is_by_users),
        full(Fault::WholeTwice, is_found),
        full(Fault::HalfOwnNoise, is_pinned),
        // Drawn again.
        full(Fault::NoisePerQuestion, any),
        full(Fault::NoiseAfterRestore, any),
        full(Fault::SlicesTwice, has_slices),
        full(Fault::FinishedTwice, any),
        // Exact counts, and what follows from them.
        full(Fault::ListedByCounts, is_found),
        full(Fault::OpenAnswers, any),
        full(Fault::ExactTotals, is_private),
        full(Fault::ExactBound, is_private),
        full(Fault::OpenPins, is_pinned),
        (Fault::JumpedPins, Tale::EarlyBeforeJump, |plan| is_timed(plan) && is_pinned(plan)),
        // Events that count where they should not.
        full(Fault::CountedTwice, any),
        full(Fault::PinnedTwice, is_pinned),
        full(Fault::SlidingCap, is_by_users),
        full(Fault::CapPerSlice, |plan| is_by_users(plan) && has_slices(plan)),
    ];
    let mut missed = Vec::new();
    for (fault, tale, has_it) in plants {
        let caught = caught_after(fault, tale, has_it);
        println!("{fault:?}: {:.150}", format!("{caught:?}"));
        if caught.is_none() {
            missed.push(fault);
        }
    }
    assert_eq!(missed, [], "mistakes that no pair of the fixed set catches");
}
