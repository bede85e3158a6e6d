//! What is said on stderr before a stream is read, and after.

use std::io::{IsTerminal, stdin};
use std::path::PathBuf;

use dpsw::{Plan, Unit};
use dpsw_frontend::memory::{self, MEMORY};
use dpsw_frontend::quantity::{grouped, size};

use crate::args::{Source, Stream};
use crate::count::feed::{Counts, Long};
use crate::count::plan::Chosen;
use crate::read::file::{is_stdin, name};
use crate::read::survey::Known;
use crate::show::answer::FoundFrom;
use crate::show::remark;
use crate::show::words::{count, percent, stretch};

/// What a run spends, what it can find, and what it takes.
pub(crate) fn before(source: &Source, chosen: &Chosen, paths: &[PathBuf], known: Known) {
    let stream = &source.stream;
    let plan = &chosen.plan;
    spends(plan, paths, source.account.ledger.is_some());
    let found = FoundFrom::new(plan, known.records());
    users(chosen, found);
    if stream.domain.is_some() {
        remark::note("the domain must be public: a list made from the stream itself reveals who was in it");
    }
    if let Some(found) = found {
        keys(found, plan);
    }
    memory(stream, chosen);
    if let (None, Some(delta)) = (stream.means.delta, plan.settings().delta) {
        remark::note(format!("delta = {:e}, the default where one is needed", delta.get()));
    }
    if paths.iter().any(|path| is_stdin(path)) && stdin().is_terminal() {
        remark::note("reading what is typed here; Ctrl-D ends it");
    }
    remark::detail(format!("the plan:\n{plan}"));
}

fn spends(plan: &Plan, paths: &[PathBuf], has_ledger: bool) {
    let names: Vec<String> = paths.iter().map(|path| name(path)).collect();
    let whom = match plan.settings().unit {
        Unit::Users { .. } => "in each window on the users of",
        _ => "on the events of",
    };
    remark::note(format!(
        "this run spends {} {whom} {}; each run on them spends it again (--save and --view do not{})",
        plan.claim(),
        names.join(", "),
        if has_ledger { "" } else { "; --ledger FILE adds it up" }
    ));
}

/// Where users are protected: how much of each counts, and how many it takes to stand out.
fn users(chosen: &Chosen, found: Option<FoundFrom>) {
    let plan = &chosen.plan;
    let settings = plan.settings();
    let Unit::Users { per_substream } = settings.unit else { return };
    remark::note(format!(
        "whole users are protected, for each window separately; {} of each user count in every {}, and shares are of the \
        items that count",
        count(per_substream.into(), "item"),
        stretch(plan, plan.substream_len())
    ));
    // A time window may bring more users than it has room for.
    if let (Some(_), Some(room)) = (settings.window.time(), plan.user_room()) {
        remark::note(format!(
            "of the users of {}, {} count: twice as many as --expected-items makes room for",
            stretch(plan, plan.substream_len()),
            grouped(room as f64)
        ));
    }
    let Some(prediction) = &chosen.prediction else { return };
    let least = prediction.detectable_share() * settings.window.expected_items() as f64;
    let least = found.map_or(least, |found| least.max(found.count as f64));
    let each = u64::from(per_substream) * settings.window.len().div_ceil(plan.substream_len());
    remark::note(format!(
        "an item stands out if it counts about {} times in a window: that takes {} at least",
        grouped(least.ceil()),
        count((least / each as f64).ceil() as u64, "user")
    ));
}

/// What share of a window a key needs to be found.
fn keys(found: FoundFrom, plan: &Plan) {
    if 1.0 < found.share {
        return remark::note(
            "no key can be frequent enough to be found: raise --epsilon, use a longer --window, or give a --domain",
        );
    }
    let time = plan.settings().window.time();
    let of = time.map_or_else(String::new, |time| {
        format!(", which holds about {} (--expected-items)", count(time.expected_items, "item"))
    });
    remark::note(format!(
        "without --domain, frequent keys are found in the stream, privately: usually those with {} of the window{of}",
        percent(found.share)
    ));
}

/// What is taken, where that is much, and what less would cost.
fn memory(stream: &Stream, chosen: &Chosen) {
    let plan = &chosen.plan;
    if stream.means.memory.is_none() && MEMORY < plan.sketch_bytes() {
        let whose = if plan.is_identity() { "each key has counters of its own, " } else { "counters take " };
        remark::note(format!("{whose}{}{}", size(plan.sketch_bytes()), less(chosen)));
    }
    if MEMORY < plan.search_bytes() {
        remark::note(format!("finding keys takes up to {} more while it counts", size(plan.search_bytes())));
    }
}

/// What a tenth of the memory would cost.
fn less(chosen: &Chosen) -> String {
    let (Some(request), Some(prediction)) = (&chosen.request, &chosen.prediction) else {
        return String::new();
    };
    let bytes = chosen.plan.sketch_bytes();
    match memory::tenth(request, prediction, bytes) {
        None => String::new(),
        Some(factor) if factor < 1.05 => format!("; --memory {} errs as little", bytes / 10),
        Some(factor) => format!("; with a tenth of it (--memory) errors would be {factor:.1} times as large"),
    }
}

/// What became of the records; how many there were is not said where their presence is private.
pub(crate) fn after(counts: Counts, long: Long, is_counted: bool) {
    let Counts { records, skipped, late, early, capped } = counts;
    let of_all = if is_counted { format!(" of {}", grouped(records as f64)) } else { String::new() };
    let notes = [
        (skipped, &*of_all, "records could not be read and were skipped"),
        (late, "", "records came too late for their interval; --lateness waits for them"),
        (early, "", "records have times beyond what can be kept"),
        (
            capped,
            &of_all,
            "records count for no item: their users had sent --per-user items, or there was no room for them; intervals are \
            about the others",
        ),
    ];
    for (count, of, what) in notes {
        let number = if is_counted { grouped(count as f64) } else { "some".to_owned() };
        if 0 < count {
            remark::note(format!("{number}{of} {what}"));
        }
    }
    if is_counted {
        remark::detail(format!("{} read", count(records, "record")));
    }
    too_long(long);
}

/// Never beside the results: it depends on the items.
fn too_long(Long { limit, records }: Long) {
    if let (Some(limit), 1..) = (limit, records) {
        remark::note(format!(
            "{} records have items of more than {limit} bytes; such items count but cannot be found: name them with --domain \
            or dpsw count",
            grouped(records as f64)
        ));
    }
}
