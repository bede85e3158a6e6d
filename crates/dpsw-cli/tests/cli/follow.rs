//! Growing files, rotated files, pipes, and interrupts.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use crate::sandbox::{EXACT, Sandbox, check_shares, records, signal, text};

/// A run that answers every 1,000 items, without noise.
struct Following {
    sandbox: Sandbox,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Following {
    fn start() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("t.csv", "k\n");
        let arguments = [
            "top", "t.csv", "--column", "k", "--follow", "--window", "1000", "--domain", "keys.txt",
            "--every", "1000", "--ndjson",
        ];
        let mut child = sandbox.start(&mut sandbox.command(&[&arguments[..], &EXACT].concat()));
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { sandbox, child, output }
    }

    fn append(&self, text: &str) {
        let mut file =
            OpenOptions::new().append(true).create(true).open(self.sandbox.path("t.csv")).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    fn end(mut self) -> Option<i32> {
        signal(&self.child, "-INT");
        self.child.wait().expect("it ends").code()
    }
}

fn lines(count: usize) -> String {
    records(count, |_, item| format!("{item}\n"))
}

#[test]
fn a_file_that_grows_is_followed_and_an_interrupt_prints_what_is_there() {
    let mut following = Following::start();
    let all = lines(2000);
    // Cut in the middle of a line.
    let (first, second) = all.split_at(2001);
    following.append(first);
    check_shares(&following.answer(), [0.5, 0.3, 0.2]);
    following.append(second);
    assert_eq!(following.answer()["window"]["end"], 2000);
    following.append(&lines(10));
    let mut child = following;
    signal(&child.child, "-INT");
    let last = child.answer();
    assert!(2000 <= last["window"]["end"].as_u64().expect("a position"), "{last}");
    assert_eq!(child.child.wait().expect("it ends").code(), Some(130));
}

#[test]
fn a_file_that_is_renamed_or_cut_is_followed_into_the_new_one() {
    let mut following = Following::start();
    following.append(&lines(990));
    let path = following.sandbox.path("t.csv");
    std::fs::rename(&path, following.sandbox.path("t.csv.1")).expect("renamed");
    // Writers often go on into the renamed file for a while; the last line has no end.
    let mut old =
        OpenOptions::new().append(true).open(following.sandbox.path("t.csv.1")).expect("the old file");
    old.write_all(lines(10).trim_end().as_bytes()).expect("written");
    drop(old);
    // The new file has a header again.
    following.append("k\n");
    following.append(&lines(1000));
    assert_eq!(following.answer()["window"]["end"], 1000);
    check_shares(&following.answer(), [0.5, 0.3, 0.2]);
    OpenOptions::new().write(true).truncate(true).open(&path).expect("cut");
    std::thread::sleep(std::time::Duration::from_millis(300));
    following.append("k\n");
    following.append(&lines(1000));
    check_shares(&following.answer(), [0.5, 0.3, 0.2]);
    assert_eq!(following.end(), Some(130));
}

#[test]
fn followed_events_happen_when_they_arrive() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "");
    let arguments = [
        "top", "t.txt", "--follow", "--window", "1s", "--domain", "keys.txt", "--every", "300ms", "--ndjson",
    ];
    let mut child = sandbox.start(&mut sandbox.command(&[&arguments[..], &EXACT].concat()));
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let (mut had_some, mut had_none_again) = (false, false);
    for round in 0..40 {
        if round < 5 {
            let mut file = OpenOptions::new().append(true).open(sandbox.path("t.txt")).expect("a file");
            file.write_all(lines(1000).as_bytes()).expect("written");
        }
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let answer: Value = serde_json::from_str(&line).expect("an answer");
        assert_eq!(answer["window"]["unit"], "ms");
        let first = answer["items"][0]["estimate"].as_f64().unwrap_or(0.0);
        had_some |= 100.0 < first;
        // Intervals are sealed also when nothing arrives, so the window empties.
        had_none_again |= had_some && first < 1.0;
        if had_none_again {
            break;
        }
    }
    assert!(had_some && had_none_again, "{had_some} {had_none_again}");
    signal(&child, "-INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

#[test]
fn an_interrupt_while_a_pipe_is_silent_prints_what_is_there() {
    let sandbox = Sandbox::new();
    let arguments = [
        "top", "--window", "1000", "--domain", "keys.txt", "--every", "1000", "--ndjson", "--save", "t.view",
    ];
    let mut child = sandbox.start(sandbox.command(&[&arguments[..], &EXACT].concat()).stdin(Stdio::piped()));
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(lines(1500).as_bytes()).expect("written");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("the first answer");
    signal(&child, "-INT");
    line.clear();
    output.read_line(&mut line).expect("the last answer");
    let answer: Value = serde_json::from_str(&line).expect("an answer");
    check_shares(&answer, [0.5, 0.3, 0.2]);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let view = sandbox.run(&["top", "--view", "t.view", "--csv"]);
    assert!(text(&view).contains(",1,a,"));
}

#[test]
fn whoever_stops_reading_is_no_failure() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", lines(100_000));
    let arguments =
        ["top", "t.txt", "--window", "1000", "--domain", "keys.txt", "--every", "100", "--ndjson"];
    let mut child = sandbox.start(&mut sandbox.command(&[&arguments[..], &EXACT].concat()));
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
}
