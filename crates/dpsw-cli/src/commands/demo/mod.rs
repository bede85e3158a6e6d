//! `dpsw demo`: a drifting stream, its private top items beside the truth that only a demo can know, and a summary; a
//! made-up access log; or the service with a living stream.

mod log;
mod service;
mod shop;
mod stream;
mod summary;

use std::io::{IsTerminal, stdout};
use std::time::{Duration, Instant};

use anyhow::Result;
use dpsw::plan::{PaperMethod, Request};
use dpsw::{Batch, Domain, DpswSketch, Keys, Settings, WindowView};
use dpsw_frontend::plan_request::DELTA;
use dpsw_frontend::quantity::grouped;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::args::Demo;
use crate::interrupt;
use crate::show::answer::{Answer, Question, Rows, Which};
use crate::show::output::{print, print_json};
use crate::show::remark::is_coloured;
use crate::show::watch::{Bar, Screen, bar_lines};
use stream::{DOMAIN_LEN, Stream, Truth, name};
use summary::Measures;

const WINDOW_LEN: u64 = 1_000_000;
/// Does not divide the substreams, so that windows start and end anywhere.
const BATCH: usize = 31_000;
const BATCHES: usize = 196;
/// How long a batch stays on the screen.
const FRAME: Duration = Duration::from_millis(65);
/// Batches between two lines without a screen.
const LINE_EVERY: usize = 7;
/// Top items that are shown.
const SHOWN_ITEMS: Which =
    Which::Listed { most: 16, threshold: None, rows: Rows { all: false, strict: false } };

/// Runs the demo.
pub(crate) fn run(command: &Demo) -> Result<()> {
    if let Some(lines) = command.log {
        return log::write(lines);
    }
    if command.serve {
        return service::run(command.data.as_deref());
    }
    let mut show = Show::new(command.json)?;
    let mut demo = State::new()?;
    for number in 1..=BATCHES {
        let started = Instant::now();
        demo.step()?;
        if number % LINE_EVERY == 0 {
            demo.measure()?;
        }
        if !show.frame(&demo, number, started)? || interrupt::is_requested() {
            break;
        }
    }
    drop(show);
    let summary = demo.measures.summary(&demo.tuned, &demo.paper);
    if command.json {
        print_json(&summary)?;
    } else {
        print(&format!("\n{summary}\n"))?;
    }
    interrupt::check("interrupted; this is what was there")
}

/// The stream, both sketches of it, and the truth.
struct State {
    stream: Stream,
    truth: Truth,
    tuned: DpswSketch,
    paper: DpswSketch,
    question: Question,
    measures: Measures,
}

impl State {
    fn new() -> Result<Self> {
        let keys = Domain::Public(Keys::text((0..DOMAIN_LEN).map(name)));
        let settings = Settings::last_items(WINDOW_LEN, 1.0)?.with_domain(keys);
        let paper = settings.clone().with_delta(DELTA)?.with_method(PaperMethod::default());
        let paper = DpswSketch::new(paper.plan()?)?;
        let tuned = Request::new(settings).with_bytes(paper.plan().sketch_bytes());
        let tuned = DpswSketch::new(tuned.plan()?.plan)?;
        let question = Question::of_plan(SHOWN_ITEMS, tuned.plan())?;
        Ok(Self {
            stream: Stream::new(),
            truth: Truth::new(WINDOW_LEN as usize),
            tuned,
            paper,
            question,
            measures: Measures::default(),
        })
    }

    fn step(&mut self) -> Result<()> {
        let batch: Vec<u32> = (0..BATCH).map(|_| self.stream.next_item()).collect();
        let items: Vec<&str> = batch.iter().map(|&item| self.stream.name(item)).collect();
        let started = Instant::now();
        self.tuned.extend(Batch::text(&items))?;
        self.measures.ingest += started.elapsed();
        self.paper.extend(Batch::text(&items))?;
        self.truth.extend(&batch);
        Ok(())
    }

    /// Compares the answers with the truth, once the window is full.
    fn measure(&mut self) -> Result<()> {
        if self.tuned.position() < WINDOW_LEN {
            return Ok(());
        }
        let tuned = self.tuned.view();
        let paper = self.paper.view();
        for item in self.truth.top() {
            let name = self.stream.name(item);
            let count = self.truth.count(item);
            self.measures.take(count, &tuned.frequency(name)?, &paper.frequency(name)?);
        }
        Ok(())
    }

    fn bars<'a>(&self, answer: &'a Answer) -> Vec<Bar<'a>> {
        let truth = |item: &str| self.stream.find(item).map(|item| self.truth.count(item));
        answer.items.iter().map(|row| Bar { row, truth: truth(&row.item) }).collect()
    }
}

/// The place where the demo is shown.
enum Show {
    Screen(Screen),
    Lines,
    Nothing,
}

impl Show {
    fn new(is_quiet: bool) -> Result<Self> {
        match stdout().is_terminal() {
            _ if is_quiet => Ok(Self::Nothing),
            true => Ok(Self::Screen(Screen::open()?)),
            false => {
                print("The most frequent items of the last 1,000,000, as the stream drifts:\n")?;
                print("private estimate (true count, which only a demo knows)\n\n")?;
                Ok(Self::Lines)
            }
        }
    }

    /// Shows the state; false if the person at the screen wants to leave.
    fn frame(&mut self, demo: &State, number: usize, started: Instant) -> Result<bool> {
        match self {
            Self::Nothing => {}
            Self::Lines if !number.is_multiple_of(LINE_EVERY) => {}
            Self::Lines => print(&line(demo, &demo.tuned.view())?)?,
            Self::Screen(screen) => {
                let answer = demo.question.ask(&demo.tuned.view(), None)?;
                screen.draw(|width| page(demo, &answer, width), "q to leave")?;
                std::thread::sleep(FRAME.saturating_sub(started.elapsed()));
                return Ok(!Screen::wants_to_leave()?);
            }
        }
        Ok(true)
    }
}

/// Items on a line.
const IN_LINE: usize = 4;

fn line(demo: &State, view: &WindowView) -> Result<String> {
    let mut line = format!("{:>9} items", grouped(view.window().end as f64));
    for ranked in view.top(IN_LINE)? {
        let name = ranked.item.to_string();
        let truth = demo.stream.find(&name).map_or(0.0, |item| demo.truth.count(item));
        line += &format!("  {name:>10} {:>6} ({:>6})", grouped(ranked.shown.value), grouped(truth));
    }
    Ok(line + "\n")
}

fn page(demo: &State, answer: &Answer, width: u16) -> Vec<Line<'static>> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let mut lines = vec![
        Line::styled("dpsw demo: what is trending, without exposing any single event", bold),
        Line::from(answer.headline.join("; ")),
        Line::styled(
            "█ sure   ░ 95 % interval   ◆ the true count, which only a demo knows   ↑↓ trends beyond chance",
            dim,
        ),
        Line::default(),
    ];
    let coloured = is_coloured(&stdout());
    lines.extend(bar_lines(&demo.bars(answer), width, coloured));
    lines.push(Line::default());
    if let Some(error) = demo.measures.error() {
        lines.push(Line::from(format!("mean error of the true top 50 so far: {:.1} %; the paper's method on the same stream and bytes: {:.1} %", 100.0 * error.0, 100.0 * error.1)));
    }
    lines
}
