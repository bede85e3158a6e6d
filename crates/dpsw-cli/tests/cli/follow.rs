//! Growing files, rotated files, pipes, and interrupts.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::run::Run;
use crate::sandbox::{EXACT, Live, Sandbox, check_shares, errors, fails, json, records, text};

/// A run that answers every 1,000 items, without noise.
struct Following {
    sandbox: Sandbox,
    live: Live,
}

impl Following {
    fn start() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("t.csv", "k\n");
        let live =
            start(&sandbox, &["t.csv", "--column", "k", "--follow", "--window", "1000", "--every", "1000"]);
        Self { sandbox, live }
    }

    fn append(&self, text: &str) {
        append(&self.sandbox, "t.csv", text);
    }
}

fn start(sandbox: &Sandbox, arguments: &[&str]) -> Live {
    let fixed = ["top", "--domain", "keys.txt", "--ndjson"];
    let mut command = sandbox.command(&[&fixed[..], arguments, &EXACT].concat());
    Live::new(Run::start(command.stdin(Stdio::piped())))
}

fn append(sandbox: &Sandbox, name: &str, text: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(sandbox.path(name)).expect("a file");
    file.write_all(text.as_bytes()).expect("written");
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
    check_shares(&following.live.answer(), [0.5, 0.3, 0.2]);
    following.append(second);
    assert_eq!(following.live.answer()["window"]["end"], 2000);
    following.append(&lines(10));
    following.live.interrupt();
    let last = following.live.answer();
    assert!(2000 <= last["window"]["end"].as_u64().expect("a position"), "{last}");
    assert_eq!(following.live.wait(), Some(130));
}

#[test]
fn a_file_that_is_not_there_yet_is_waited_for() {
    let sandbox = Sandbox::new();
    let mut live = start(&sandbox, &["t.txt", "--follow", "--window", "1000", "--every", "1000"]);
    let mut remarks = BufReader::new(live.run.stderr.take().expect("a pipe")).lines();
    let waits = |line: &String| line.contains("t.txt is not there yet; waiting for it");
    remarks.by_ref().map_while(Result::ok).find(waits).expect("it says so");
    append(&sandbox, "t.txt", &lines(1000));
    check_shares(&live.answer(), [0.5, 0.3, 0.2]);
    live.interrupt();
    assert_eq!(live.wait(), Some(130));
    assert!(!remarks.map_while(Result::ok).any(|line| waits(&line)), "it says so once");
}

#[test]
fn a_file_that_is_renamed_or_cut_is_followed_into_the_new_one() {
    let mut following = Following::start();
    following.append(&lines(1000));
    following.live.answer();
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
    assert_eq!(following.live.answer()["window"]["end"], 2000);
    check_shares(&following.live.answer(), [0.5, 0.3, 0.2]);
    OpenOptions::new().write(true).truncate(true).open(&path).expect("cut");
    std::thread::sleep(std::time::Duration::from_millis(300));
    following.append("k\n");
    following.append(&lines(1000));
    check_shares(&following.live.answer(), [0.5, 0.3, 0.2]);
    following.live.interrupt();
    assert_eq!(following.live.wait(), Some(130));
}

