//! `dpsw demo`: a drifting stream, its private top items beside the truth that only a demo can know, and a summary; a
//! made-up access log; or the service with a living stream.

mod dice;
mod log;
mod post;
mod service;
mod shop;
mod stream;
mod summary;
mod visits;

use std::io::{IsTerminal, stdout};
use std::time::{Duration, Instant};

use anyhow::Result;
use dpsw::{Batch, Domain, DpswSketch, Keys, PaperMethod, Plan, Request, Settings, WindowView};
use dpsw_faces::quantity::grouped;
use dpsw_faces::wish::DELTA;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::answer::{Answer, Question, Rows, Which};
use crate::arguments::Demo;
use crate::chart::{self, Bar};
use crate::interrupt;
use crate::output::{print, print_json};
use crate::remark::is_coloured;
use crate::watch::Screen;
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
        let paper = sketch(paper_plan()?)?;
        let tuned = sketch(tuned_plan(paper.plan().sketch_bytes())?)?;
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
        let (tuned, paper) = (self.tuned.view(), self.paper.view());
        for item in self.truth.top() {
            let (count, name) = (self.truth.count(item), self.stream.name(item));
            self.measures.take(count, &tuned.frequency(name)?, &paper.frequency(name)?);
        }
        Ok(())
    }

    fn bars<'a>(&self, answer: &'a Answer) -> Vec<Bar<'a>> {
        let truth = |item: &str| self.stream.find(item).map(|item| self.truth.count(item));
        answer.items.iter().map(|row| Bar { row, truth: truth(&row.item) }).collect()
    }
}

fn sketch(plan: Plan) -> Result<DpswSketch> {
    Ok(DpswSketch::new(plan)?)
}

fn domain() -> Domain {
    Domain::Public(Keys::text((0..DOMAIN_LEN).map(name)))
}

fn settings() -> Result<Settings> {
    Ok(Settings::last_items(WINDOW_LEN, 1.0)?.with_domain(domain()))
}

fn paper_plan() -> Result<Plan> {
    Ok(settings()?.with_delta(DELTA)?.with_method(PaperMethod::default()).plan()?)
}

fn tuned_plan(bytes: u64) -> Result<Plan> {
    Ok(Request::new(settings()?).with_bytes(bytes).plan()?.plan)
}

/// Where the demo is shown.
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
        let (value, truth) = (grouped(ranked.shown.value), grouped(truth));
        line += &format!("  {name:>10} {value:>6} ({truth:>6})");
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
    lines.extend(chart::lines(&demo.bars(answer), width, coloured));
    lines.push(Line::default());
    if let Some(error) = demo.measures.error() {
        lines.push(Line::from(format!("mean error of the true top 50 so far: {:.1} %; the paper's method on the same stream and bytes: {:.1} %", 100.0 * error.0, 100.0 * error.1)));
    }
    lines
}
