//! `dpsw top` and `dpsw count`: from a stream or from a saved view.

use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};

use anyhow::Result;
use dpsw::error::PlanError;
use dpsw::{Clock, Domain, DpswSketch, TimeWindow, Unit, Window, WindowView};
use dpsw_frontend::ledger::Spending;
use dpsw_frontend::plan_request::{self, Asked, PlanRequest};
use dpsw_frontend::quantity::{Span, millis};
use dpsw_frontend::times::Times;

use crate::args::{Count, Input, MethodName, Source, Stream, Top, UnitName};
use crate::commands::dry_run;
use crate::commands::ledger;
use crate::count::feed::{Feed, Pace};
use crate::count::plan::{self, Chosen, How};
use crate::count::run::{self, End};
use crate::fault::{self, Fault, Kind};
use crate::read::check::{check, check_arrival};
use crate::read::columnar::Selection;
use crate::read::file::{is_missing, is_stdin, refuse_twice};
use crate::read::parser::Wanted;
use crate::read::reader::Files;
use crate::read::start::Told;
use crate::read::survey::{self, Known};
use crate::read::view_file;
use crate::show::answer::{Question, Rows, Which};
use crate::show::output::{self, Writer};
use crate::show::remark;
use crate::show::said;
use crate::show::watch::{self, Watch};

/// How many rows are shown if nobody says.
const ROWS: usize = 20;

/// Runs `dpsw top`.
pub(crate) fn top(command: &Top) -> Result<()> {
    let show = &command.show;
    let rows = Rows { all: show.all, strict: show.strict };
    let default = if show.threshold.is_some() { usize::MAX } else { ROWS };
    let which = Which::Listed { most: show.top.unwrap_or(default), threshold: show.threshold, rows };
    let writer = Writer::new(show.layout);
    if let Some(path) = &command.source.stream.view {
        refuse_input(&command.files)?;
        return answer_view(path, command.source.stream.window, &which, writer);
    }
    if writer == Writer::Json && show.every.is_some() {
        return Err(Fault::usage("--json is one document; use --ndjson with --every"));
    }
    let stream = Read {
        files: &command.files,
        source: &command.source,
        domain: plan::domain(command.source.stream.domain.as_deref())?,
    };
    if show.watch {
        watch::check_terminal()?;
    }
    stream.run(&which, writer, show.every, show.watch)
}

/// Runs `dpsw count`.
pub(crate) fn count(command: &Count) -> Result<()> {
    let (items, files) = split(command);
    let which = Which::Asked(items.clone());
    let writer = Writer::new(command.layout);
    if let Some(path) = &command.source.stream.view {
        return answer_view(path, command.source.stream.window, &which, writer);
    }
    let domain = match &command.source.stream.domain {
        Some(file) => plan::domain(Some(file))?,
        // Counters for what is asked, and for nothing else.
        None => plan::asked_keys(&items),
    };
    let stream = Read { files: &files, source: &command.source, domain };
    stream.run(&which, writer, None, false)
}

/// The items and the files of a command. Without `--`, the last arguments that are files are read; the first argument is
/// always an item.
fn split(command: &Count) -> (Vec<String>, Vec<PathBuf>) {
    let Count { items, files, .. } = command;
    if !files.is_empty() || command.source.stream.view.is_some() || has_dashes() {
        return (items.clone(), files.clone());
    }
    let trailing = items.iter().skip(1).rev().take_while(|item| is_readable(item)).count();
    let (items, files) = items.split_at(items.len() - trailing);
    say_split(items, files);
    (items.to_vec(), files.iter().map(PathBuf::from).collect())
}

fn has_dashes() -> bool {
    std::env::args_os().any(|argument| argument == "--")
}

/// Directories are items: `/` is a page of every site.
fn is_readable(name: &str) -> bool {
    std::fs::metadata(Path::new(name)).is_ok_and(|metadata| !metadata.is_dir())
}

fn say_split(items: &[String], files: &[String]) {
    if !files.is_empty() {
        let files = files.join(", ");
        remark::note(format!(
            "read as files: {files}; to count such a name as an item, write the files after --"
        ));
    } else if matches!(items, [item] if is_readable(item)) || stdin().is_terminal() {
        let items = items.join(", ");
        remark::note(format!("counting {items} in standard input: no file is named after the items"));
    }
}

fn refuse_input(files: &[PathBuf]) -> Result<()> {
    if files.is_empty() {
        Ok(())
    } else {
        Err(Fault::usage("a view is answered alone: give --view or files, not both"))
    }
}

fn answer_view(path: &Path, window: Option<Span>, which: &Which, mut writer: Writer) -> Result<()> {
    let view = view_file::load(path)?;
    let is_time = view.plan().settings().window.time().is_some();
    let view = match window {
        None => view,
        Some(Span::Items(len)) if !is_time => view.last(len)?,
        Some(Span::Time(len)) if is_time => view.last(millis(len))?,
        Some(_) if is_time => {
            return Err(Fault::usage("the view has a time window; ask for a time such as 5m"));
        }
        Some(_) => return Err(Fault::usage("the view has a window of items; ask for a number of items")),
    };
    writer.write(&Question::of_plan(which.clone(), view.plan())?.ask(&view, None)?)?;
    remark::note("answered from a saved view: nothing was spent");
    Ok(())
}

