//! What is said on stderr beside the results, and in which colours; a bar with rate and time left while files are read, a
//! spinner while work goes on, and nothing where it would be in the way.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Colour, Talk};
use crate::read::file::is_stdin;
use crate::show::harmless;

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
fn shows_progress() -> bool {
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

/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(100);

/// A bar over the bytes of these files.
pub(crate) fn bar_over(paths: &[PathBuf]) -> ProgressBar {
    if !shows_progress() || paths.iter().any(|path| is_stdin(path)) {
        return ProgressBar::hidden();
    }
    let mut len = 0;
    for path in paths {
        len += std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    }
    let bar = ProgressBar::new(len);
    let template = "{bar:30} {percent:>3} %  {binary_bytes_per_sec}  {eta} left  {msg}";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// A spinner with the time that passes, for work of unknown length.
pub(crate) fn spinner() -> ProgressBar {
    if !shows_progress() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(TURN);
    bar
}
