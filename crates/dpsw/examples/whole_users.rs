//! What it costs to protect everything that a user sends in a window instead of single events, and what caps do to a bot.

use std::collections::HashMap;

use dpsw::{Batch, DpswSketch, Settings};

const WINDOW: usize = 100_000;
const PAGES: [&str; 3] = ["/", "/search", "/login"];

/// Counts the same requests for three kinds of protection and prints private answers beside the truth.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (users, pages) = requests(2 * WINDOW as u64);
    for cap in [None, Some(1), Some(4)] {
        let settings = Settings::last_items(WINDOW as u64, 1.0)?.with_keys(PAGES);
        let settings = match cap {
            None => settings,
            Some(cap) => settings.with_users(cap),
        };
        let plan = settings.plan()?;
        let substream_len = usize::try_from(plan.substream_len())?;
        match cap {
            None => println!("One event is protected, by noise of {}.", plan.ranges()[0].law()),
            Some(cap) => {
                println!("\nWhole users are protected, by noise of {}. Of each user", plan.ranges()[0].law());
                println!("{cap} of {substream_len} successive requests count.");
            }
        }

        let mut sketch = DpswSketch::new(plan)?;
        let batch = Batch::text(&pages);
        sketch.extend(if cap.is_some() { batch.by(&users) } else { batch })?;
        let view = sketch.view();
        let counted = counted(&users, cap, substream_len);
        println!("  {:<8}{:>16}{:>10}{:>10}", "page", "estimate", "counted", "sent");
        for page in PAGES {
            let estimate = view.frequency(page)?;
            let sent = (WINDOW..2 * WINDOW).filter(|&request| pages[request] == page);
            let (truth, sent) = (sent.clone().filter(|&request| counted[request]).count(), sent.count());
            println!("  {page:<8}{estimate:>16}{truth:>10}{sent:>10}");
            // The requests are the same in every run, so only the noise varies: it passes ten standard errors with
            // probability below 2e-7 per page.
            assert!((estimate.value - truth as f64).abs() < 10.0 * estimate.standard_error());
        }
    }
    println!("\nA third of all requests are those of one bot to /login, of which a cap counts few.");
    Ok(())
}

/// Which requests count: of each user the first ones in each substream.
fn counted(users: &[u64], cap: Option<u32>, substream_len: usize) -> Vec<bool> {
    let mut counted = Vec::new();
    for substream in users.chunks(substream_len) {
        let mut sent: HashMap<u64, u32> = HashMap::new();
        for user in substream {
            let sent = sent.entry(*user).or_default();
            *sent += 1;
            counted.push(cap.is_none_or(|cap| *sent <= cap));
        }
    }
    counted
}

/// A bot, 2,000 people who send much, and others who send little.
fn requests(len: u64) -> (Vec<u64>, Vec<&'static str>) {
    let request = |number: u64| {
        if number.is_multiple_of(3) {
            return (0, "/login");
        }
        let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let people = if random.is_multiple_of(2) { 2_000 } else { 20_000 };
        let page = match random / 7 % 10 {
            0..6 => "/",
            6..9 => "/search",
            _ => "/login",
        };
        (1 + random / 70 % people, page)
    };
    (0..len).map(request).unzip()
}
