//! What is said on stderr beside the results, and in which colours.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use crate::arguments::{Colour, Talk};
use crate::harmless;

static TALK: OnceLock<Talk> = OnceLock::new();

/// Sets how much is said, once.
pub(crate) fn set(talk: Talk) {
    TALK.get_or_init(|| talk);
}

fn talk() -> Talk {
    *TALK.get().unwrap_or(&Talk { verbose: false, quiet: false, color: Colour::Auto })
}

/// A remark for people, unless they want quiet.
pub(crate) fn note(text: impl AsRef<str>) {
    if !talk().quiet {
        say(Style::Dim, text.as_ref());
    }
}

/// A remark for those who want to know more.
pub(crate) fn detail(text: impl AsRef<str>) {
    if talk().verbose {
        note(text);
    }
}

/// The last words of a failed run.
pub(crate) fn failure(text: &str) {
    say(Style::Red, text);
}

/// Nothing can be said where remarks cannot be written, and results matter more.
fn say(style: Style, text: &str) {
    let name = paint(style, "dpsw", is_coloured(&std::io::stderr()));
    let _ = writeln!(std::io::stderr(), "{name}: {}", harmless::lines(text));
}

/// Whether a bar may move on stderr.
pub(crate) fn shows_progress() -> bool {
    !talk().quiet && std::io::stderr().is_terminal()
}

/// Whether this output gets colours.
pub(crate) fn is_coloured(output: &impl IsTerminal) -> bool {
    let is_plain = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match talk().color {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => output.is_terminal() && !is_plain(),
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

/// The text in a style, where colours are wanted.
pub(crate) fn paint(style: Style, text: &str, is_coloured: bool) -> String {
    let code = match style {
        Style::Bold => 1,
        Style::Dim => 2,
        Style::Red => 31,
        Style::Green => 32,
        Style::Yellow => 33,
    };
    if is_coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}
