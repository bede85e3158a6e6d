//! `dpsw demo --log`: a made-up access log of a shop to try things on.
//!
//! The same number of lines gives the same log on every machine: nothing but whole numbers, sums, quotients and square roots
//! decides it.

use std::io::{Write, stdout};

use anyhow::Result;
use dpsw_frontend::quantity::grouped;

use crate::commands::demo::shop::{self, FALLING, Pages, RISING};
use crate::commands::demo::stream::Dice;
use crate::interrupt;
use crate::show::remark;

/// Bytes that are written at a time.
const BLOCK_LEN: usize = 256 * 1024;

/// Writes a log of this many lines on stdout.
pub(crate) fn write(lines: u64) -> Result<()> {
    remark::note(format!(
        "a made-up access log, always the same for {} lines; towards its end {RISING} rises and {FALLING} falls",
        grouped(lines as f64)
    ));
    let mut log = Log::new(lines);
    let mut output = stdout().lock();
    let mut block = Vec::with_capacity(BLOCK_LEN + 1024);
    for line in 0..lines {
        log.line(line, &mut block);
        if BLOCK_LEN <= block.len() {
            output.write_all(&block)?;
            block.clear();
            interrupt::check("interrupted; the log is not complete")?;
        }
    }
    output.write_all(&block)?;
    Ok(output.flush()?)
}

struct Log {
    lines: u64,
    dice: Dice,
    pages: Pages,
    /// How many clients there are.
    hosts: u32,
    clock: Clock,
}

impl Log {
    fn new(lines: u64) -> Self {
        // About 20 lines per client.
        let hosts = (lines / 20).clamp(50, u64::from(HOSTS_MAX)) as u32;
        Self { lines, dice: Dice::new(), pages: Pages::new(), hosts, clock: Clock::new() }
    }

    fn line(&mut self, line: u64, text: &mut Vec<u8>) {
        let progress = line as f64 / self.lines as f64;
        let host = self.host();
        let Self { dice, pages, clock, .. } = self;
        let time = clock.at(progress);
        let page = pages.requested(progress, dice);
        let [a, b, c, d] = address(host);
        let status = page.status(dice);
        let size = page.size(status, dice);
        let request = &page.request;
        let query = page.query(dice);
        let referrer = shop::referrer(dice);
        let agent = shop::agent(host);
        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "{a}.{b}.{c}.{d} - - [{time}] \"{request}{query} HTTP/1.1\" {status} {size} \"{referrer}\" \"{agent}\""
        );
    }

    /// A client; the first ones send the most.
    fn host(&mut self) -> u32 {
        let uniform = self.dice.uniform();
        (uniform * uniform * uniform.sqrt() * f64::from(self.hosts)) as u32
    }
}

/// The addresses of 198.18.0.0/15, which are set aside for tests and belong to nobody.
const HOSTS_MAX: u32 = 1 << 17;

fn address(host: u32) -> [u8; 4] {
    // Neighbouring numbers get addresses that lie apart: an odd factor keeps them different.
    let low = host.wrapping_mul(74_531) % HOSTS_MAX;
    (u32::from_be_bytes([198, 18, 0, 0]) + low).to_be_bytes()
}

/// Requests of the hours from 20:00 to 20:00 the next day: quiet at night, busy in the evening.
const HOURS: [u32; 24] =
    [17, 14, 10, 6, 4, 3, 2, 2, 2, 3, 5, 8, 11, 13, 14, 14, 13, 13, 13, 13, 14, 15, 16, 17];

/// The time of day, as text that changes once a second.
struct Clock {
    /// Share of the requests before each hour.
    before: Vec<f64>,
    second: Option<u32>,
    text: String,
}

impl Clock {
    fn new() -> Self {
        let total: u32 = HOURS.iter().sum();
        let before = (0..=HOURS.len()).map(|hour| {
            let sum: u32 = HOURS[..hour].iter().sum();
            f64::from(sum) / f64::from(total)
        });
        Self { before: before.collect(), second: None, text: String::new() }
    }

    /// When this share of the requests has come.
    fn at(&mut self, progress: f64) -> &str {
        let hour = self.before.partition_point(|&before| before <= progress) - 1;
        let start = self.before[hour];
        let end = self.before[hour + 1];
        let second = 3600 * hour as u32 + ((progress - start) / (end - start) * 3600.0) as u32;
        if self.second != Some(second) {
            self.second = Some(second);
            self.text = date(second);
        }
        &self.text
    }
}

/// Seconds since 20:00 on the first day, as access logs write them.
fn date(second: u32) -> String {
    let second = second + 20 * 3600;
    let day = 11 + second / 86_400;
    let hour = second / 3600 % 24;
    format!("{day}/May/2026:{hour:02}:{:02}:{:02} +0000", second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_lasts_a_day_and_time_never_goes_back() {
        let mut clock = Clock::new();
        assert_eq!(clock.at(0.0), "11/May/2026:20:00:00 +0000");
        let mut last = 0;
        for step in 0..100_000 {
            clock.at(f64::from(step) / 1e5);
            assert!(Some(last) <= clock.second, "{step}");
            last = clock.second.expect("a time");
        }
        assert_eq!(clock.at(0.999_999_9), "12/May/2026:19:59:59 +0000");
    }

    #[test]
    fn clients_have_addresses_of_their_own() {
        let mut addresses: Vec<[u8; 4]> = (0..HOSTS_MAX).map(address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), HOSTS_MAX as usize);
        assert!(addresses.iter().all(|[a, b, ..]| *a == 198 && matches!(b, 18 | 19)));
    }
}
