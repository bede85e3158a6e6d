//! The most frequent search terms, without a list of terms: those that many people search for are found privately.

use std::collections::HashMap;

use dpsw::{Batch, DpswSketch, Item, Settings};

const WINDOW: u64 = 100_000;

/// Counts searches and prints the terms that were found beside the truth.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan = Settings::last_items(WINDOW, 1.0)?.with_found_keys().with_delta(1e-10)?.plan()?;
    let discovery = plan.discovery().ok_or("the plan finds keys")?;
    let epoch = usize::try_from(discovery.epoch() * plan.substream_len())?;
    let (often, sure) = (discovery.count_found(0.99), discovery.count_found(1.0 - 1e-9));
    let once = discovery.seen_once();
    println!(
        "Terms are released after every {epoch} searches. A term is found with 99 % if {often} of those are"
    );
    println!("for it, and a term that one person searched for once with a probability of {once:.0e}.\n");

    let searches = searches(150_000);
    let mut sketch = DpswSketch::new(plan)?;
    sketch.extend(Batch::text(&searches[..epoch - 1]))?;
    println!("{} terms one search before the end of the epoch", sketch.view().top(10)?.len());
    assert!(sketch.view().top(10)?.is_empty());
    sketch.extend(Batch::text(&searches[epoch - 1..]))?;

    let view = sketch.view();
    let found = view.top(usize::MAX)?;
    println!("{} terms after it; the most frequent now:\n", found.len());
    let window = counts(&searches[searches.len() - WINDOW as usize..]);
    println!("{:<12}{:>14}{:>8}", "term", "searches", "truth");
    for ranked in &found[..8] {
        println!("{:<12}{:>14}{:>8}", ranked.item, ranked.estimate, window[&ranked.item]);
    }

    // 21 terms are that frequent in each run, and each is missed with probability 1e-9.
    let seen = counts(&searches[..epoch]);
    let is_found = |term: &Item<'_>| found.iter().any(|ranked| ranked.item == *term);
    assert!(seen.iter().filter(|(_, count)| sure <= **count as f64).all(|(term, _)| is_found(term)));
    // 13,126 terms occur once in each run, and each comes out with probability 3e-11: 4e-7 in all.
    assert!(seen.iter().filter(|(_, count)| **count == 1).all(|(term, _)| !is_found(term)));
    Ok(())
}

fn counts(searches: &[String]) -> HashMap<Item<'_>, usize> {
    let mut counts = HashMap::new();
    for term in searches {
        *counts.entry(Item::from(term)).or_default() += 1;
    }
    counts
}

/// Terms by rank: about 1 / rank of the searches for the first one are for a term.
fn searches(len: u64) -> Vec<String> {
    let term = |search: u64| {
        let uniform = (search.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as f64 / 2_f64.powi(32);
        match 30_000_f64.powf(uniform) as u64 {
            1 => "weather".to_owned(),
            2 => "news".to_owned(),
            3 => "maps".to_owned(),
            rank => format!("term {rank}"),
        }
    };
    (0..len).map(term).collect()
}
