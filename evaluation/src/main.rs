//! Measures dpsw against the methods of its paper.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;

use dpsw::plan::{Expectation, ExpectedDrift};
use dpsw::{Epsilon, Threshold};
use dpsw_eval::against::{self, Contest, Entry};
use dpsw_eval::catalog::{self, FIGURES};
use dpsw_eval::compare::{self, Comparison};
use dpsw_eval::coverage::{self, Requests};
use dpsw_eval::dataset::{self, Column, Dataset, Format, Synthetic};
use dpsw_eval::discovery;
use dpsw_eval::evaluate::{self, Evaluation};
use dpsw_eval::figure::Figure;
use dpsw_eval::manifest::{Manifest, commit};
use dpsw_eval::method::{Choices, Fixed, MethodName, Size, Tuning, delta_for};
use dpsw_eval::preset::Preset;
use dpsw_eval::results::Results;
use dpsw_eval::source::{PaperDataset, data_folder, table};
use dpsw_eval::stream::{REAL_STREAMS, RealData, RealStream, Shelf, Stream};

/// Measures dpsw against the methods of its paper.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  dpsw-eval all --preset quick
  dpsw-eval figure frequency-high
  dpsw-eval coverage --data ~/data
  dpsw-eval discovery --data ~/data
  dpsw-eval datasets --data ~/data
  dpsw-eval compare --dataset zipf --items 3000000 --window 1000000 --epsilon 1 --bytes 1120000
  dpsw-eval against --streams zipf,gauss,drift,swap --epsilon 0.1,0.2,0.5,1,2 --methods tuned,tumbling
  dpsw-eval against --streams real --methods tuned,tuned-plain --data ~/data
  dpsw-eval compare --dataset clicks.csv --column page --window 50000 --epsilon 1 --bytes 560000 --json";

const FIGURE_FILE: &str = "A figure of your own:
  dpsw-eval figure --show frequency-high > mine.toml   (edit it)
  dpsw-eval figure mine.toml

  title      its heading; paper: the figure of the paper, if any; about: a paragraph below it, if any
  shows      { curves = [METRIC, ...] }, { thresholds = VALUE OF THE AXIS }, \"predictions\"
             or, without [sweep], { distribution = [STREAM, ...] }, \"coverage\", \"discovery\"
  METRIC     mae_high, mae_low, mre_high, mre_low, insert_items_per_s, price_high, price_low,
             and for a threshold of the preset f1_0.01, precision_0.01, recall_0.01
  [sweep]    what is run
  name       of its rows in the results; figures with equal sweeps share them
  axis       epsilon, window (shares of the preset's), bytes, domain, checkpoints, substreams, rows, stream
  quick      values of the axis for --preset quick (of which tiny takes two); full: for --preset full
  streams    paper, real, or names
  methods    as in dpsw-eval compare --help
  bytes      of the sketches, unless varied
  goal       error or f1, by which parameters are chosen
  cores      all, or one where speed is measured";

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare methods on one stream at the same bytes and epsilon
    Compare(CompareArguments),
    /// Divide the errors of one method by those of another, on many streams
    Against(AgainstArguments),
    /// Run one figure (without a name: list them)
    #[command(after_help = FIGURE_FILE)]
    Figure(FigureArguments),
    /// Run every figure and write the report
    All(AllArguments),
    /// Measure how often 95 % intervals hold the truth, and which listed rows are ghosts
    Coverage(CoverageArguments),
    /// Measure how well keys are found without a list, and how soon
    Discovery(TableArguments),
    /// Draw which keys are cut into how many slices
    Slices {
        /// Where the picture is written
        #[arg(long, default_value = "slices.svg")]
        out: PathBuf,
    },
    /// Write figures and report again from the results of a folder
    Report {
        /// The folder of results
        #[arg(long, default_value = "results")]
        out: PathBuf,
    },
    /// Show the paper's data sets: what is here, and where to get the rest
    Datasets {
        #[command(flatten)]
        data: DataFolder,
        /// Where the figure of distributions is written
        #[arg(long, default_value = "results")]
        out: PathBuf,
    },
}

