//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use dpsw_frontend::paper;
use dpsw_frontend::quantity::{self, Span};

const TEMPLATE: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

pub(crate) const EXIT_CODES: &str = include_str!("../help/exit-codes.txt").trim_ascii_end();
const PRIVACY_NOTES: &str = include_str!("../help/privacy.txt").trim_ascii_end();

/// Options that say how to read a stream, and so cannot be given with `--view`.
const STREAM_ONLY: [&str; 24] = [
    "arrival_time",
    "budget",
    "column",
    "data_set",
    "delimiter",
    "delta",
    "domain",
    "dry_run",
    "epsilon",
    "expected_items",
    "follow",
    "format",
    "header",
    "lateness",
    "ledger",
    "memory",
    "method",
    "no_header",
    "on_error",
    "retention",
    "time_column",
    "time_unit",
    "unit",
    "user_column",
];

/// Private frequency counts and heavy hitters over a sliding window, with an error bar on every answer.
#[derive(Debug, Parser)]
#[command(name = "dpsw", version, help_template = TEMPLATE, before_help = include_str!("../help/dpsw.txt"), after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) talk: Talk,
    /// How lengths were understood that could be mistaken.
    #[arg(skip)]
    pub(crate) readings: Vec<String>,
}

impl Arguments {
    /// What was typed; a mistake ends the program. Negative numbers are read as values, so that an error names the range of
    /// the option instead of complaining about an option `-5`.
    pub(crate) fn typed() -> Self {
        let mut command = Self::command().mut_subcommands(|part| part.mut_args(with_negatives));
        let matches = command.get_matches_mut();
        let parsed = Self::from_arg_matches(&matches);
        let arguments = parsed.unwrap_or_else(|error| error.format(&mut command).exit());
        Self { readings: readings(&matches), ..arguments }
    }
}

fn with_negatives(argument: Arg) -> Arg {
    let takes_values = argument.get_action().takes_values();
    argument.allow_negative_numbers(takes_values)
}

fn readings(matches: &ArgMatches) -> Vec<String> {
    let Some((_, matches)) = matches.subcommand() else { return Vec::new() };
    ["window", "every"].iter().filter_map(|option| reading(matches, option)).collect()
}

fn reading(matches: &ArgMatches, option: &str) -> Option<String> {
    let mut typed = matches.try_get_raw(option).ok().flatten()?;
    let reading = quantity::reading(&typed.next_back()?.to_string_lossy())?;
    Some(format!("--{option} {reading}"))
}

