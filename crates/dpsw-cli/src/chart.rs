//! Items as bars with their intervals, for screens that are drawn again and again.

use dpsw_faces::quantity::grouped;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::answer::Row;
use crate::harmless::{fitted, width};

/// A row, and the true count where that is known.
pub(crate) struct Bar<'r> {
    pub(crate) row: &'r Row,
    pub(crate) truth: Option<f64>,
}

const NAME_LEN: usize = 24;
/// Columns beside the bar: rank, name, estimate and error, trend.
const BESIDE: usize = 4 + NAME_LEN + 2 + 9 + 2 + 7 + 3;

/// One line for each bar, all on the same scale.
pub(crate) fn lines(bars: &[Bar<'_>], width: u16, coloured: bool) -> Vec<Line<'static>> {
    let room = usize::from(width).saturating_sub(BESIDE + 1);
    let largest = bars.iter().map(|bar| bar.row.upper.max(bar.truth.unwrap_or(0.0))).fold(1.0, f64::max);
    bars.iter().map(|bar| line(bar, room, largest, coloured)).collect()
}

fn line(bar: &Bar<'_>, room: usize, largest: f64, coloured: bool) -> Line<'static> {
    let Row { rank, estimate, upper, trend, unsure, .. } = bar.row;
    let name = fitted(&bar.row.item, NAME_LEN - 1);
    let name = format!("{name}{}", " ".repeat(NAME_LEN - width(&name)));
    let (mark, colour) = match trend {
        Some("rising") => ("↑", Color::Green),
        Some("falling") => ("↓", Color::Yellow),
        _ => (" ", Color::Cyan),
    };
    let text = format!(
        "{rank:>3} {name}  {:>9} ±{:<7} {mark} ",
        grouped(estimate.max(0.0)),
        grouped(upper - estimate)
    );
    let plain = if *unsure { Style::new().add_modifier(Modifier::DIM) } else { Style::new() };
    let mut spans = vec![Span::styled(text, plain)];
    let colour = if coloured { plain.fg(colour) } else { plain };
    spans.extend(cells(bar, room, largest).into_iter().map(|(text, is_truth)| {
        let truth = if coloured { Style::new().fg(Color::Magenta) } else { Style::new() };
        Span::styled(text, if is_truth { truth.add_modifier(Modifier::BOLD) } else { colour })
    }));
    Line::from(spans)
}

/// The cells of a bar: solid up to the lower end of the interval, light up to the upper end, a mark at the truth.
fn cells(bar: &Bar<'_>, room: usize, largest: f64) -> Vec<(String, bool)> {
    let place = |value: f64| (value.max(0.0) / largest * room as f64) as usize;
    let (lower, upper) = (place(bar.row.lower), place(bar.row.upper));
    let truth = bar.truth.map(|truth| place(truth).min(room.saturating_sub(1)));
    let cell = |index: usize| {
        if index < lower {
            '█'
        } else if index <= upper {
            '░'
        } else {
            ' '
        }
    };
    let text = |range: std::ops::Range<usize>| (range.map(cell).collect::<String>(), false);
    match truth {
        None => vec![text(0..room)],
        Some(at) => vec![text(0..at), ("◆".to_owned(), true), text(at + 1..room)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(lower: f64, upper: f64) -> Row {
        Row {
            rank: 1,
            item: "item".into(),
            item_base64: None,
            estimate: f64::midpoint(lower, upper),
            lower,
            upper,
            share: None,
            trend: None,
            any_order: [None, None],
            unsure: false,
        }
    }

    #[test]
    fn bars_show_the_interval_and_the_truth() {
        let row = row(50.0, 100.0);
        let bar = Bar { row: &row, truth: Some(60.0) };
        let text: String = cells(&bar, 10, 100.0).into_iter().map(|(text, _)| text).collect();
        assert_eq!(text, "█████░◆░░░");
        let line = lines(&[bar], 80, false).remove(0);
        assert_eq!(line.width(), 79);
    }

    #[test]
    fn a_narrow_screen_has_no_room_for_bars() {
        let row = row(0.0, 1.0);
        for width in [0, 5, 54, 60] {
            assert_eq!(lines(&[Bar { row: &row, truth: Some(2.0) }], width, true).len(), 1);
        }
    }
}
