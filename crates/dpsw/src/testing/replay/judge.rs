//! Whether a pair of neighbours keeps the promise of its plan.

use std::collections::{BTreeMap, HashSet};

use crate::noise::law::Law;
use crate::plan::search::SearchPlan;
use crate::plan::settings::{Method, NoiseChoice};
use crate::plan::structure::Plan;
use crate::privacy::accounting::{lattice_delta, paper_rho, zcdp_rho};
use crate::privacy::parameters::{Delta, Epsilon};
use crate::testing::replay::play::Shown;
use crate::testing::replay::tape::{Entry, Look, Seal, Tape};

/// Rounding of sums.
const MARGIN: f64 = 1e-9;

/// What a stream showed, and what it sealed and let out.
pub(super) type Run = (Shown, Tape);

/// Everything in which a pair does not keep the promise.
pub(super) fn complaints(plan: &Plan, [first, second]: [&Run; 2]) -> Vec<String> {
    let refused = [first, second].into_iter().filter_map(|run| run.0.refused.clone());
    let mut complaints: Vec<String> = refused.chain(second.1.strayed.clone()).collect();
    if first.1.entries.len() != second.1.entries.len() {
        complaints.push(format!("{} and {} seals and looks", first.1.entries.len(), second.1.entries.len()));
    }
    complaints.extend(difference(&first.0, &second.0));
    complaints.extend(difference_of_taken(plan, &first.0.taken, &second.0.taken));
    complaints.extend(undrawn(first));
    complaints.extend(overspent(plan, &first.1, &second.1));
    complaints
}

/// The first thing that the two show differently.
fn difference(first: &Shown, second: &Shown) -> Option<String> {
    let place = first.notes.iter().zip(&second.notes).position(|(one, other)| one != other);
    let counts = [first.notes.len(), second.notes.len()];
    let place = place.or((counts[0] != counts[1]).then_some(counts[0].min(counts[1])))?;
    let told =
        |shown: &Shown| shown.notes.get(place).map_or_else(String::new, |(what, seen)| readable(what, seen));
    Some(format!("number {place}: {} against {}", told(first), told(second)))
}

fn readable(what: &str, seen: &[u8]) -> String {
    match std::str::from_utf8(seen) {
        Ok(text) => format!("{what}: {text}"),
        Err(_) => format!("{what} of {} bytes", seen.len()),
    }
}

/// What became of batches is the same; where presence is private, but for the event that is there or not.
fn difference_of_taken(plan: &Plan, first: &[[usize; 4]], second: &[[usize; 4]]) -> Option<String> {
    let differs = |(one, other): (&usize, &usize)| one.abs_diff(*other);
    let differences: usize = first.iter().flatten().zip(second.iter().flatten()).map(differs).sum();
    let allowed = usize::from(!plan.has_public_totals());
    let is_right = differences <= allowed && first.len() == second.len();
    (!is_right).then(|| format!("batches: {differences} events differ in what became of them"))
}

/// Sealed counters without a draw for each, or that did not come from the sampler, or changed after they were seen.
fn undrawn((shown, tape): &Run) -> Vec<String> {
    let mut complaints = Vec::new();
    if let Some(seal) = tape.seals().find(|seal| seal.draws != seal.exact.len()) {
        complaints.push(format!("{} counters were sealed with {} draws", seal.exact.len(), seal.draws));
    }
    let drawn: HashSet<&[i32]> = tape.seals().map(|seal| &seal.noisy[..]).collect();
    if let Some((place, _)) = shown.sealed.iter().find(|(_, cells)| !drawn.contains(&cells[..])) {
        complaints.push(format!("the counters of {place:?} are not those that the sampler made"));
    }
    if let Some(place) = shown.changed.first() {
        complaints.push(format!("the counters of {place:?} changed after they were seen"));
    }
    complaints
}