#[derive(Debug, Args)]
struct DataFolder {
    /// The data folder [default: the environment variable DPSW_DATA, else ./data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl DataFolder {
    fn path(&self) -> PathBuf {
        data_folder(self.data.as_deref())
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum PresetName {
    /// Seconds: shows that everything runs; its numbers mean nothing
    Tiny,
    /// Minutes
    Quick,
    /// Hours: the paper's streams and values
    Full,
}

impl PresetName {
    fn preset(self) -> Preset {
        match self {
            Self::Tiny => Preset::tiny(),
            Self::Quick => Preset::quick(),
            Self::Full => Preset::full(),
        }
    }
}

#[derive(Debug, Args)]
struct RunArguments {
    /// How much is run
    #[arg(long, value_enum, default_value_t = PresetName::Quick)]
    preset: PresetName,
    #[command(flatten)]
    data: DataFolder,
    /// The folder of results; finished points in it are not run again
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// Run finished points again
    #[arg(long)]
    fresh: bool,
}

#[derive(Debug, Args)]
struct FigureArguments {
    /// Which figure, or a file of your own that ends in .toml
    #[arg(value_name = "NAME|FILE.toml")]
    name: Option<String>,
    /// Print the file of the figure, to start your own from
    #[arg(long, requires = "name")]
    show: bool,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(Debug, Args)]
struct AllArguments {
    #[command(flatten)]
    run: RunArguments,
    /// Take preset and figures from the manifest of an earlier run, or from the JSON of a figure
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    manifest: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct TableArguments {
    #[command(flatten)]
    run: RunArguments,
    /// Print one JSON array of rows
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct CoverageArguments {
    #[command(flatten)]
    table: TableArguments,
    /// Measure lists alone, by what they are asked for: all keys, few keys, thresholds below the noise, strict ones, short windows
    #[arg(long)]
    requests: bool,
    /// Streams of --requests: synthetic ones, and real ones of the data folder
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "zipf,kosarak,retail,movielens-small,nasa,void-touches,sotu-words,web07,flights-2001"
    )]
    streams: Vec<String>,
    /// Privacy budgets of --requests
    #[arg(long, value_delimiter = ',', default_values_t = [1.0, 0.2])]
    epsilon: Vec<f64>,
    /// Windows of --requests
    #[arg(long, value_delimiter = ',', default_values_t = [100_000, 10_000, 2_000])]
    windows: Vec<u64>,
    /// Seeds of --requests
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// Query times per seed of --requests
    #[arg(long, default_value_t = 10)]
    queries: usize,
    /// Only the questions of --requests whose name contains this, such as short or strict
    #[arg(long, default_value = "", hide_default_value = true)]
    only: String,
}

#[derive(Debug, Args)]
struct CompareArguments {
    /// zipf, gauss, drift, swap, aol, movielens, worldcup, or a file
    #[arg(long)]
    dataset: String,
    /// The format of a file [default: by its name]
    #[arg(long)]
    format: Option<Format>,
    /// The column of the items: a number from 1, or a name, which implies a header
    #[arg(long)]
    column: Option<String>,
    /// Skip the first line of a file
    #[arg(long)]
    header: bool,
    /// Items of a synthetic stream; the largest number that is read of a data set of the paper
    #[arg(long, default_value_t = 3_000_000)]
    items: usize,
    /// Window length in items
    #[arg(long, default_value_t = 1_000_000)]
    window: u64,
    /// The privacy budget
    #[arg(long)]
    epsilon: f64,
    /// Bytes of the sketches
    #[arg(long, default_value_t = 1_120_000)]
    bytes: u64,
    /// Methods to compare
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "paper,paper-balanced,tuned,tuned-hashed"
    )]
    methods: Vec<MethodName>,
    /// Seeds, each for a synthetic stream and for noise
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// Thresholds of heavy hitters, as shares of the window
    #[arg(long, value_delimiter = ',', default_values_t = [0.005, 0.01])]
    gamma: Vec<f64>,
    /// Query times per seed
    #[arg(long, default_value_t = 30)]
    queries: usize,
    /// Try the parameters of the paper's structure and of the baselines over their grids, and take the best
    #[arg(long)]
    tune: bool,
    /// Expected counts or shares of a window for the planner of `tuned`: a public file with one number
    /// per line, after any key and a tab; never made from the stream
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    #[command(flatten)]
    data: DataFolder,
    /// Print one JSON array of rows
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct AgainstArguments {
    /// Synthetic streams and real ones of the data folder; `real` is all of those that are there
    #[arg(long, value_delimiter = ',', required = true)]
    streams: Vec<String>,
    /// The method whose errors are divided, and the one by whose
    #[arg(long, value_enum, value_delimiter = ',', required = true)]
    methods: Vec<MethodName>,
    /// Privacy budgets
    #[arg(long, value_delimiter = ',', default_values_t = [1.0])]
    epsilon: Vec<f64>,
    /// Window length of synthetic streams, which have three windows; real ones have their own
    #[arg(long, default_value_t = 1_000_000)]
    window: u64,
    /// Bytes of the sketches
    #[arg(long, default_value_t = 1_120_000)]
    bytes: u64,
    /// Seeds, each for a synthetic stream and for noise
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// Query times per seed
    #[arg(long, default_value_t = 30)]
    queries: usize,
    #[command(flatten)]
    data: DataFolder,
    /// Print one JSON array of rows
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Compare(arguments) => compare(&arguments),
        Command::Against(arguments) => against(&arguments),
        Command::Figure(arguments) => one_figure(&arguments),
        Command::All(arguments) => all(&arguments),
        Command::Coverage(arguments) => coverage(&arguments),
        Command::Discovery(arguments) => discovery(&arguments),
        Command::Slices { out } => {
            std::fs::write(&out, dpsw_eval::slices::svg()?)?;
            show(&[out]);
            Ok(())
        }
        Command::Report { out } => evaluate::rewrite(&out).map(|paths| show(&paths)),
        Command::Datasets { data, out } => show_datasets(&data.path(), &out),
    }
}

