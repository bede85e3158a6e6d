//! The most frequent search terms, without a list of terms: those that many people search for are found privately.

use std::collections::HashMap;

use dpsw::{Batch, DpswSketch, Item, Settings};

const WINDOW: u64 = 100_000;

/// Counts searches and prints the terms that were found beside the truth.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan = Settings::last_items(WINDOW, 1.0)?.with_found_keys().with_delta(1e-10)?.plan()?;
    let planned = plan.search_plan().ok_or("the plan finds keys")?;
    let search = usize::try_from(planned.search_len() * plan.substream_len())?;
    let (often, sure) = (planned.count_found(0.99), planned.count_found(1.0 - 1e-9));
    println!(
        "Searches are counted over {search} at a time. A term is found with 99 % once {often} of those are for it."
    );
    if let Some(items) = planned.items_until_listed(0.1, 0.5) {
        println!("A new term that every tenth search is for is listed after about {items} searches.\n");
    }

    let searches = searches(150_000);
    let first = usize::try_from(plan.substream_len())?;
    let mut sketch = DpswSketch::new(plan)?;
    sketch.extend(Batch::text(&searches[..first - 1]))?;
    println!("{} terms before anything is sealed", sketch.view().top(10)?.len());
    assert!(sketch.view().top(10)?.is_empty());
    sketch.extend(Batch::text(&searches[first - 1..]))?;

    let view = sketch.view();
    let found = view.top(usize::MAX)?;
    println!("{} terms at the end; the most frequent now:\n", found.len());
    let window = counts(&searches[searches.len() - WINDOW as usize..]);
    println!("{:<12}{:>14}{:>8}", "term", "searches", "truth");
    for ranked in &found[..8] {
        println!("{:<12}{:>14}{:>8}", ranked.item, ranked.estimate, window[&ranked.item]);
    }

    // Each term that is frequent enough in the first search is missed with probability 1e-9; there are some dozens.
    let seen = counts(&searches[..search.min(searches.len())]);
    let is_found = |term: &Item<'_>| found.iter().any(|ranked| ranked.item == *term);
    assert!(seen.iter().filter(|(_, count)| sure <= **count as f64).all(|(term, _)| is_found(term)));
    // Terms that occur fewer than four times are never looked at.
    assert!(seen.iter().filter(|(_, count)| **count < 4).all(|(term, _)| !is_found(term)));
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
