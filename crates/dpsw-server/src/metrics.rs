//! Metrics, and no others than these: events where their number is public, uptime, health, bytes of plans, and how long
//! questions take. Whatever else the service could count (memory, journal, rejects, ingest requests, time of seals) depends on
//! items or on who came.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::sync::ShareAnyway;

/// The most microseconds of each class of questions.
const BUCKETS_US: [u64; 10] = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000];

/// The counts since the start.
#[derive(Debug)]
pub(crate) struct Metrics {
    started_ms: u64,
    /// Of sources whose arrivals are public.
    events: RwLock<BTreeMap<String, AtomicU64>>,
    questions: Latency,
}

#[derive(Debug, Default)]
struct Latency {
    /// How many questions took at most so long; the last class is for all that took longer.
    classes: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

/// The numbers of the moment of asking.
pub(crate) struct Now<'a> {
    pub(crate) now_ms: u64,
    pub(crate) is_ready: bool,
    /// Streams, and the bytes of their plans.
    pub(crate) plans: &'a [(String, u64)],
}

impl Metrics {
    pub(crate) fn new(started_ms: u64) -> Self {
        Self { started_ms, events: RwLock::default(), questions: Latency::default() }
    }

    /// Counts events of a source whose arrivals are public.
    pub(crate) fn add_events(&self, source: &str, events: usize) {
        let known = self.events.read_anyway();
        if let Some(count) = known.get(source) {
            count.fetch_add(events as u64, Ordering::Relaxed);
            return;
        }
        drop(known);
        let mut all = self.events.write_anyway();
        *all.entry(source.to_owned()).or_default().get_mut() += events as u64;
    }

    pub(crate) fn add_question(&self, elapsed: Duration) {
        let us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let class = BUCKETS_US.partition_point(|most| *most < us);
        self.questions.classes[class].fetch_add(1, Ordering::Relaxed);
        self.questions.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// All of them, as Prometheus reads them.
    pub(crate) fn write(&self, now: &Now<'_>) -> String {
        let mut page = Page::default();
        page.begin("dpsw_build_info", "gauge", "The version of the service.");
        page.line("dpsw_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        page.begin("dpsw_uptime_seconds", "gauge", "Seconds since the service started.");
        page.line("dpsw_uptime_seconds", &[], now.now_ms.saturating_sub(self.started_ms) / 1000);
        page.begin("dpsw_ready", "gauge", "Whether batches are taken.");
        page.line("dpsw_ready", &[], u8::from(now.is_ready));
        page.begin("dpsw_plan_bytes", "gauge", "Bytes of the plan of a stream.");
        for (stream, bytes) in now.plans {
            page.line("dpsw_plan_bytes", &[("stream", stream)], bytes);
        }
        let name = "dpsw_events_total";
        page.begin(name, "counter", "Events of a source whose arrivals are public, since the start.");
        for (source, events) in self.events.read_anyway().iter() {
            page.line(name, &[("source", source)], events.load(Ordering::Relaxed));
        }
        self.questions.write(&mut page);
        page.0
    }
}

impl Latency {
    fn write(&self, page: &mut Page) {
        let name = "dpsw_question_seconds";
        page.begin(name, "histogram", "How long questions took.");
        let mut count = 0;
        let ends = BUCKETS_US.iter().map(|us| (*us as f64 / 1e6).to_string()).chain(["+Inf".to_owned()]);
        for (class, end) in self.classes.iter().zip(ends) {
            count += class.load(Ordering::Relaxed);
            page.line("dpsw_question_seconds_bucket", &[("le", &end)], count);
        }
        page.line("dpsw_question_seconds_sum", &[], self.sum_us.load(Ordering::Relaxed) as f64 / 1e6);
        page.line("dpsw_question_seconds_count", &[], count);
    }
}

/// A page in the text format of Prometheus.
#[derive(Debug, Default)]
pub(crate) struct Page(pub(crate) String);

impl Page {
    pub(crate) fn begin(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string takes all");
    }

    pub(crate) fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        writeln!(self.0, "{name}{labels} {value}").expect("a string takes all");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_allowed_metrics_and_no_others() {
        let metrics = Metrics::new(1_000);
        metrics.add_events("web", 3);
        metrics.add_events("web", 4);
        metrics.add_question(Duration::from_micros(250));
        metrics.add_question(Duration::from_secs(5));
        let plans = [("pages".to_owned(), 42)];
        let page = metrics.write(&Now { now_ms: 61_000, is_ready: true, plans: &plans });
        for line in [
            "dpsw_events_total{source=\"web\"} 7",
            "dpsw_uptime_seconds 60",
            "dpsw_ready 1",
            "dpsw_plan_bytes{stream=\"pages\"} 42",
            "dpsw_question_seconds_bucket{le=\"0.0001\"} 0",
            "dpsw_question_seconds_bucket{le=\"0.00025\"} 1",
            "dpsw_question_seconds_bucket{le=\"+Inf\"} 2",
            "dpsw_question_seconds_sum 5.00025",
            "dpsw_question_seconds_count 2",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
        }
        let kinds: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(
            kinds,
            [
                "dpsw_build_info gauge",
                "dpsw_uptime_seconds gauge",
                "dpsw_ready gauge",
                "dpsw_plan_bytes gauge",
                "dpsw_events_total counter",
                "dpsw_question_seconds histogram"
            ]
        );
    }

    #[test]
    fn labels_are_escaped() {
        let mut page = Page::default();
        page.line("x", &[("item", "a\"b\\c\nd")], 1);
        assert_eq!(page.0, "x{item=\"a\\\"b\\\\c\\nd\"} 1\n");
    }
}