fn one_figure(arguments: &FigureArguments) -> Result<()> {
    let Some(name) = &arguments.name else {
        FIGURES.iter().for_each(|figure| println!("{:<20} {}", figure.name, figure.title));
        return Ok(());
    };
    let is_file = Path::new(name).extension().is_some_and(|ending| ending == "toml");
    let figure = if is_file { catalog::read(Path::new(name))? } else { catalog::figure(name)?.clone() };
    if arguments.show {
        print!("{}", figure.text);
        return Ok(());
    }
    let (manifest, results) = run_figures(&arguments.run, &arguments.run.preset.preset(), &[figure])?;
    show(&evaluate::write_figure(&arguments.run.out, &manifest, &results)?);
    Ok(())
}

fn coverage(arguments: &CoverageArguments) -> Result<()> {
    let table = &arguments.table;
    if !arguments.requests {
        let results = run_table(table, "coverage")?;
        return print_rows(&results.coverage, table.json, coverage::table);
    }
    let CoverageArguments { seeds, queries, .. } = *arguments;
    ensure!(0 < seeds.min(queries as u64), "seeds and queries are at least 1");
    let requests = Requests {
        streams: arguments.streams.clone(),
        epsilons: arguments.epsilon.clone(),
        windows: arguments.windows.clone(),
        seeds,
        queries,
        only: arguments.only.clone(),
    };
    let rows = requests.run(&Shelf::new(Some(table.run.data.path())))?;
    print_rows(&rows, table.json, coverage::request_table)
}

fn discovery(arguments: &TableArguments) -> Result<()> {
    let results = run_table(arguments, "discovery")?;
    print_rows(&results.discovery, arguments.json, discovery::table)
}

