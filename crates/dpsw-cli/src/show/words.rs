//! Numbers with their nouns, as people say them, and what an answer is about.

use dpsw::{Plan, Unit, WindowView};
use dpsw_frontend::quantity::{self, grouped};

use crate::read::time;

/// `1 item`, `2,000 items`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number as f64))
}

/// `14.8 %`, `0.21 %`, `0.0039 %`: two digits that count, or more where there are more before the point.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent == 0.0 || !percent.is_finite() {
        return format!("{percent} %");
    }
    let digits = (1.0 - percent.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{percent:.digits$} %")
}

/// So much of a stream: a number of items or a time, as its window is.
pub(crate) fn stretch(plan: &Plan, len: u64) -> String {
    match plan.settings().window.time() {
        Some(_) => quantity::time(len),
        None => count(len, "item"),
    }
}

/// What a plan does, takes and promises; a tick is a millisecond.
pub(crate) fn plan(plan: &Plan) -> String {
    let text = plan.in_words(quantity::time);
    text.lines().map(hanging).collect::<Vec<_>>().join("\n")
}

/// Blanks below a label.
const LABEL_LEN: usize = 11;

/// A line with a label, whose text goes on beside it.
pub(crate) fn hanging(line: &str) -> String {
    let at = line.char_indices().nth(LABEL_LEN).map_or(line.len(), |(at, _)| at);
    let (label, text) = line.split_at(at);
    let indented = wrapped(text, WIDTH - LABEL_LEN).replace('\n', &format!("\n{}", " ".repeat(LABEL_LEN)));
    format!("{label}{indented}")
}

/// `2000-10-10 08:21:08`, in UTC.
fn clock(millis: u64) -> String {
    // Nobody reads the milliseconds of a window.
    let text = time::format(millis / 1000 * 1000);
    text.trim_end_matches('Z').replace('T', " ")
}

/// `2000-10-10 08:21:08 to 08:36:08 UTC`: the day of the end is said where it is another one.
pub(crate) fn span(start: u64, end: u64) -> String {
    let start = clock(start);
    let end = clock(end);
    let day = start.find(' ').map_or("", |len| &start[..=len]);
    format!("{start} to {} UTC", end.strip_prefix(day).unwrap_or(&end))
}

/// The width of what is not drawn on a screen: that of most terminals and of mails.
pub(crate) const WIDTH: usize = 80;

/// The text in lines of at most so many characters, cut between words.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    // A number stays with its sign, and a name with its value.
    let text = text.replace(" %", "\u{a0}%").replace(" = ", "\u{a0}=\u{a0}");
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let len = word.chars().count();
        let fits = used + 1 + len <= width;
        match used {
            0 => {}
            _ if fits => lines.push(' '),
            _ => lines.push('\n'),
        }
        used = if 0 < used && fits { used + 1 + len } else { len };
        lines.push_str(word);
    }
    lines.replace('\u{a0}', " ")
}

/// What was counted, what of it is not counted yet or left out, and what is promised, each on a line.
pub(crate) fn headline(view: &WindowView, capped: Option<u64>) -> Vec<String> {
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
    let plan = view.plan();
    let window = view.window();
    let covered = view.covered();
    let sealed_until = covered.end.clamp(window.start, window.end);
    let is_some = !covered.is_empty() && sealed_until < window.end;
    let newest = stretch(plan, window.end - sealed_until);
    let instead = match plan.method() {
        dpsw::plan::Method::Tuned(_) => "predicted from what came before",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_as_many_digits_as_are_worth_reading() {
        for (share, text) in [
            (0.147_63, "15 %"),
            (0.0147, "1.5 %"),
            (0.002_123, "0.21 %"),
            (3.9e-5, "0.0039 %"),
            (2.77, "277 %"),
            (0.0, "0 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), text);
        }
        assert_eq!((count(1, "item"), count(2000, "item")), ("1 item".into(), "2,000 items".into()));
    }

    #[test]
    fn long_sentences_are_cut_between_words() {
        assert_eq!(wrapped("no item stands out", 10), "no item\nstands out");
        assert_eq!(wrapped("averylongword and", 5), "averylongword\nand");
        assert_eq!(wrapped("", 5), "");
        assert_eq!(wrapped("with 50 % and epsilon = 1", 10), "with 50 %\nand\nepsilon = 1");
    }

    #[test]
    fn a_long_line_goes_on_beside_its_label() {
        let line = format!("promise    {}", "word ".repeat(20).trim_end());
        let lines = hanging(&line);
        let mut lines = lines.lines();
        assert!(lines.next().is_some_and(|line| line.starts_with("promise    word") && line.len() <= WIDTH));
        assert!(lines.all(|line| line.starts_with("           word") && line.len() <= WIDTH));
    }

    #[test]
    fn a_span_names_its_day_once() {
        let day = 86_400_000;
        assert_eq!(span(971_166_068_001, 971_166_968_001), "2000-10-10 08:21:08 to 08:36:08 UTC");
        assert_eq!(span(0, day), "1970-01-01 00:00:00 to 1970-01-02 00:00:00 UTC");
    }
}