#[test]
fn several_files_are_followed_and_rotated_on_their_own() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "k\n");
    sandbox.write("a.csv.1", "n,k\n");
    let files = ["a.csv", "a.csv.1", "b.csv", "--format", "csv", "--column", "k"];
    let mut live =
        start(&sandbox, &[&files[..], &["--follow", "--window", "1000", "--every", "1000"]].concat());
    let end = |live: &Live| live.answer()["window"]["end"].as_u64();
    // Each file has its header, and its last line is completed later.
    append(&sandbox, "b.csv", &format!("x,k\n{}x,", records(399, |_, item| format!("x,{item}\n"))));
    append(&sandbox, "a.csv", &lines(300));
    append(&sandbox, "a.csv.1", &records(300, |n, item| format!("{n},{item}\n")));
    append(&sandbox, "b.csv", "a\n");
    let answer = live.answer();
    assert_eq!(answer["window"]["end"], 1000);
    check_shares(&answer, [0.5, 0.3, 0.2]);
    // What the second name leads to now was read under the first.
    std::fs::rename(sandbox.path("a.csv"), sandbox.path("a.csv.1")).expect("renamed");
    sandbox.write("a.csv", format!("k\n{}", lines(600)));
    std::fs::remove_file(sandbox.path("b.csv")).expect("removed");
    sandbox.write("b.csv", format!("x,k\n{}", records(390, |_, item| format!("x,{item}\n"))));
    // Ten are missing, until more is written.
    std::thread::sleep(std::time::Duration::from_millis(500));
    append(&sandbox, "a.csv", &lines(10));
    assert_eq!(end(&live), Some(2000));
    append(&sandbox, "b.csv", &records(1000, |_, _| "x,c\n".to_owned()));
    check_shares(&live.answer(), [0.0, 0.0, 1.0]);
    live.interrupt();
    assert_eq!(live.wait(), Some(130));
    let fixed = [&["top", "--window", "1000", "--follow"][..], &EXACT].concat();
    let piped = sandbox.pipe(&[&fixed[..], &["a.csv", "-"]].concat(), b"a\n");
    fails(&piped, 2, &["standard input is a pipe; --follow takes files, or one pipe alone"]);
}

#[test]
fn followed_events_happen_when_they_arrive_if_that_is_asked_for() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "");
    let arrival = ["--arrival-time", "--window", "1s", "--every", "300ms"];
    let mut live = start(&sandbox, &[&["t.txt", "--follow"][..], &arrival].concat());
    let (mut had_some, mut had_none_again) = (false, false);
    for round in 0..40 {
        if round < 5 {
            append(&sandbox, "t.txt", &lines(1000));
        }
        let answer = live.answer();
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
    live.interrupt();
    assert_eq!(live.wait(), Some(130));
}

/// A log of 1995 with ten records a second, from this second on.
fn logged(seconds: std::ops::Range<usize>) -> String {
    records(10 * seconds.len(), |n, item| {
        let second = seconds.start + n / 10;
        let (minute, second) = (second / 60, second % 60);
        format!("h - - [01/Jul/1995:00:{minute:02}:{second:02} +0000] \"GET {item} HTTP/1.0\" 200 1\n")
    })
}

/// 1995-07-01T00:00:00Z, in milliseconds.
const JULY: u64 = 804_556_800_000;

#[test]
fn times_in_followed_records_decide_and_real_time_says_when_to_answer() {
    let sandbox = Sandbox::new();
    sandbox.write("access.log", logged(0..100));
    sandbox.write(
        "t.csv",
        format!("t,k\n{}", records(1000, |n, item| format!("{},{item}\n", JULY / 1000 + n as u64 / 10))),
    );
    for file in [&["access.log"][..], &["t.csv", "--time-column", "t", "--column", "k"]] {
        let fixed = ["--follow", "--window", "10s", "--every", "300ms"];
        let mut live = start(&sandbox, &[file, &fixed[..]].concat());
        let end = |answer: &Value| answer["window"]["end"].as_u64().expect("a time");
        let mut last = live.answer();
        while end(&last) < JULY + 99_000 {
            last = live.answer();
        }
        // Of 1,000 records the window has 100 or so.
        let items = last["items"].as_array().expect("items");
        let sum: f64 = items.iter().filter_map(|row| row["estimate"].as_f64()).sum();
        assert!((50.0..=150.0).contains(&sum), "{last}");
        // Nothing comes, and the window stands still.
        assert_eq!(end(&live.answer()), end(&last));
        if file.len() == 1 {
            append(&sandbox, "access.log", &logged(100..200));
            while end(&last) < JULY + 199_000 {
                last = live.answer();
            }
        }
        live.interrupt();
        assert_eq!(live.wait(), Some(130));
    }
}