/// Runs and draws the figure of a table.
fn run_table(arguments: &TableArguments, name: &str) -> Result<Results> {
    let run = &arguments.run;
    let (manifest, results) = run_figures(run, &run.preset.preset(), &[catalog::figure(name)?.clone()])?;
    evaluate::write_figure(&run.out, &manifest, &results)?;
    Ok(results)
}

fn print_rows<R: Serialize>(rows: &[R], as_json: bool, table: impl Fn(&[R]) -> String) -> Result<()> {
    if as_json {
        println!("{}", serde_json::to_string_pretty(rows)?);
    } else {
        print!("{}", table(rows));
    }
    Ok(())
}

fn all(arguments: &AllArguments) -> Result<()> {
    let (preset, figures) = match &arguments.manifest {
        Some(path) => asked_by(path)?,
        None => (arguments.run.preset.preset(), FIGURES.clone()),
    };
    let (manifest, results) = run_figures(&arguments.run, &preset, &figures)?;
    show(&evaluate::write(&arguments.run.out, &manifest, &results)?);
    Ok(())
}

fn asked_by(path: &Path) -> Result<(Preset, Vec<Figure>)> {
    let manifest = Manifest::read(path)?;
    if manifest.commit != commit() {
        eprintln!("the manifest is of commit {}, this is {}; results may differ", manifest.commit, commit());
    }
    let figures = manifest.figures().with_context(|| path.display().to_string())?;
    Ok((manifest.preset, figures))
}

fn run_figures(arguments: &RunArguments, preset: &Preset, figures: &[Figure]) -> Result<(Manifest, Results)> {
    let points = arguments.out.join("points");
    if arguments.fresh && points.is_dir() {
        std::fs::remove_dir_all(&points).with_context(|| points.display().to_string())?;
    }
    listen(arguments)?;
    let data = Some(arguments.data.path());
    let figures: Vec<&Figure> = figures.iter().collect();
    Evaluation { preset, figures: &figures, data, out: &arguments.out }.run()
}

/// The exit code of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Ctrl-C ends the program at once: every finished point is in its file.
fn listen(arguments: &RunArguments) -> Result<()> {
    let without = if arguments.fresh { " without --fresh" } else { "" };
    let kept = arguments.out.join("points").display().to_string();
    ctrlc::set_handler(move || {
        // The line of the progress bar.
        if std::io::stderr().is_terminal() {
            eprintln!();
        }
        eprintln!("interrupted: {kept} holds what is finished; the same command{without} goes on from there");
        std::process::exit(INTERRUPTED);
    })
    .context("interrupts cannot be caught")
}

fn show(paths: &[PathBuf]) {
    paths.iter().for_each(|path| println!("{}", path.display()));
}

fn show_datasets(data: &Path, out: &Path) -> Result<()> {
    let entries = table::table(data);
    print!("{}", table::render(&entries));
    let path = out.join("figures").join("datasets.svg");
    evaluate::write_distributions(&path, &entries)?;
    println!("\n{}", path.display());
    Ok(())
}

fn compare(arguments: &CompareArguments) -> Result<()> {
    check(arguments)?;
    let datasets = datasets(arguments)?;
    let first = datasets.first().context("there is at least one seed")?;
    let (window, len) = (arguments.window, first.items.len());
    ensure!(
        window < len as u64,
        "--window must be below the {len} items of {}, got {window}; give a smaller window or a longer stream",
        first.name
    );
    let size = Size {
        window_len: arguments.window,
        domain_len: first.domain_len,
        bytes: arguments.bytes,
        epsilon: arguments.epsilon,
        delta: delta_for(first.items.len()),
    };
    let rows = compare::run(&Comparison {
        datasets: &datasets,
        methods: &arguments.methods,
        size,
        gammas: &arguments.gamma,
        queries: arguments.queries,
        choices: Choices {
            tuning: if arguments.tune { Tuning::Wide } else { Tuning::Defaults },
            fixed: Fixed::default(),
            expectation: expectation(arguments, first.domain_len)?,
        },
    })?;
    print_rows(&rows, arguments.json, compare::table)
}

