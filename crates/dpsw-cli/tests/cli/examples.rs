//! Every example in the help and in the README does what it says.

use std::io::Read;
use std::process::Command;

use crate::run::Run;
use crate::sandbox::{PATTERN, Sandbox, errors, text};

/// The files that the examples speak of.
fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    let pages = ["/", "/cart", "/search"];
    let page = |n: usize| pages[usize::from(PATTERN[n % 10].as_bytes()[0] - b'a')];
    let log = (0..200_000).map(|n| {
        let (day, hour, minute, second) = (n / 86_400, n / 3600 % 24, n / 60 % 60, n % 60);
        format!(
            "10.0.0.{} - - [{}/Oct/2000:{hour:02}:{minute:02}:{second:02} +0000] \"GET {} HTTP/1.1\" 200 5\n",
            n % 250,
            10 + day,
            page(n)
        )
    });
    sandbox.write("access.log", log.collect::<String>());
    sandbox.write("pages.txt", pages.join("\n"));
    sandbox.write("products.txt", "apple\nbread\ncheese\n");
    let product = |n: usize| ["apple", "bread", "cheese"][n % 3];
    let orders = (0..10_000)
        .map(|n| format!("2026-01-{:02}T{:02}:00:00Z,{}\n", 1 + n / 2400 % 28, n / 100 % 24, product(n)));
    sandbox.write("orders.csv", format!("time,product\n{}", orders.collect::<String>()));
    sandbox.write(
        "orders.ndjson",
        (0..10_000).map(|n| format!("{{\"product\":\"{}\"}}\n", product(n))).collect::<String>(),
    );
    sandbox
}

fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Examples:")).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    lines.join("\n").replace("\\\n", "").lines().map(str::to_owned).collect()
}

const README: &str = include_str!("../../../../README.md");

/// What the README runs: the lines of its shell blocks, with the binary in place of cargo, then what stands in its text. What
/// needs the source is left out, and so is the service, whose own tests run its section.
fn readme_commands() -> Vec<String> {
    let (before, service) = README.split_once("\n## As a service\n").expect("a section");
    let readme = before.to_owned() + service.split_once("\n## ").expect("a section behind it").1;
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).filter_map(|line| {
        let line = line.replace("cargo run --release -- ", "dpsw ");
        let is_command = !line.is_empty() && !line.starts_with(['#', '.']) && !line.starts_with("cargo ");
        is_command.then_some(line)
    });
    let outside = readme.split("```").step_by(2);
    let inline =
        outside.flat_map(|text| text.split('`').skip(1).step_by(2)).filter(|code| code.starts_with("dpsw "));
    lines.chain(inline.map(str::to_owned)).collect()
}

/// Runs an example as a shell does, in a directory with the files that it speaks of.
#[track_caller]
fn check(sandbox: &Sandbox, example: &str) {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_dpsw")).parent().expect("a directory");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let follows = example.contains("--follow");
    // By default an audit of a correct build may fail once in 500 runs.
    let rarely = if example.starts_with("dpsw audit") { " --false-alarm 1e-6" } else { "" };
    let shell = format!("exec 2>&1; {}{example}{rarely}", if follows { "exec " } else { "" });
    let mut command = Command::new("sh");
    let mut run = Run::start(command.args(["-c", &shell]).current_dir(sandbox.path("")).env("PATH", path));
    if follows {
        // It listens to signals before it says its first word.
        run.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("it has begun");
        run.signal("-INT");
    }
    let output = run.output();
    let wanted = if follows { Some(130) } else { Some(0) };
    assert_eq!(output.status.code(), wanted, "{example}: {}{}", text(&output), errors(&output));
    let is_answered = !text(&output).contains("nothing to show");
    assert!(follows || is_answered, "{example}: {}", text(&output));
}

#[test]
fn every_example_runs() {
    let sandbox = prepared();
    let mut count = 0;
    for command in [
        &["--help"][..],
        &["top", "--help"],
        &["count", "--help"],
        &["inspect", "--help"],
        &["plan", "--help"],
        &["audit", "--help"],
        &["ledger", "--help"],
        &["demo", "--help"],
        &["completions", "--help"],
    ] {
        let help = text(&Run::start(sandbox.command(command).env("COLUMNS", "200")).output());
        let found = examples(&help);
        assert!(!found.is_empty(), "{help}");
        count += found.len();
        // The service has tests of its own.
        let without_service = found.iter().filter(|example| !example.contains("--serve"));
        without_service.for_each(|example| check(&sandbox, example));
    }
    assert!(15 <= count, "{count} examples");
}

#[test]
fn the_commands_of_the_readme_run_one_after_the_other_in_an_empty_folder() {
    let commands = readme_commands();
    assert!(18 <= commands.len(), "{commands:?}");
    let sandbox = Sandbox::new();
    std::fs::remove_file(sandbox.path("keys.txt")).expect("it is empty");
    commands.iter().for_each(|command| check(&sandbox, command));
}

#[test]
fn the_table_of_the_readme_is_like_those_of_the_program() {
    let shown = README.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a table");
    let sandbox = Sandbox::new();
    sandbox.write("access.log", sandbox.run(&["demo", "--log", "100000"]).stdout);
    let table = text(&sandbox.run(&["top", "access.log", "--window", "10000", "--epsilon", "1"]));
    // Noise moves the numbers, and where columns begin.
    let words = |text: &str| -> Vec<Vec<String>> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().take(5).map(words).collect()
    };
    let (shown, table) = (words(shown), words(&table));
    assert_eq!(shown[..4], table[..4]);
    assert_eq!(shown[4][..2], table[4][..2]);
}

#[test]
fn the_first_examples_need_a_log_and_nothing_else() {
    let sandbox = prepared();
    for command in [&["--help"][..], &["top", "--help"]] {
        let first = examples(&text(&sandbox.run(command))).swap_remove(0);
        assert_eq!(first, "dpsw top access.log --window 10000 --epsilon 1");
    }
    let output = sandbox.run(&["top", "access.log", "--window", "10000", "--epsilon", "1"]);
    for page in ["/", "/cart", "/search"] {
        assert!(text(&output).contains(&format!("  {page} ")), "{}{}", text(&output), errors(&output));
    }
}