#[test]
fn files_of_the_same_time_are_told_before_they_are_read() {
    let sandbox = Sandbox::new();
    for (name, seconds) in [("old.log", 0..100), ("new.log", 100..200), ("other.log", 50..150)] {
        sandbox.write(name, logged(seconds));
    }
    let fixed = ["top", "--domain", "keys.txt", "--window", "10s", "--json"];
    for (files, said) in [
        (&["old.log", "new.log"][..], None),
        (&["new.log", "old.log"], Some("old.log begins before the file that is named before it ends")),
        (&["old.log", "other.log"], Some("other.log begins before the file that is named before it ends")),
    ] {
        let output = sandbox.run(&[&fixed[..], &EXACT, files].concat());
        json(&output);
        let remarks = errors(&output);
        assert_eq!(remarks.contains("begins before"), said.is_some(), "{remarks}");
        assert!(said.is_none_or(|said| remarks.contains(said)), "{remarks}");
        assert_eq!(remarks.contains("came too late"), said.is_some(), "{remarks}");
    }
}

#[test]
fn records_without_times_need_a_choice() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", lines(10));
    sandbox.write("t.csv", "k\na\n");
    sandbox.write("access.log", logged(0..1));
    let fixed = [&["top", "--domain", "keys.txt"][..], &EXACT].concat();
    let time = ["--window", "10s"];
    for (arguments, wanted) in [
        (&["t.txt"][..], &["t.txt: ", "--time-column", "--arrival-time"][..]),
        (&["t.txt", "--follow"], &["t.txt: ", "--time-column", "--arrival-time"]),
        (&["t.csv", "--column", "k", "--follow"], &["t.csv: ", "--time-column", "--arrival-time"]),
        (&["t.txt", "--arrival-time"], &["t.txt is read at once", "--follow"]),
        (&["access.log", "--arrival-time"], &["access.log is read at once"]),
        (
            &["t.csv", "--column", "k", "--time-column", "k", "--arrival-time", "--follow"],
            &["cannot be used"],
        ),
    ] {
        fails(&sandbox.run(&[&fixed[..], &time, arguments].concat()), 2, wanted);
    }
    fails(&sandbox.pipe(&[&fixed[..], &time].concat(), b"a\n"), 2, &["standard input: ", "--arrival-time"]);
    let items = ["t.txt", "--follow", "--arrival-time", "--window", "1000"];
    fails(&sandbox.run(&[&fixed[..], &items].concat()), 2, &["--arrival-time needs a window of time"]);
    let piped = ["--arrival-time", "--window", "10m", "--json"];
    let answer = json(&sandbox.pipe(&[&fixed[..], &piped].concat(), lines(1000).as_bytes()));
    assert_eq!(answer["items"][0]["estimate"], 500.0, "{answer}");
}

#[test]
fn an_interrupt_while_a_pipe_is_silent_prints_what_is_there() {
    let sandbox = Sandbox::new();
    let mut live = start(&sandbox, &["--window", "1000", "--every", "1000", "--save", "t.view"]);
    let mut input = live.run.stdin.take().expect("a pipe");
    input.write_all(lines(1500).as_bytes()).expect("written");
    live.answer();
    live.interrupt();
    check_shares(&live.answer(), [0.5, 0.3, 0.2]);
    assert_eq!(live.wait(), Some(130));
    let view = sandbox.run(&["top", "--view", "t.view", "--csv"]);
    assert!(text(&view).contains(",1,a,"));
}

#[test]
fn whoever_stops_reading_is_no_failure() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", lines(100_000));
    let arguments =
        ["top", "t.txt", "--window", "1000", "--domain", "keys.txt", "--every", "100", "--ndjson"];
    let mut run = Run::start(&mut sandbox.command(&[&arguments[..], &EXACT].concat()));
    drop(run.stdout.take());
    assert_eq!(run.code(), Some(0));
}
