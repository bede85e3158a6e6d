//! Measures dpsw against the methods of its paper.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

use dpsw::{Drift, Expectation};
use dpsw_eval::compare::{self, Comparison};
use dpsw_eval::dataset::{self, Column, Dataset, Format, Synthetic};
use dpsw_eval::method::{Choices, Fixed, MethodName, Size, Tuning};

/// Measures dpsw against the methods of its paper.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  dpsw-eval compare --dataset zipf --items 3000000 --window 1000000 --epsilon 1 --bytes 1120000
  dpsw-eval compare --dataset clicks.csv --column page --window 50000 --epsilon 1 --bytes 560000 --json";

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare methods on one stream at the same bytes and epsilon
    Compare(CompareArguments),
}

#[derive(Debug, Args)]
struct CompareArguments {
    /// zipf, gauss, drift, swap, or a file
    #[arg(long)]
    dataset: String,
    /// How a file holds its items (guessed from its name)
    #[arg(long)]
    format: Option<Format>,
    /// The column of the items: a number from 1, or a name, which implies a header
    #[arg(long)]
    column: Option<String>,
    /// Skip the first line of a file
    #[arg(long)]
    header: bool,
    /// Items of a synthetic stream
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
    #[arg(long, value_enum, value_delimiter = ',', default_value = "paper,paper-balanced,tuned")]
    methods: Vec<MethodName>,
    /// Streams (synthetic) and noise draws
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// Thresholds of heavy hitters, as shares of the window
    #[arg(long, value_delimiter = ',', default_values_t = [0.005, 0.01])]
    gamma: Vec<f64>,
    /// Query times a seed
    #[arg(long, default_value_t = 30)]
    queries: usize,
    /// Try the parameters of the paper's methods over its grid and take the best
    #[arg(long)]
    tune: bool,
    /// Expected counts or shares of a window for the planner of `tuned`: a public file, one number a line after any key
    /// and tab; never made from the stream
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Print one JSON array of rows
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Compare(arguments) => compare(&arguments),
    }
}

fn compare(arguments: &CompareArguments) -> Result<()> {
    let datasets = datasets(arguments)?;
    let first = datasets.first().context("at least one seed is needed")?;
    let size = Size {
        window_len: arguments.window,
        domain_len: first.domain_len,
        bytes: arguments.bytes,
        epsilon: arguments.epsilon,
        delta: (first.items.len() as f64).powf(-1.5),
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
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", compare::table(&rows));
    }
    Ok(())
}

fn expectation(arguments: &CompareArguments, domain_len: usize) -> Result<Expectation> {
    let Some(path) = &arguments.expect else { return Ok(Expectation::zipf(domain_len)) };
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let prior = text.parse().with_context(|| path.display().to_string())?;
    Ok(Expectation { prior, drift: Some(Drift::MODERATE) })
}

/// A synthetic stream for each seed, or the same file for all.
fn datasets(arguments: &CompareArguments) -> Result<Vec<Dataset>> {
    let read = || {
        let column = Column { column: arguments.column.clone(), header: arguments.header };
        dataset::read(Path::new(&arguments.dataset), arguments.format, &column)
    };
    let one = |seed| match Synthetic::named(&arguments.dataset) {
        Some(synthetic) => Ok(synthetic.generate(arguments.items, arguments.window, seed)),
        None => read(),
    };
    (0..arguments.seeds).map(one).collect()
}
