//! `dpsw top --watch`: a live full-screen view.

use std::io::{IsTerminal, stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use dpsw_faces::quantity::grouped;
use ratatui::DefaultTerminal;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::answer::{Answer, Question};
use crate::chart::{self, Bar};
use crate::fault::Fault;
use crate::feed::{Counts, Feed};
use crate::harmless;
use crate::interrupt;
use crate::remark;
use crate::run::Companion;
use crate::why::Why;
use crate::words::{count, wrapped};

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
}

impl Companion for Watch {
    fn tick(&mut self, feed: &mut Feed<'_>, is_complete: bool) -> Result<bool> {
        if Screen::wants_to_leave()? {
            return Ok(false);
        }
        if self.drawn.is_none_or(|drawn| FRAME <= drawn.elapsed()) {
            self.draw(feed, is_complete)?;
            self.drawn = Some(Instant::now());
        }
        Ok(true)
    }

    fn stays(&self) -> bool {
        true
    }
}

fn page(title: &str, answer: &Answer, width: u16) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![Line::styled(title.to_owned(), bold)];
    lines.extend(answer.headline.iter().flat_map(|line| wrapped_lines(line, width)));
    lines.push(Line::default());
    if let Some(Why { message, advice, .. }) = &answer.why {
        let text = format!("nothing to show: {message}\nwhat helps: {advice}");
        lines.extend(text.lines().flat_map(|line| wrapped_lines(line, width)));
    }
    let bars: Vec<Bar<'_>> = answer.items.iter().map(|row| Bar { row, truth: None }).collect();
    lines.extend(chart::lines(&bars, width, remark::is_coloured(&stdout())));
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
