//! What is requested of a made-up shop, by whom, and what it replies.

use std::fmt::Write;
use std::sync::LazyLock;

use crate::commands::demo::stream::{Dice, Zipf, name};

/// The page that rises in the last part of the log.
pub(crate) const RISING: &str = "/summer-sale";
/// The page that falls there.
pub(crate) const FALLING: &str = "/live-stream";
/// The share of both pages together, which stays the same.
const MOVING: f64 = 0.065;
/// The share of the smaller one before they move.
const SMALL: f64 = 0.005;
/// Where in the log they start to move: soon enough before the end to show in a window of a tenth of it.
pub(crate) const MOVES_FROM: f64 = 0.85;

/// The most frequent pages, in this order.
const HEAD: [&str; 18] = [
    "/",
    "/search",
    "/products",
    "/style.css",
    "/cart",
    "/app.js",
    "/login",
    "/offers",
    "/favicon.ico",
    "/account",
    "/checkout",
    "/robots.txt",
    "/blog",
    "/wp-login.php",
    "/help",
    "/contact",
    "/.env",
    "/returns",
];
/// Pages in all.
const PAGES: u32 = 2_000;

const REFERRERS: [&str; 8] = [
    "-",
    "-",
    "-",
    "https://shop.example/",
    "https://shop.example/search",
    "https://shop.example/products",
    "https://search.example/",
    "https://news.example/today",
];

const AGENTS: [&str; 5] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/136.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.4 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/136.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.4 Safari/605.1.15",
    "Mozilla/5.0 (X11; Linux x86_64; rv:138.0) Gecko/20100101 Firefox/138.0",
];
/// The busiest clients are programs.
const PROGRAMS: [&str; 3] =
    ["ExampleBot/2.1 (+https://search.example/bot)", "curl/8.13.0", "ExampleMonitor/1.0"];

const WORDS: [&str; 6] = ["lamp", "chair", "blue+mug", "desk", "rug", "gift"];

/// Something that can be requested.
#[derive(Debug)]
pub(crate) struct Page {
    /// Method and path.
    pub(crate) request: String,
    /// Only scanners ask for it.
    is_missing: bool,
    is_search: bool,
    /// Bytes of a usual reply.
    bytes: u32,
}

impl Page {
    fn new(path: &str) -> Self {
        let method = if matches!(path, "/login" | "/checkout") { "POST" } else { "GET" };
        let length = path.bytes().fold(0, |sum, byte| (31 * sum + u32::from(byte)) % 60_000);
        Self {
            request: format!("{method} {path}"),
            is_missing: matches!(path, "/wp-login.php" | "/.env"),
            is_search: path == "/search",
            bytes: 600 + length,
        }
    }

    /// Without the method.
    pub(crate) fn path(&self) -> &str {
        self.request.split_once(' ').map_or("", |(_, path)| path)
    }

    pub(crate) fn status(&self, dice: &mut Dice) -> u16 {
        match dice.uniform() {
            _ if self.is_missing => 404,
            u if u < 0.90 => 200,
            u if u < 0.96 => 304,
            u if u < 0.985 => 302,
            u if u < 0.996 => 404,
            _ => 500,
        }
    }

    pub(crate) fn size(&self, status: u16, dice: &mut Dice) -> u32 {
        match status {
            200 => self.bytes + (dice.uniform() * 400.0) as u32,
            304 => 0,
            _ => 312,
        }
    }

    /// What is searched for.
    pub(crate) fn query(&self, dice: &mut Dice) -> String {
        if self.is_search { format!("?q={}", dice.one_of(&WORDS)) } else { String::new() }
    }
}

/// All pages that stand still, the most frequent first.
pub(crate) struct Pages {
    still: Vec<Page>,
    ranks: Zipf,
}