/// The options that decide how much is said, and in which colours.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Talk {
    /// Say more about what is done
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Say nothing but results and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Colours; `auto` means on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub(crate) color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the most frequent items of the recent past
    #[command(help_template = TEMPLATE, before_help = include_str!("../help/top.txt"), after_help = PRIVACY_NOTES)]
    Top(Box<Top>),
    /// Count given items in the recent past
    #[command(help_template = TEMPLATE, before_help = include_str!("../help/count.txt"), after_help = PRIVACY_NOTES)]
    Count(Box<Count>),
    /// Show what error an epsilon gives, or which epsilon an error needs, before anything is read
    #[command(help_template = TEMPLATE, before_help = include_str!("../help/plan.txt"))]
    Plan(Box<PlanCommand>),
    /// Attack the mechanism many times and compare what leaks with what is claimed
    #[command(help_template = TEMPLATE, before_help = include_str!("../help/audit.txt"))]
    Audit(Box<Audit>),
    /// Show what a saved view holds and promises
    #[command(help_template = TEMPLATE, before_help = include_str!("../help/inspect.txt"))]
    Inspect(Inspect),
    /// Show what was spent on which data set, and what is left
    #[command(help_template = TEMPLATE, before_help = include_str!("../help/ledger.txt"))]
    Ledger(LedgerCommand),
    /// Show a drifting stream, its private top items beside the truth, and a summary; or make a log or a service to try
    /// things on
    #[command(help_template = TEMPLATE, before_help = include_str!("../help/demo.txt"))]
    Demo(Demo),
    /// Run the service, which takes events and answers over HTTP
    #[command(help_template = TEMPLATE, before_help = include_str!("../help/serve.txt"), disable_help_flag = true)]
    Serve(Serve),
    /// Print completions for a shell, the manual, or the JSON Schema of answers
    #[command(help_template = TEMPLATE, before_help = include_str!("../help/completions.txt"))]
    Completions(Completions),
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Files to read, in order; `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) show: Show,
}

/// The options of a stream: its input, its plan and its account.
#[derive(Debug, Args)]
pub(crate) struct Source {
    #[command(flatten)]
    pub(crate) input: Input,
    #[command(flatten)]
    pub(crate) stream: Stream,
    #[command(flatten)]
    pub(crate) account: Account,
    #[command(flatten)]
    pub(crate) paper: Paper,
}

/// The account of a run, and its limit.
#[derive(Debug, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct Account {
    /// Add up what is spent on each data set in this file, before any item is counted; `dpsw ledger` shows it
    #[arg(long, value_name = "FILE")]
    pub(crate) ledger: Option<PathBuf>,
    /// The data set to which the run is charged; by default each file is one, by its path
    #[arg(long, value_name = "NAME", requires = "ledger")]
    pub(crate) data_set: Option<String>,
    /// Refuse to spend more than this on the data set, ever; needed once, and then kept in the ledger
    #[arg(long, value_name = "EPSILON", requires = "ledger")]
    pub(crate) budget: Option<f64>,
    /// Show the plan and what would be spent; no item is counted, and nothing is charged
    #[arg(long, conflicts_with = "csv")]
    pub(crate) dry_run: bool,
}

/// The options of an answer: which rows, how often, in which form.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Show {
    /// How many items to show at most; 20 by default, or all that reach --threshold
    #[arg(long, value_parser = quantity::count_usize, value_name = "COUNT")]
    pub(crate) top: Option<usize>,
    /// Show the items with at least this share of the window, such as 0.05
    #[arg(long, value_name = "SHARE")]
    pub(crate) threshold: Option<f64>,
    /// Show the rows that may be noise alone as well
    #[arg(long)]
    pub(crate) all: bool,
    /// Intervals that hold for 95 % of the rows shown whatever the stream is like; they are wider. Without it, a row shows what
    /// it probably counts: rows of a list were chosen for their size, unlike the items of `dpsw count`
    #[arg(long)]
    pub(crate) strict: bool,
    /// Answer repeatedly: after each number of items (1000, 10k), or at each interval (10s, 5m) of the times in the records, or
    /// of real time with --follow and where no times are used
    #[arg(long, value_parser = quantity::span, value_name = "ITEMS|TIME", conflicts_with = "view")]
    pub(crate) every: Option<Span>,
    /// A live full-screen view; q ends it
    #[arg(long, conflicts_with_all = ["json", "ndjson", "csv", "every", "view"])]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) layout: Layout,
}

#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
pub(crate) struct Layout {
    /// One JSON document with everything that is known of the answer; `dpsw completions schema` describes it
    #[arg(long)]
    pub(crate) json: bool,
    /// One JSON document per answer, each on its own line
    #[arg(long)]
    pub(crate) ndjson: bool,
    /// Comma-separated rows below their names: what JSON has, once per row
    #[arg(long)]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Count {
    /// Items to count, then files to read: the last arguments that name files are read, unless files stand after --
    #[arg(value_name = "ITEM", required = true)]
    pub(crate) items: Vec<String>,
    /// Files to read, in order; `-` or none is standard input. Needed where an item has the name of a file
    #[arg(value_name = "FILE", last = true, conflicts_with = "view")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) layout: Layout,
}

/// The options of records: their files, formats and columns.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct Input {
    /// Format of the records. Without it, names tell tables (.csv, .tsv), the first bytes tell Parquet, Arrow, JSON documents and
    /// access logs, else the name does, and all other text is lines. What gzip or zstd packed is unpacked
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Which part is the item: a column's name or number from 1, a JSON pointer (/user/name), or a field of an access log:
    /// path, status, referrer, agent or host
    #[arg(long)]
    pub(crate) column: Option<String>,
    /// Which part is the user, in the same forms (host in an access log); this protects whole users, within each window
    #[arg(long, value_name = "COLUMN")]
    pub(crate) user_column: Option<String>,
    /// Which part is the time, for a window of time: a number since 1970, RFC 3339, a date (its start, in UTC), or as in access
    /// logs, whose own times are used without it
    #[arg(long, value_name = "COLUMN")]
    pub(crate) time_column: Option<String>,
    /// The unit of times that are numbers without one; by default their size tells it
    #[arg(long, value_enum, value_name = "UNIT", requires = "time_column")]
    pub(crate) time_unit: Option<TimeUnit>,
    /// The character between columns, if it is not a comma (csv) or a tab (tsv): such as ';', '|' or '\t'. A file whose name does
    /// not tell its format is then read as csv, or, with '\t', as tsv
    #[arg(long, value_parser = delimiter, value_name = "CHARACTER")]
    pub(crate) delimiter: Option<u8>,
    /// The first line names the columns; the default for .csv, and wherever a column is given by name
    #[arg(long, conflicts_with = "no_header")]
    pub(crate) header: bool,
    /// The first line is a record
    #[arg(long)]
    pub(crate) no_header: bool,
    /// Wait for more at the end of the files, even if they are rotated or do not exist yet. Times in the records decide as they
    /// always do: a window of time ends at the newest one, moves as records come, and stands still while none do. Records of
    /// several files are taken as they come; with --lateness those of a file that lags still count
    #[arg(long)]
    pub(crate) follow: bool,
    /// Events happen when they are read, whatever times they carry: for pipes and --follow. The clock then moves a window of
    /// time, also while nothing comes; what a file holds already is read at the start
    #[arg(long, conflicts_with = "time_column")]
    pub(crate) arrival_time: bool,
    /// What to do with a record that cannot be read; a skipped record keeps its position and counts for no item
    #[arg(long, value_enum, default_value_t = OnError::Stop, value_name = "WHAT")]
    pub(crate) on_error: OnError,
}

/// One byte that can stand between columns.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() && !b"\"\n\r".contains(&byte) => Ok(byte),
        _ => Err(format!(
            "{text:?} is not one ASCII character such as ',', ';', '|' or '\\t'; quotes and line ends have another meaning"
        )),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Lines,
    Tsv,
    Csv,
    Ndjson,
    Parquet,
    Arrow,
    AccessLog,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeUnit {
    #[value(name = "s")]
    Seconds,
    #[value(name = "ms")]
    Millis,
    #[value(name = "us")]
    Micros,
    #[value(name = "ns")]
    Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    Stop,
    Skip,
}

/// Window, budget and keys.
#[derive(Debug, Args)]
#[command(next_help_heading = "Window, privacy and keys")]
pub(crate) struct Stream {
    /// The recent part that answers are about: a number of items (100000, 100k, 2M) or a time (90s, 15m, 1h30m,
    /// 2d, 1w); 5m is five minutes, 5M five million items. With --view: a shorter window
    #[arg(long, value_parser = quantity::span, value_name = "ITEMS|TIME", required_unless_present = "view")]
    pub(crate) window: Option<Span>,
    /// The privacy budget of everything that this run shows: the smaller, the more private and the noisier. There is no
    /// default; `dpsw plan` shows what error it gives
    #[arg(long, required_unless_present = "view")]
    pub(crate) epsilon: Option<f64>,
    #[command(flatten)]
    pub(crate) means: Means,
    /// The keys that may be listed, one per line. The list must be public, never made from the stream itself. Without a
    /// list, a share of the budget finds frequent keys privately
    #[arg(long, value_name = "FILE")]
    pub(crate) domain: Option<PathBuf>,
    /// What is protected of single events; --user-column protects whole users. `add-remove` needs events that happen when
    /// they arrive (--arrival-time)
    #[arg(long, value_enum, default_value_t = UnitName::ReplaceOne)]
    pub(crate) unit: UnitName,
    /// How many items of each user count, with --user-column, in each of the parts that a window is cut into; `dpsw plan`
    /// shows how long they are
    #[arg(long, default_value = "1", value_name = "COUNT", requires = "user_column", value_parser = quantity::per_user)]
    pub(crate) per_user: u32,
    #[command(flatten)]
    pub(crate) past: Past,
    /// Save what was released, to answer from it later without spending anything
    #[arg(long, value_name = "VIEW", conflicts_with = "view")]
    pub(crate) save: Option<PathBuf>,
    /// Answer from a saved view instead of reading a stream
    #[arg(long, value_name = "VIEW", conflicts_with_all = STREAM_ONLY)]
    pub(crate) view: Option<PathBuf>,
}

/// The means of a plan, besides epsilon.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Means {
    /// The delta of the promise; 1e-10 if the plan needs one and none is given. Giving one allows Gaussian noise
    #[arg(long)]
    pub(crate) delta: Option<f64>,
    /// Memory for the counters; by default as many as listed keys need, up to 64MB; else from 400KB to 12.8MB, as much
    /// as lowers the error
    #[arg(long, value_parser = quantity::bytes, value_name = "SIZE")]
    pub(crate) memory: Option<u64>,
    /// `tuned` has the smaller errors; `paper` is the method of the DPSW-Sketch paper, for comparison
    #[arg(long, value_enum, default_value_t = MethodName::Tuned)]
    pub(crate) method: MethodName,
}

/// The unit of privacy, for commands that read no stream.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Protects {
    /// What is protected
    #[arg(long, value_enum, default_value_t = UnitName::ReplaceOne)]
    pub(crate) unit: UnitName,
    /// How many items of each user count, with --unit users, in each of the parts that a window is cut into; 1 by default
    #[arg(long, value_name = "COUNT", value_parser = quantity::per_user)]
    pub(crate) per_user: Option<u32>,
}

/// The reach of a plan into the past.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Past {
    /// How many windows of the past to keep; from 2 on, trends compare this window with the one before it
    #[arg(long, value_parser = quantity::count_u32, default_value = "1", value_name = "WINDOWS")]
    pub(crate) retention: u32,
    /// How far an event may lag behind the newest one and still be counted
    #[arg(long, value_parser = quantity::duration, default_value = "0", value_name = "TIME")]
    pub(crate) lateness: Duration,
    /// About how many items a time window holds: a public guess. By default what a file looks like, else 1000000
    #[arg(long, value_parser = quantity::count, value_name = "COUNT")]
    pub(crate) expected_items: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    Tuned,
    Paper,
}

/// Numbers of the paper's method.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "With --method paper")]
pub(crate) struct Paper {
    /// Substreams per window
    #[arg(long, value_name = "COUNT", conflicts_with = "beta")]
    pub(crate) substreams: Option<u64>,
    /// Substreams of w^beta items instead
    #[arg(long)]
    pub(crate) beta: Option<f64>,
    /// The smooth factor of the paper's checkpoints, between 0 and 1
    #[arg(long)]
    pub(crate) alpha: Option<f64>,
    /// Steps of a substream at which checkpoints are considered; 0 for every item
    #[arg(long, value_name = "STEPS")]
    pub(crate) grid: Option<u64>,
    /// Rows of a sketch
    #[arg(long)]
    pub(crate) rows: Option<u32>,
    /// Columns of a sketch; by default as many as --memory allows
    #[arg(long)]
    pub(crate) columns: Option<u32>,
    /// Columns by the relative error zeta of a sketch; needs --eta
    #[arg(long, conflicts_with_all = ["rows", "columns"], requires = "eta")]
    pub(crate) zeta: Option<f64>,
    /// Rows by the failure probability eta of a sketch; needs --zeta
    #[arg(long, conflicts_with_all = ["rows", "columns"], requires = "zeta")]
    pub(crate) eta: Option<f64>,
    /// Budget shares: of the whole sketch, then of each further checkpoint; by default as printed in the paper
    #[arg(long, value_delimiter = ',', value_name = "SHARE,...")]
    pub(crate) shares: Vec<f64>,
}

impl From<&Paper> for paper::Paper {
    fn from(paper: &Paper) -> Self {
        let Paper { substreams, beta, alpha, grid, rows, columns, zeta, eta, ref shares } = *paper;
        Self { substreams, beta, alpha, grid, rows, columns, zeta, eta, shares: shares.clone() }
    }
}

/// The options of `dpsw plan`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Window, privacy and keys")]
pub(crate) struct PlanCommand {
    /// The window: a number of items (100000, 100k, 2M) or a time (90s, 15m, 1h30m, 2d, 1w); 5m is five minutes, 5M five
    /// million items
    #[arg(long, value_parser = quantity::span, value_name = "ITEMS|TIME")]
    pub(crate) window: Span,
    /// The privacy budget; if only a target is given, the smallest budget that reaches it is found
    #[arg(long, required_unless_present_any = ["target_error", "target_share"])]
    pub(crate) epsilon: Option<f64>,
    #[command(flatten)]
    pub(crate) means: Means,
    /// How many keys the domain has; without this and --domain, keys are found privately
    #[arg(long, value_parser = quantity::count, value_name = "COUNT", conflicts_with = "domain")]
    pub(crate) keys: Option<u64>,
    /// The public keys, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) domain: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) protects: Protects,
    #[command(flatten)]
    pub(crate) past: Past,
    /// Expected counts, one per line, never made from the stream; by default the n-th key has 1/n of the count of the first
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Option<PathBuf>,
    /// Reach this mean error of the 50 most frequent items, in items
    #[arg(long, value_name = "ITEMS", conflicts_with = "target_share")]
    pub(crate) target_error: Option<f64>,
    /// Reach this mean error of the 50 most frequent items, as a share of their counts
    #[arg(long, value_name = "SHARE")]
    pub(crate) target_share: Option<f64>,
    /// Find the smallest memory that reaches the target with this epsilon
    #[arg(long, requires = "epsilon")]
    pub(crate) smallest_memory: bool,
    #[command(flatten)]
    pub(crate) paper: Paper,
    /// One JSON document
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitName {
    /// One event is replaced by another; totals are public
    ReplaceOne,
    /// One event is added or removed; totals are private
    AddRemove,
    /// Everything that one user sends in a window is replaced; who sends when is public
    Users,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// The privacy budget that is claimed; the audit can tell something from about 0.3 to 5
    #[arg(long)]
    pub(crate) epsilon: f64,
    #[command(flatten)]
    pub(crate) means: Means,
    /// The window of the plan
    #[arg(long, value_parser = quantity::span, value_name = "ITEMS|TIME", default_value = "1000000")]
    pub(crate) window: Span,
    #[command(flatten)]
    pub(crate) protects: Protects,
    /// How many keys the domain has; a small domain gets one counter per key
    #[arg(long, value_parser = quantity::count, value_name = "COUNT", default_value = "25000")]
    pub(crate) keys: u64,
    /// Find keys privately, and audit what the found keys reveal too
    #[arg(long, conflicts_with = "keys")]
    pub(crate) discovered: bool,
    #[command(flatten)]
    pub(crate) paper: Paper,
    /// Runs on each of two streams that differ in one event
    #[arg(long, value_parser = quantity::count_usize, default_value = "20000", value_name = "COUNT", help_heading = "Effort")]
    pub(crate) runs: usize,
    /// How many sealed sketches to check for repeated noise
    #[arg(long, value_parser = quantity::count_usize, default_value = "400000", value_name = "COUNT", help_heading = "Effort")]
    pub(crate) seals: usize,
    /// The probability with which the audit of a correct build may fail
    #[arg(long, default_value_t = 2e-3, value_name = "PROBABILITY", help_heading = "Effort")]
    pub(crate) false_alarm: f64,
    /// One JSON document
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// A view that `--save` wrote
    #[arg(value_name = "VIEW")]
    pub(crate) view: PathBuf,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LedgerCommand {
    /// A file that `--ledger` wrote
    #[arg(value_name = "FILE")]
    pub(crate) ledger: PathBuf,
    /// Change the budget of this data set; a file that was charged also names it
    #[arg(long, value_name = "NAME", requires = "budget")]
    pub(crate) data_set: Option<String>,
    /// Its new budget
    #[arg(long, value_name = "EPSILON", requires = "data_set")]
    pub(crate) budget: Option<f64>,
    /// One JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// The summary as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a made-up access log of this many lines on stdout instead; the same number gives the same log
    #[arg(long, value_parser = quantity::count, value_name = "LINES", conflicts_with = "json")]
    pub(crate) log: Option<u64>,
    /// Run the service on this machine with a stream that never ends, and say how to ask it; Ctrl-C ends it
    #[arg(long, conflicts_with_all = ["json", "log"])]
    pub(crate) serve: bool,
    /// With --serve: the folder for everything, which is kept; by default a temporary one
    #[arg(long, value_name = "DIR", requires = "serve")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// What the program of the service, dpsw-server, is told; `dpsw serve --help` lists it
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// For which shell; `man` for the manual, or `schema` for the JSON Schema of answers
    #[arg(value_enum)]
    pub(crate) target: Target,
    /// Write files into this folder: with `man` a page per command, with `schema` one per kind of document (answer, plan,
    /// inspect, dry-run, ledger, audit, demo)
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
    Man,
    Schema,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
