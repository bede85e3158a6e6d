//! Which files are read, and that none is read twice.

use std::fs::File;

use crate::run::Run;
use crate::sandbox::{EXACT, Sandbox, errors, fails, json, records};

fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(3000, |_, item| format!("{item}\n")));
    sandbox.write("u.txt", records(1000, |_, item| format!("{item}\n")));
    sandbox
}

const WINDOW: [&str; 5] = ["--window", "1000", "--epsilon", "1", "--json"];

#[cfg(unix)]
#[test]
fn a_file_is_not_read_twice_whatever_it_is_called() {
    let sandbox = prepared();
    std::os::unix::fs::symlink("t.txt", sandbox.path("symbolic.txt")).expect("a link");
    std::fs::hard_link(sandbox.path("t.txt"), sandbox.path("hard.txt")).expect("a link");
    for other in ["t.txt", "./t.txt", "symbolic.txt", "hard.txt"] {
        for command in [&["top", "t.txt", "u.txt", other][..], &["count", "a", "--", "t.txt", other]] {
            let output = sandbox.run(&[&command[..1], &WINDOW, &command[1..]].concat());
            let named = if other == "t.txt" { "t.txt is named twice" } else { "t.txt and" };
            fails(&output, 2, &[named, other, "spend twice"]);
            assert!(!errors(&output).contains("this run spends"), "{}", errors(&output));
        }
    }
    let stdin = File::open(sandbox.path("hard.txt")).expect("a file");
    let mut command = sandbox.command(&[&["top", "t.txt", "-"][..], &WINDOW].concat());
    fails(&Run::start(command.stdin(stdin)).output(), 2, &["t.txt and standard input"]);
    json(&sandbox.run(&[&["top", "t.txt", "u.txt", "--domain", "keys.txt"][..], &WINDOW].concat()));
}

#[test]
fn the_last_arguments_of_count_that_are_files_are_read() {
    let sandbox = prepared();
    let options = ["--window", "4000", "--json"];
    let direct = sandbox.run(&[&["count", "a", "b", "t.txt", "u.txt"][..], &options, &EXACT].concat());
    assert!(errors(&direct).contains("read as files: t.txt, u.txt;"), "{}", errors(&direct));
    let dashed = [&["count", "a", "b"][..], &options, &EXACT, &["--", "t.txt", "u.txt"]].concat();
    let (direct, dashed) = (json(&direct), json(&sandbox.run(&dashed)));
    assert_eq!(direct["items"].as_array().map(Vec::len), Some(2), "{direct}");
    for item in [0, 1] {
        assert_eq!(direct["items"][item]["estimate"], dashed["items"][item]["estimate"], "{direct}");
    }
}

#[test]
fn an_item_may_have_the_name_of_a_file() {
    let sandbox = prepared();
    sandbox.write("names.txt", "t.txt\nu.txt\n".repeat(1000));
    let options = [&["--window", "1000", "--json"][..], &EXACT].concat();
    let after = sandbox.run(&[&["count", "t.txt", "u.txt"][..], &options, &["--", "names.txt"]].concat());
    let input = std::fs::read(sandbox.path("names.txt")).expect("a file");
    let piped = sandbox.pipe(&[&["count", "t.txt"][..], &options].concat(), &input);
    assert!(
        errors(&piped).contains("counting t.txt in standard input: no file is named"),
        "{}",
        errors(&piped)
    );
    let both = sandbox.pipe(&[&["count", "t.txt", "u.txt"][..], &options, &["--", "-"]].concat(), &input);
    for (output, items) in [(after, 2), (piped, 1), (both, 2)] {
        let answer = json(&output);
        assert_eq!(answer["items"].as_array().map(Vec::len), Some(items), "{answer}");
        assert_eq!(answer["items"][0]["estimate"].as_f64().map(f64::round), Some(500.0), "{answer}");
    }
}

#[test]
fn a_directory_is_an_item() {
    let sandbox = Sandbox::new();
    sandbox.write("access.log", "h - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\" 200 5\n".repeat(2000));
    let count = ["count", "/cart", "/", "access.log", "--window", "1000", "--json"];
    let answer = json(&sandbox.run(&[&count[..], &EXACT].concat()));
    assert_eq!(answer["items"][1]["estimate"].as_f64().map(f64::round), Some(1000.0), "{answer}");
}
