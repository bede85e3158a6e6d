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

/// What the README runs, in the words of someone who has the binary.
fn readme_examples() -> Vec<String> {
    let command = |line: &str| {
        let line = line.split('#').next().unwrap_or_default().trim();
        let rest = line.strip_prefix("cargo run --release -- ").or_else(|| line.strip_prefix("dpsw "))?;
        Some(format!("dpsw {rest}"))
    };
    include_str!("../../../../README.md").lines().filter_map(command).collect()
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
        found.iter().for_each(|example| check(&sandbox, example));
    }
    assert!(15 <= count, "{count} examples");
}

#[test]
fn every_command_of_the_readme_runs() {
    let found = readme_examples();
    assert!(8 <= found.len(), "{found:?}");
    let sandbox = prepared();
    found.iter().for_each(|example| check(&sandbox, example));
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
