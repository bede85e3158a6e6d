//! Full screens that are drawn again and again: items as bars with their intervals, and `dpsw top --watch`.

use std::io::{IsTerminal, stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use dpsw_frontend::quantity::grouped;
use ratatui::DefaultTerminal;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::count::feed::{Counts, Feed};
use crate::fault::Fault;
use crate::interrupt;
use crate::show::answer::{Answer, Question, Row};
use crate::show::harmless::{self, fitted, width};
use crate::show::remark;
use crate::show::words::{count, wrapped};

/// How often the screen is drawn.
const FRAME: Duration = Duration::from_millis(200);

/// Refuses to draw where nobody could see it.
pub(crate) fn check_terminal() -> Result<()> {
    if stdout().is_terminal() {
        Ok(())
    } else {
        Err(Fault::usage("--watch needs a terminal; use --every with --ndjson in a pipe"))
    }
}

/// The full screen; it is given back when this is dropped.
pub(crate) struct Screen(DefaultTerminal);

impl Screen {
    pub(crate) fn open() -> Result<Self> {
        Ok(Self(ratatui::try_init().context("the terminal cannot be drawn on")?))
    }

    pub(crate) fn draw(&mut self, lines: impl FnOnce(u16) -> Vec<Line<'static>>, footer: &str) -> Result<()> {
        self.0.draw(|frame| {
            let [body, foot] =
                Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
            frame.render_widget(Paragraph::new(lines(body.width)), body);
            let foot_line = Line::styled(footer.to_owned(), Style::new().add_modifier(Modifier::DIM));
            frame.render_widget(Paragraph::new(foot_line), foot);
        })?;
        Ok(())
    }

    /// Whether the person at the terminal wants to leave. Ctrl-C counts as an interrupt.
    pub(crate) fn wants_to_leave() -> Result<bool> {
        while event::poll(Duration::ZERO)? {
            let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event::read()?
            else {
                continue;
            };
            match code {
                KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => {
                    interrupt::request();
                    return Ok(true);
                }
                KeyCode::Char('q') | KeyCode::Esc => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// The live view of a stream.
pub(crate) struct Watch {
    screen: Screen,
    question: Question,
    started: Instant,
    drawn: Option<Instant>,
}

impl Watch {
    pub(crate) fn open(question: Question) -> Result<Self> {
        Ok(Self { screen: Screen::open()?, question, started: Instant::now(), drawn: None })
    }

    /// How much was read and how fast, where that is public.
    fn pace(&self, read: Option<Counts>) -> String {
        let Some(Counts { records, .. }) = read else { return String::new() };
        let rate = records as f64 / self.started.elapsed().as_secs_f64();
        format!("  {}, {} per second", count(records, "record"), grouped(rate))
    }

    fn draw(&mut self, feed: &Feed<'_>, is_complete: bool) -> Result<()> {
        let answer = self.question.ask(&feed.sketch.view(), Some(feed.counts))?;
        let footer = if is_complete { "end of the input · q to leave" } else { "q to leave" };
        let title = format!("dpsw top  {}{}", harmless::lines(&feed.source), self.pace(answer.read));
        self.screen.draw(|width| page(&title, &answer, width), footer)
    }

    /// Called about every 50 milliseconds; false if the person at the screen has seen enough.
    pub(crate) fn tick(&mut self, feed: &mut Feed<'_>, is_complete: bool) -> Result<bool> {
        if Screen::wants_to_leave()? {
            return Ok(false);
        }
        if self.drawn.is_none_or(|drawn| FRAME <= drawn.elapsed()) {
            self.draw(feed, is_complete)?;
            self.drawn = Some(Instant::now());
        }
        Ok(true)
    }
}

fn page(title: &str, answer: &Answer, width: u16) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::styled(title.to_owned(), bold)];
    lines.extend(answer.headline.iter().flat_map(|line| wrapped_lines(line, width)));
    lines.push(Line::default());
    if let Some(why) = &answer.why {
        lines.extend(why.lines().iter().flat_map(|line| wrapped_lines(line, width)));
    }
    let bars: Vec<Bar<'_>> = answer.items.iter().map(|row| Bar { row, truth: None }).collect();
    lines.extend(bar_lines(&bars, width, remark::is_coloured(&stdout())));
    if let Some(compared) = answer.trend_compares {
        let legend = format!("░ 95 % interval   ↑↓ {}, beyond noise and chance", compared.words());
        lines.push(Line::default());
        lines.extend(wrapped_lines(&legend, width));
    }
    lines
}

fn wrapped_lines(text: &str, width: u16) -> Vec<Line<'static>> {
    wrapped(text, width.into()).lines().map(|line| Line::from(line.to_owned())).collect()
}

/// A row, and the true count where that is known.
pub(crate) struct Bar<'r> {
    pub(crate) row: &'r Row,
    pub(crate) truth: Option<f64>,
}

const NAME_LEN: usize = 24;
/// Columns beside the bar: rank, name, estimate and error, trend.
const BESIDE: usize = 4 + NAME_LEN + 2 + 9 + 2 + 7 + 3;

/// One line for each bar, all on the same scale.
pub(crate) fn bar_lines(bars: &[Bar<'_>], width: u16, coloured: bool) -> Vec<Line<'static>> {
    let room = usize::from(width).saturating_sub(BESIDE + 1);
    let largest = bars.iter().map(|bar| bar.row.upper.max(bar.truth.unwrap_or(0.0))).fold(1.0, f64::max);
    bars.iter().map(|bar| bar_line(bar, room, largest, coloured)).collect()
}

fn bar_line(bar: &Bar<'_>, room: usize, largest: f64, coloured: bool) -> Line<'static> {
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
    let lower = place(bar.row.lower);
    let upper = place(bar.row.upper);
    let mut cells = String::new();
    for index in 0..room {
        cells.push(match index {
            _ if index < lower => '█',
            _ if index <= upper => '░',
            _ => ' ',
        });
    }
    let Some(truth) = bar.truth else { return vec![(cells, false)] };
    let at = place(truth).min(room.saturating_sub(1));
    let before = cells.chars().take(at).collect();
    let after = cells.chars().skip(at + 1).collect();
    vec![(before, false), ("◆".to_owned(), true), (after, false)]
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
        let line = bar_lines(&[bar], 80, false).remove(0);
        assert_eq!(line.width(), 79);
    }

    #[test]
    fn a_narrow_screen_has_no_room_for_bars() {
        let row = row(0.0, 1.0);
        for width in [0, 5, 54, 60] {
            assert_eq!(bar_lines(&[Bar { row: &row, truth: Some(2.0) }], width, true).len(), 1);
        }
    }
}
