//! A temporary directory, the binary, and streams whose counts are known.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{PATIENCE, Run};

/// With an epsilon this large noise is zero but for a probability below e^-100000.
pub(crate) const EXACT: [&str; 2] = ["--epsilon", "1000000"];

pub(crate) struct Sandbox(TempDir);

impl Sandbox {
    pub(crate) fn new() -> Self {
        let sandbox = Self(TempDir::new().expect("a temporary directory"));
        sandbox.write("keys.txt", "a\nb\nc\n");
        sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("a file is written");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpsw"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        Run::start(&mut self.command(arguments)).output()
    }

    pub(crate) fn pipe(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut run = Run::start(self.command(arguments).stdin(Stdio::piped()));
        // The program may stop early.
        let _ = run.stdin.take().expect("a pipe").write_all(input);
        run.output()
    }

    /// `dpsw top` without noise over 1,000 items, as JSON.
    #[track_caller]
    pub(crate) fn top(&self, arguments: &[&str]) -> Value {
        let fixed = ["top", "--window", "1000", "--domain", "keys.txt", "--json"];
        json(&self.run(&[&fixed[..], &EXACT, arguments].concat()))
    }
}

/// The document on stdout of a run that must succeed.
#[track_caller]
pub(crate) fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", errors(output));
    serde_json::from_slice(&output.stdout).expect("a JSON document")
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// A run that must fail with this code and say these things, and nothing on stdout.
#[track_caller]
pub(crate) fn fails(output: &Output, code: i32, wanted: &[&str]) {
    let message = errors(output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    for part in wanted {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    assert!(output.stdout.is_empty(), "{}", text(output));
}

/// Estimates of a, b and c in an answer are these shares of the window.
#[track_caller]
pub(crate) fn check_shares(answer: &Value, shares: [f64; 3]) {
    for (name, share) in ["a", "b", "c"].iter().zip(shares) {
        let row = answer["items"].as_array().expect("items").iter().find(|row| row["item"] == *name);
        // What may be noise alone is hidden.
        let got = row.map_or(0.0, |row| row["share"].as_f64().expect("a share"));
        // The interpolated edges of the window hold at most a pattern of ten items more or less.
        assert!((got - share).abs() <= 0.011, "{name}: {got}, not {share}, in {answer}");
    }
}

/// Ten records: five a, three b, two c, mixed.
pub(crate) const PATTERN: [&str; 10] = ["a", "b", "a", "c", "a", "b", "a", "c", "b", "a"];

/// The pattern again and again, each record written by a function of its number from 0 and item.
pub(crate) fn records(count: usize, record: impl Fn(usize, &str) -> String) -> String {
    (0..count).map(|number| record(number, PATTERN[number % 10])).collect()
}

/// A run whose answers are read line by line as they come.
pub(crate) struct Live {
    pub(crate) run: Run,
    lines: Receiver<String>,
}

impl Live {
    pub(crate) fn new(mut run: Run) -> Self {
        let output = BufReader::new(run.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { run, lines }
    }

    /// The next answer.
    #[track_caller]
    pub(crate) fn answer(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer in time");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    pub(crate) fn interrupt(&self) {
        self.run.signal("-INT");
    }

    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.run.code()
    }
}

/// Asks for the top of a file with times, of the keys in `keys.txt`.
pub(crate) fn timed<'a>(file: &'a str, item: &'a str, time: &'a str, window: &'a str) -> [&'a str; 10] {
    ["top", file, "--column", item, "--time-column", time, "--window", window, "--domain", "keys.txt"]
}