impl Pages {
    pub(crate) fn new() -> Self {
        let mut still: Vec<Page> = HEAD.iter().map(|path| Page::new(path)).collect();
        for number in 0..PAGES - HEAD.len() as u32 {
            let name = name(number);
            still.push(Page::new(&match number % 4 {
                0 => format!("/blog/{name}"),
                1 => format!("/images/{name}.jpg"),
                _ => format!("/products/{name}"),
            }));
        }
        Self { still, ranks: Zipf::new(PAGES) }
    }

    /// The page that is requested after so much of the log.
    pub(crate) fn requested(&self, progress: f64, dice: &mut Dice) -> &Page {
        moving(progress, dice).unwrap_or_else(|| &self.still[self.ranks.rank(dice)])
    }
}

/// One of the pages that move, if it is requested now.
fn moving(progress: f64, dice: &mut Dice) -> Option<&'static Page> {
    static RISES: LazyLock<Page> = LazyLock::new(|| Page::new(RISING));
    static FALLS: LazyLock<Page> = LazyLock::new(|| Page::new(FALLING));
    let moved = ((progress - MOVES_FROM) / (1.0 - MOVES_FROM)).max(0.0);
    let rising = SMALL + (MOVING - 2.0 * SMALL) * moved;
    match dice.uniform() {
        u if u < rising => Some(&RISES),
        u if u < MOVING => Some(&FALLS),
        _ => None,
    }
}

pub(crate) fn referrer(dice: &mut Dice) -> &'static str {
    dice.one_of(&REFERRERS)
}

/// What a client is; it stays the same.
pub(crate) fn agent(host: u32) -> &'static str {
    let of = |agents: &'static [&str]| agents[host as usize % agents.len()];
    if host < PROGRAMS.len() as u32 { of(&PROGRAMS) } else { of(&AGENTS) }
}

/// Requests until the pages that move are where they were.
const ROUND: u64 = 240_000;

/// Requests of the shop without end: what rises falls again, and what falls rises.
pub(crate) struct Visits {
    dice: Dice,
    pages: Pages,
    number: u64,
}

impl Visits {
    pub(crate) fn new() -> Self {
        Self { dice: Dice::new(), pages: Pages::new(), number: 0 }
    }

    /// So many requests, a JSON document per line.
    pub(crate) fn batch(&mut self, requests: u64) -> String {
        let mut lines = String::new();
        for _ in 0..requests {
            let page = self.pages.requested(swing(self.number), &mut self.dice);
            self.number += 1;
            let path = page.path();
            let status = page.status(&mut self.dice);
            // Writing to memory cannot fail. Paths of the shop need no escapes.
            let _ = writeln!(lines, r#"{{"page":"{path}","status":{status}}}"#);
        }
        lines
    }
}

/// How far the pages have moved: from where they stand to the end of the log and back.
fn swing(number: u64) -> f64 {
    let turned = (number % ROUND) as f64 / ROUND as f64;
    let there_and_back = 1.0 - (1.0 - 2.0 * turned).abs();
    MOVES_FROM + (1.0 - MOVES_FROM) * there_and_back
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_page_has_a_path_of_its_own() {
        let pages = Pages::new();
        let different: HashSet<&str> = pages.still.iter().map(|page| page.request.as_str()).collect();
        assert_eq!(different.len(), PAGES as usize);
    }

    #[test]
    fn requests_are_documents_and_pages_rise_and_fall_in_turns() {
        let mut visits = Visits::new();
        let quarter = ROUND / 4;
        // Around the start, the middle and the start of the next round.
        let [first, _, middle, _, last] = [(); 5].map(|()| visits.batch(quarter));
        for line in first.lines().take(500) {
            let document: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert!(document["page"].as_str().is_some_and(|page| page.starts_with('/')), "{line}");
            assert!(document["status"].is_u64(), "{line}");
        }
        let rising = |batch: &str| batch.matches(&format!("\"{RISING}\"")).count();
        assert!(3 * rising(&first) < 2 * rising(&middle) && 3 * rising(&last) < 2 * rising(&middle));
    }
}
