//! What an answer is about, in words.

use dpsw::{Unit, WindowView};
use dpsw_faces::quantity::{self, grouped};

use crate::words::{count, span, stretch};

/// What was counted, what of it is not counted yet or left out, and what is promised, each on a line.
pub(crate) fn lines(view: &WindowView, capped: Option<u64>) -> Vec<String> {
    [Some(counted(view)), running(view), cap(view, capped), Some(promise(view))]
        .into_iter()
        .flatten()
        .collect()
}

fn counted(view: &WindowView) -> String {
    let window = view.window();
    let len = window.end - window.start;
    if view.plan().settings().window.time().is_some() {
        let items =
            view.items().map_or_else(String::new, |items| format!(", about {}", count(items, "item")));
        return format!("the last {}{items}: {}", quantity::time(len), span(window.start, window.end));
    }
    let all = window.end - view.began();
    match len == all {
        true => format!("all {}", count(len, "item")),
        false => format!("the last {} of {}", grouped(len as f64), count(all, "item")),
    }
}

fn promise(view: &WindowView) -> String {
    let whom = match view.plan().settings().unit {
        Unit::Users { .. } => "all that a user sends in a window",
        Unit::AddRemove => "the presence of each event",
        _ => "each event",
    };
    format!("{} for {whom}", view.claim())
}

/// What no sealed substream holds yet.
fn running(view: &WindowView) -> Option<String> {
    let (plan, window, covered) = (view.plan(), view.window(), view.covered());
    let sealed_until = covered.end.clamp(window.start, window.end);
    let is_some = !covered.is_empty() && sealed_until < window.end;
    let newest = stretch(plan, window.end - sealed_until);
    let instead = match plan.method() {
        dpsw::Method::Tuned(_) => "predicted from what came before",
        _ => "left out",
    };
    is_some.then(|| format!("the newest {newest} are not sealed yet and {instead}"))
}

/// What the caps of users leave out.
fn cap(view: &WindowView, capped: Option<u64>) -> Option<String> {
    let plan = view.plan();
    let Unit::Users { per_substream } = plan.settings().unit else { return None };
    let most = count(per_substream.into(), "item");
    let beyond = match capped {
        Some(0) => ", which nobody exceeded".to_owned(),
        Some(items) => format!("; {} beyond that count nowhere", count(items, "item")),
        None => String::new(),
    };
    Some(format!(
        "counts are capped: {most} of each user per {}{beyond}",
        stretch(plan, plan.substream_len())
    ))
}