/// A stream that is read.
struct Read<'c> {
    files: &'c [PathBuf],
    source: &'c Source,
    domain: Domain,
}

impl Read<'_> {
    fn run(self, which: &Which, writer: Writer, every: Option<Span>, is_watched: bool) -> Result<()> {
        let save = self.source.stream.save.as_deref();
        if save.is_none() {
            output::check_open()?;
        }
        self.answer(which, writer, every, is_watched).map_err(|error| spent(error, save))
    }

    fn answer(self, which: &Which, mut writer: Writer, every: Option<Span>, is_watched: bool) -> Result<()> {
        self.check_unit(every)?;
        let mut files = self.sources()?;
        let is_once = every.is_none() && !is_watched && self.source.stream.save.is_none();
        let known = self.known(&files);
        let chosen = self.plan(&files.wanted, known, is_once)?;
        let (plan, prediction) = (&chosen.plan, chosen.prediction.as_ref());
        self.source.stream.save.as_deref().map_or(Ok(()), view_file::check)?;
        if self.source.account.dry_run {
            return dry_run::show(plan, prediction, &files, self.source, writer);
        }
        let question = Question::new(which.clone(), plan, prediction);
        let spending = ledger::charge(&self.source.account, plan, &files.paths)?;
        let spend = || spending.iter().for_each(Spending::answer);
        said::before(self.source, &chosen, &files.paths, known);
        for path in files.paths.iter().filter(|path| files.follow && is_missing(path) && !is_stdin(path)) {
            remark::note(format!("{} is not there yet; waiting for it", path.display()));
        }
        let is_followed = files.follow;
        let due = Box::new(|view: &WindowView, read| {
            let answer = question.ask(view, Some(read))?;
            spend();
            writer.write(&answer)
        });
        let waits = !is_followed && files.paths.iter().all(|path| path.is_file());
        let pace = Pace { every, is_live: is_followed, waits };
        let counted = known.records().filter(|_| is_once);
        let unasked = counted.map_or(0, |records| run::unasked_records(plan, records));
        files.wanted.unasked = unasked;
        let sketch = match known {
            Known::Records(records) => DpswSketch::ending_after(chosen.plan, records)?,
            _ => DpswSketch::new(chosen.plan)?,
        };
        let mut feed = Feed::new(sketch, self.source.input.on_error, pace, due)?;
        feed.step = known.step();
        let keep = |view: &WindowView| match &self.source.stream.save {
            Some(path) => {
                spend();
                keep(view, path)
            }
            None => Ok(()),
        };
        let end = if is_watched {
            let mut watch = Watch::open(question.clone())?;
            spend();
            run::run(files, &mut feed, Some(&mut watch))
        } else {
            run::run(files, &mut feed, None)
        };
        if end.as_ref().is_err_and(fault::is_unwritten) {
            keep(&feed.sketch.view())?;
        }
        let is_counted = feed.sketch.plan().settings().unit != Unit::AddRemove;
        let (end, counts, long) = (end?, feed.counts, feed.long);
        if let Some(counted) = counted.filter(|_| 0 < unasked) {
            run::check_complete(end, counts.records, counted)?;
        }
        match end {
            End::Complete if !is_followed => feed.finish(keep)?,
            End::Complete | End::Left => feed.answer_at_last(keep)?,
            End::Interrupted => {
                keep(&feed.sketch.view())?;
                feed.answer()?;
            }
        }
        said::after(counts, long, is_counted);
        match end {
            End::Complete | End::Left => Ok(()),
            End::Interrupted => Err(Fault::of(Kind::Interrupted, "interrupted; this is what was there")),
        }
    }

    /// What is read, and how.
    fn sources(&self) -> Result<Files> {
        let paths = if self.files.is_empty() { vec![PathBuf::from("-")] } else { self.files.to_vec() };
        let Input { format, column, time_column, time_unit, user_column, delimiter, follow, .. } =
            &self.source.input;
        let selection = Selection {
            item: column.clone(),
            time: time_column.clone(),
            times: self.has_times()?,
            time_unit: *time_unit,
            user: user_column.clone(),
        };
        let header =
            if self.source.input.header { Some(true) } else { self.source.input.no_header.then_some(false) };
        let wanted = Wanted { selection, header, delimiter: *delimiter, unasked: 0 };
        let told = Told { format: *format, delimiter: *delimiter };
        let files = Files { paths, told, follow: *follow, wanted };
        if self.source.input.arrival_time {
            check_arrival(&files)?;
        }
        check(&files)?;
        refuse_twice(&files.paths)?;
        Ok(files)
    }

    /// Where the presence of events is private, nothing but the clock may say when what is answered.
    fn check_unit(&self, every: Option<Span>) -> Result<()> {
        let refused = |message: &str| Err(Fault::of(Kind::Refused, message));
        let Source { input, stream, .. } = self.source;
        match (stream.unit, &input.user_column) {
            (UnitName::Users, None) => {
                return Err(Fault::usage("--unit users needs --user-column: name who sent what"));
            }
            (UnitName::AddRemove, Some(_)) => {
                return Err(Fault::usage(
                    "--unit add-remove protects single events, --user-column whole users: choose one",
                ));
            }
            (UnitName::AddRemove, None) => {}
            _ => return Ok(()),
        }
        match (stream.window, every) {
            (Some(Span::Items(_)), _) => refused(
                "--unit add-remove needs a window of time, such as --window 15m: in a window of items, one event more or less \
                moves all others",
            ),
            _ if !input.arrival_time => refused(
                "--unit add-remove needs --arrival-time, in a pipe or with --follow: a clock that goes by the times of events \
                shows whether one was there",
            ),
            (_, Some(Span::Items(_))) => refused(
                "--unit add-remove needs --every with a time, such as 10s: an answer after each number of items shows how many \
                there were",
            ),
            _ => Ok(()),
        }
    }

    /// What is known of the files, as far as the planner can make use of it.
    fn known(&self, files: &Files) -> Known {
        let Stream { window, means, .. } = &self.source.stream;
        match window {
            Some(Span::Items(_)) if means.method == MethodName::Tuned => survey::records(files),
            Some(Span::Time(len)) if self.has_times().unwrap_or(false) => survey::times(files, millis(*len)),
            _ => Known::Nothing,
        }
    }

    /// The plan for what is known, or for the window as it was asked if noise would hide the little that there is: then the
    /// answer says so. Where a window is asked once, nothing else is planned for.
    fn plan(&self, wanted: &Wanted, known: Known, is_once: bool) -> Result<Chosen> {
        let asked = self.request(wanted)?;
        let is_last = is_once && asked.retention == 1;
        let how = self.how();
        let request = asked.clone();
        let request = match (known, request.window) {
            (Known::Records(records), Window::Items(len)) => PlanRequest {
                window: Window::Items(len.min(records)),
                asked: if is_last { Asked::Last } else { Asked::Any },
                ..request
            },
            (Known::Times(Times { expected_items, step }), Window::Time(time)) => {
                let given = self.source.stream.past.expected_items;
                let expected_items = given.unwrap_or(expected_items);
                PlanRequest { window: Window::Time(TimeWindow { expected_items, ..time }), step, ..request }
            }
            _ => return plan::choose(asked, how),
        };
        let is_other = request.window != asked.window;
        match plan::choose(request, how) {
            Err(error) if is_other && is_only_noise(&error) => plan::choose(asked, how),
            chosen => chosen,
        }
    }

    fn request(&self, wanted: &Wanted) -> Result<PlanRequest> {
        let stream = &self.source.stream;
        let Stream { past, means, .. } = stream;
        let (Some(window), Some(epsilon)) = (stream.window, stream.epsilon) else {
            return Err(Fault::usage("--window and --epsilon are needed"));
        };
        let clock = if wanted.selection.times { Clock::Events } else { Clock::Caller };
        let unit = match (stream.unit, &wanted.selection.user) {
            (UnitName::AddRemove, None) => Unit::AddRemove,
            (_, Some(_)) => Unit::Users { per_substream: stream.per_user },
            _ => Unit::ReplaceOne,
        };
        let window = plan_request::window(window, past.lateness, clock, past.expected_items);
        let request = PlanRequest::new(window, unit, epsilon, self.domain.clone());
        Ok(PlanRequest { delta: means.delta, memory: means.memory, retention: past.retention, ..request })
    }

    fn how(&self) -> How<'_> {
        let Source { stream, paper, .. } = self.source;
        How { method: stream.means.method, paper, domain_file: stream.domain.as_deref() }
    }

    /// Whether the times of the events are used; else they happen when they arrive, or have none.
    fn has_times(&self) -> Result<bool> {
        let Input { time_column, arrival_time, .. } = &self.source.input;
        match self.source.stream.window {
            Some(Span::Time(_)) => Ok(!arrival_time),
            _ if time_column.is_some() => {
                Err(Fault::usage("--time-column needs a window of time, such as --window 15m"))
            }
            _ if *arrival_time => {
                Err(Fault::usage("--arrival-time needs a window of time, such as --window 15m"))
            }
            _ => Ok(false),
        }
    }
}

/// Saves a view.
fn keep(view: &WindowView, path: &Path) -> Result<()> {
    view_file::save(view, path)?;
    remark::note(format!("saved to {}; --view answers from it without spending anything", path.display()));
    Ok(())
}

/// What was not written was spent all the same.
fn spent(error: anyhow::Error, save: Option<&Path>) -> anyhow::Error {
    if !fault::is_unwritten(&error) || fault::is_closed_pipe(&error) {
        return error;
    }
    error.context(match save {
        Some(path) => {
            format!("the answer is not written, but kept in {}: ask it with --view", path.display())
        }
        None => "the answer is lost, though its budget is spent; --save would have kept it".to_owned(),
    })
}

fn is_only_noise(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(PlanError::OnlyNoise { .. }))
}