fn against(arguments: &AgainstArguments) -> Result<()> {
    let AgainstArguments { bytes, queries, seeds, window, .. } = *arguments;
    ensure!(
        0 < bytes.min(seeds).min(window).min(queries as u64),
        "bytes, seeds, window and queries are at least 1"
    );
    let methods = arguments.methods.as_slice().try_into().context("two methods are compared")?;
    let contest = Contest { methods, bytes, queries };
    let entries = entries(arguments)?;
    let mut rows = Vec::new();
    for &epsilon in &arguments.epsilon {
        Epsilon::new(epsilon).context("--epsilon")?;
        rows.extend(contest.run(&entries, epsilon)?);
    }
    print_rows(&rows, arguments.json, against::table)
}

fn entries(arguments: &AgainstArguments) -> Result<Vec<Entry>> {
    let shelf = Shelf::new(Some(arguments.data.path()));
    let data = RealData::of(&shelf)?;
    let mut entries = Vec::new();
    for name in &arguments.streams {
        if Synthetic::named(name).is_some() {
            entries.push(synthetic(name, arguments));
            continue;
        }
        let wanted = REAL_STREAMS.iter().filter(|real| name == "real" || name == real.name);
        let before = entries.len();
        for real in wanted.filter(|real| data.has(real.name)) {
            entries.push(real_entry(real, arguments.seeds, &shelf)?);
        }
        ensure!(before < entries.len(), "there is no stream {name} in {}", arguments.data.path().display());
    }
    Ok(entries)
}

fn synthetic(name: &str, arguments: &AgainstArguments) -> Entry {
    let (stream, window_len) = (Synthetic::named(name).expect("it was found"), arguments.window);
    let generate = |seed| stream.generate(3 * window_len as usize, window_len, seed);
    Entry { datasets: (0..arguments.seeds).map(generate).collect(), window_len }
}

fn real_entry(real: &RealStream, seeds: u64, shelf: &Shelf) -> Result<Entry> {
    let stream = Stream::new(real.name, 0, usize::MAX, 0, 0);
    let datasets = (0..seeds).map(|_| stream.read(shelf.folder())).collect::<Result<_>>()?;
    Ok(Entry { datasets, window_len: real.window_len })
}

fn check(arguments: &CompareArguments) -> Result<()> {
    let CompareArguments { items, window, bytes, seeds, queries, .. } = *arguments;
    for (name, value) in [
        ("--items", items as u64),
        ("--window", window),
        ("--bytes", bytes),
        ("--seeds", seeds),
        ("--queries", queries as u64),
    ] {
        ensure!(0 < value, "{name} must be at least 1, got 0");
    }
    Epsilon::new(arguments.epsilon).context("--epsilon")?;
    arguments.gamma.iter().try_for_each(|&gamma| Threshold::new(gamma).map(drop)).context("--gamma")
}

fn expectation(arguments: &CompareArguments, domain_len: usize) -> Result<Expectation> {
    let Some(path) = &arguments.expect else { return Ok(Expectation::zipf(domain_len)) };
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let prior = text.parse().with_context(|| path.display().to_string())?;
    Ok(Expectation { prior, drift: Some(ExpectedDrift::MODERATE) })
}

/// A synthetic stream for each seed, or the same data set or file for all.
fn datasets(arguments: &CompareArguments) -> Result<Vec<Dataset>> {
    let name = &arguments.dataset;
    let read = || match PaperDataset::named(name) {
        Some(paper) => Ok(paper.load(&arguments.data.path(), Some(arguments.items))?.dataset),
        None => {
            ensure!(
                Path::new(name).exists(),
                "there is no file and no stream {name}; streams are zipf, gauss, drift, swap, aol, movielens, worldcup"
            );
            let column = Column { column: arguments.column.clone(), header: arguments.header };
            dataset::read(Path::new(name), arguments.format, &column)
        }
    };
    let one = |seed| match Synthetic::named(name) {
        Some(synthetic) => Ok(synthetic.generate(arguments.items, arguments.window, seed)),
        None => read(),
    };
    (0..arguments.seeds).map(one).collect()
}