/// The loss along the path, if it is more than the plan has.
fn overspent(plan: &Plan, first: &Tape, second: &Tape) -> Vec<String> {
    let mut seals = Vec::new();
    let mut looks = Vec::new();
    for pair in first.pairs(second) {
        match pair {
            (Entry::Seal(one), Entry::Seal(other)) => seals.push((one, other)),
            (Entry::Look(one), Entry::Look(other)) => looks.push((one, other)),
            _ => {}
        }
    }
    let epsilon = plan.settings().epsilon.get();
    let of_keys = plan.search_plan().map_or(0.0, |search_plan| epsilon * search_plan.share().to_f64());
    let mut complaints = Vec::new();
    let keys = keys_epsilon(plan, &looks);
    if of_keys * (1.0 + MARGIN) < keys {
        complaints.push(format!("keys lose {keys} of {of_keys}"));
    }
    complaints.extend(match plan.method().noise() {
        NoiseChoice::Laplace => laplace_overspent(&seals, epsilon - of_keys),
        NoiseChoice::Gaussian => gaussian_overspent(plan, &seals, epsilon - of_keys),
    });
    complaints
}

/// By how much the counters of two seals differ.
fn changes<'s>(one: &'s Seal, other: &'s Seal) -> impl Iterator<Item = f64> + 's {
    let pairs = one.exact.iter().zip(&other.exact);
    pairs.map(|(one, other)| f64::from(one.abs_diff(*other))).filter(|change| *change != 0.0)
}

fn laplace_overspent(seals: &[(&Seal, &Seal)], epsilon: f64) -> Option<String> {
    let loss = |(one, other): &(&Seal, &Seal)| -> f64 {
        let scale = one.law.scale().unwrap_or(0.0);
        changes(one, other).map(|change| change / scale).sum()
    };
    let loss: f64 = seals.iter().map(loss).sum();
    (epsilon * (1.0 + MARGIN) < loss).then(|| format!("counters lose {loss} of {epsilon}"))
}

/// By ρ; or where all counters of one law move by one, by the exact sum over the lattice.
fn gaussian_overspent(plan: &Plan, seals: &[(&Seal, &Seal)], epsilon: f64) -> Option<String> {
    let of_keys = plan.search_plan().map_or(0.0, SearchPlan::delta);
    let delta = plan.settings().delta?.get() - of_keys;
    let (epsilon, delta) = (Epsilon::new(epsilon).ok()?, Delta::new(delta).ok()?);
    let variance = |seal: &Seal| if let Law::Gaussian { variance } = seal.law { variance } else { 0 };
    let rho: f64 = seals
        .iter()
        .map(|(one, other)| {
            changes(one, other).map(|change| change.powi(2)).sum::<f64>() / (2.0 * variance(one) as f64)
        })
        .sum();
    let allowed = match plan.method() {
        Method::Paper(_) => paper_rho(epsilon, delta),
        Method::Tuned(_) => zcdp_rho(epsilon, delta),
    };
    if rho <= allowed.get() * (1.0 + MARGIN) {
        return None;
    }
    let moved: Vec<f64> = seals.iter().flat_map(|(one, other)| changes(one, other)).collect();
    let least = seals.iter().map(|(seal, _)| variance(seal)).min().unwrap_or(0);
    let is_exact = moved.iter().all(|&change| change == 1.0)
        && lattice_delta(epsilon.get(), moved.len() as u64, least) <= delta.get() * (1.0 + MARGIN);
    (!is_exact).then(|| format!("counters lose rho = {rho}, and {} is planned", allowed.get()))
}

/// What keys lose: counts that grow are covered by the fresh noise, those that shrink by the lasting noise.
fn keys_epsilon(plan: &Plan, looks: &[(&Look, &Look)]) -> f64 {
    let Some(search_plan) = plan.search_plan() else { return 0.0 };
    let mut most: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for (one, other) in looks {
        let known = most.entry(one.search).or_default();
        let now = [grown(one, other), grown(other, one)];
        *known = [known[0].max(now[0]), known[1].max(now[1])];
    }
    let sum = |side: usize| most.values().map(|grown| grown[side]).sum::<u64>() as f64;
    let (lasting, fresh) = (search_plan.lasting_scale().to_f64(), search_plan.fresh_scale().to_f64());
    let loss = |grown: f64, shrunk: f64| grown / fresh + shrunk / lasting;
    loss(sum(0), sum(1)).max(loss(sum(1), sum(0)))
}

/// By how much the counts of the first are larger, where they are.
fn grown(one: &Look, other: &Look) -> u64 {
    let before = |key: &Vec<u8>| other.counts.get(key).copied().unwrap_or(0);
    one.counts.iter().map(|(key, &count)| count.saturating_sub(before(key))).sum()
}
