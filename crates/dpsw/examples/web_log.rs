//! The most visited pages among the last 50,000 requests of an access log, from a public list of pages.

use dpsw::{Batch, DpswSketch, Item, Settings};

const WINDOW: usize = 50_000;
const PAGES: [&str; 6] = ["/", "/search", "/cart", "/about", "/help", "/login"];

/// Counts a log and prints private answers beside the truth.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan = Settings::last_items(WINDOW as u64, 1.0)?.with_keys(PAGES).plan()?;
    println!("{}\n", plan.contract());

    let log = access_log(120_000);
    let mut sketch = DpswSketch::new(plan)?;
    for lines in log.chunks(1_000) {
        let pages: Vec<&str> = lines.iter().map(|line| page(line)).collect();
        sketch.extend(Batch::text(&pages))?;
    }

    let view = sketch.view();
    let recent = &log[log.len() - WINDOW..];
    println!("{:<10}{:>14}{:>8}", "page", "requests", "truth");
    for hit in view.top(4)? {
        let truth = recent.iter().filter(|line| Item::from(page(line)) == hit.item).count();
        println!("{:<10}{:>14}{truth:>8}", hit.item, hit.estimate);
        // The log is the same in every run, so only the noise varies: it passes ten standard errors with
        // probability below 1e-10 per page.
        assert!((hit.estimate.value - truth as f64).abs() < 10.0 * hit.estimate.standard_error());
    }

    let searches = view.frequency("/search")?;
    let interval = searches.interval(0.99)?;
    let percent = |count: f64| 100.0 * count / WINDOW as f64;
    println!(
        "\n/search has {:.2} % of all requests, with 99 % confidence between {:.2} % and {:.2} %",
        percent(searches.value),
        percent(interval.start),
        percent(interval.end)
    );
    Ok(())
}

/// The path of a request. A line without one still takes its position in the stream, like a page that is not listed.
fn page(line: &str) -> &str {
    line.split(' ').nth(6).unwrap_or_default()
}

/// Half of the visitors open the start page, and some ask for pages that nobody listed.
fn access_log(len: u64) -> Vec<String> {
    let line = |request: u64| {
        let visitor = request.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let page = match visitor % 100 {
            0..50 => "/",
            50..70 => "/search",
            70..82 => "/cart",
            82..90 => "/about",
            90..94 => "/help",
            94..97 => "/login",
            _ => "/wp-admin.php",
        };
        let minute = request / 60 % 60;
        let address = visitor % 250;
        format!(
            r#"203.0.113.{address} - - [02/Mar/2026:10:{minute:02}:00 +0000] "GET {page} HTTP/1.1" 200 512"#
        )
    };
    (0..len).map(line).collect()
}
