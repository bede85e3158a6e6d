//! Answers as a table for people.

use std::fmt::Write as _;

use dpsw_frontend::quantity::grouped;

use crate::show::answer::{Answer, Compared, Row};
use crate::show::harmless::{fitted, width};
use crate::show::remark::{Style, paint};
use crate::show::words::{WIDTH, count, wrapped};

/// The longest item that is shown in full, in columns, and the shortest place for one on a narrow screen.
const ITEM_LEN_MAX: usize = 48;
const ITEM_LEN_MIN: usize = 12;

/// Names of columns; the item comes second and is the only one on the left.
const TITLES: [&str; 6] = ["   #", "item", "estimate", "95 % interval", "share", "trend"];
const ITEM: usize = 1;

/// The answer as text, where it is known how wide the screen is so that no line is wider.
pub(crate) fn text(answer: &Answer, screen: Option<usize>, coloured: bool) -> String {
    let mut text: String = answer.headline.iter().map(|line| wrapped(line, WIDTH) + "\n").collect();
    text.push('\n');
    match &answer.why {
        Some(why) => text += &why.lines().map(|line| wrapped(&line, WIDTH) + "\n").concat(),
        None => rows(&mut text, answer, screen, coloured),
    }
    text + "\n"
}

fn rows(text: &mut String, answer: &Answer, screen: Option<usize>, coloured: bool) {
    let mut cells: Vec<[String; 6]> = vec![TITLES.map(|title| titled(title, answer))];
    cells.extend(answer.items.iter().map(row));
    fit(&mut cells, screen);
    let widths: [usize; 6] =
        std::array::from_fn(|column| cells.iter().map(|row| width(&row[column])).max().unwrap_or(0));
    let title = line(&cells[0], " ", &widths);
    let _ = writeln!(text, "{}", paint(Style::Bold, &title, coloured));
    for (row, cells) in answer.items.iter().zip(&cells[1..]) {
        let line = line(cells, if row.unsure { "~" } else { " " }, &widths);
        let style = if row.unsure { Some(Style::Dim) } else { trend_style(row) };
        let line = style.map_or_else(|| line.clone(), |style| paint(style, &line, coloured));
        let _ = writeln!(text, "{line}");
    }
    legend(text, answer);
}

/// Where the caps of users leave something out, no column is called an estimate of all that there is.
fn titled(title: &str, answer: &Answer) -> String {
    let is_capped = answer.capped.is_some_and(|capped| 0 < capped);
    if is_capped && title == "estimate" { "capped".to_owned() } else { title.to_owned() }
}

fn row(row: &Row) -> [String; 6] {
    let count = |value: f64| grouped(value.max(0.0));
    let trend = match row.trend {
        Some("rising") => "↑ rising",
        Some("falling") => "↓ falling",
        Some(_) => "steady",
        None => "",
    };
    [
        row.rank.to_string(),
        fitted(&row.item, ITEM_LEN_MAX),
        count(row.estimate),
        format!("{} – {}", count(row.lower), count(row.upper)),
        row.share.map_or_else(String::new, |share| format!("{:.2} %", 100.0 * share.max(0.0))),
        trend.to_owned(),
    ]
}

/// Cuts items where the screen is too narrow for them.
fn fit(cells: &mut [[String; 6]], screen: Option<usize>) {
    let Some(screen) = screen else { return };
    let others = (0..TITLES.len()).filter(|column| *column != ITEM);
    let widest = |column: usize| cells.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let taken: usize = others.map(|column| widest(column) + 2).sum();
    let room = screen.saturating_sub(taken + 1).clamp(ITEM_LEN_MIN, ITEM_LEN_MAX);
    for row in cells.iter_mut().filter(|row| room < width(&row[ITEM])) {
        row[ITEM] = fitted(&row[ITEM], room - 1);
    }
}

fn line(cells: &[String; 6], mark: &str, widths: &[usize; 6]) -> String {
    let mut line = String::new();
    for (column, (cell, widest)) in cells.iter().zip(widths).enumerate() {
        let blanks = " ".repeat(widest.saturating_sub(width(cell)));
        line += match column {
            0 => "",
            ITEM => " ",
            _ => "  ",
        };
        line += &match column {
            ITEM => format!("{mark}{cell}{blanks}"),
            _ if TITLES[column] == "trend" => cell.clone(),
            _ => format!("{blanks}{cell}"),
        };
    }
    line.trim_end().to_owned()
}

fn trend_style(row: &Row) -> Option<Style> {
    match row.trend {
        Some("rising") => Some(Style::Green),
        Some("falling") => Some(Style::Yellow),
        _ => None,
    }
}

/// What the signs mean, and what is not shown.
fn legend(text: &mut String, answer: &Answer) {
    if let Some(compared) = answer.trend_compares {
        let _ = writeln!(text, "  trend: {}, beyond noise and chance", compared.words());
    }
    if answer.items.iter().any(|row| row.unsure) {
        *text += "  ~ the true count may be less than a quarter of what is shown\n";
    }
    match answer.hidden {
        0 => {}
        1 => *text += "  1 more row may be noise alone; --all shows it\n",
        rows => {
            let _ = writeln!(text, "  {rows} more rows may be noise alone; --all shows them");
        }
    }
    if 0 < answer.more {
        let rows = count(answer.more as u64, "row");
        let _ = writeln!(text, "  {rows} more of at least this share; --top shows more");
    }
    if answer.items.first().is_some_and(|row| row.item.is_empty() && Some(0.5) <= row.share) {
        *text += "  most items are empty: is --column the right one?\n";
    }
}

impl Compared {
    /// What is held against what.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Halves => "the newer half of the window against the older",
            Self::Windows => "this window against the one before it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(items: &[&str]) -> Vec<[String; 6]> {
        let row = |item: &&str| ["1", item, "1,476", "1,451 – 1,500", "14.76 %", "steady"].map(str::to_owned);
        [TITLES.map(str::to_owned)].into_iter().chain(items.iter().map(row)).collect()
    }

    #[test]
    fn columns_are_aligned_whatever_the_items_are() {
        let mut cells = cells(&["日本語", "e\u{301}", "plain"]);
        fit(&mut cells, Some(80));
        let widths =
            std::array::from_fn(|column| cells.iter().map(|row| width(&row[column])).max().unwrap_or(0));
        let lines: Vec<String> = cells[1..].iter().map(|row| line(row, " ", &widths)).collect();
        let place = |line: &String| width(&line[..line.find("1,476").expect("an estimate")]);
        assert!(lines.iter().all(|line| place(line) == place(&lines[0])), "{lines:?}");
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let long = "x".repeat(48);
        for screen in [70, 80, 100, 200] {
            let mut cells = cells(&[&long]);
            fit(&mut cells, Some(screen));
            let widths =
                std::array::from_fn(|column| cells.iter().map(|row| width(&row[column])).max().unwrap_or(0));
            assert!(width(&line(&cells[1], " ", &widths)) <= screen, "{screen}");
        }
    }
}
