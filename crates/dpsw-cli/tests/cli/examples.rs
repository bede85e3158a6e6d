//! Every example in the help does what it says.

use std::process::Command;
use std::time::Duration;

use crate::sandbox::{PATTERN, Sandbox, errors, signal, text};

/// The files that the examples speak of.
fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    let pages = ["/", "/cart", "/search"];
    let page = |n: usize| pages[usize::from(PATTERN[n % 10].as_bytes()[0] - b'a')];
    let log = (0..20_000).map(|n| {
        let (minute, second) = (n / 60 % 60, n % 60);
        format!(
            "h - - [10/Oct/2000:{:02}:{minute:02}:{second:02} +0000] \"GET {} HTTP/1.1\" 200 5\n",
            n / 3600,
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

#[test]
fn every_example_runs() {
    let sandbox = prepared();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_dpsw")).parent().expect("a directory").to_owned();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut count = 0;
    for command in [
        &["--help"][..],
        &["top", "--help"],
        &["count", "--help"],
        &["inspect", "--help"],
        &["plan", "--help"],
        &["audit", "--help"],
        &["completions", "--help"],
    ] {
        let help = text(&sandbox.command(command).env("COLUMNS", "200").output().expect("help"));
        let found = examples(&help);
        assert!(!found.is_empty(), "{help}");
        for example in found.iter().filter(|example| *example != "dpsw demo") {
            count += 1;
            let shell =
                format!("exec 2>&1; {}{example}", if example.contains("--follow") { "exec " } else { "" });
            let mut shell_command = Command::new("sh");
            let child = sandbox
                .start(shell_command.args(["-c", &shell]).current_dir(sandbox.path("")).env("PATH", &path));
            if example.contains("--follow") {
                std::thread::sleep(Duration::from_millis(500));
                signal(&child, "-INT");
            }
            let output = child.wait_with_output().expect("it ends");
            let wanted = if example.contains("--follow") { Some(130) } else { Some(0) };
            assert_eq!(output.status.code(), wanted, "{example}: {}{}", text(&output), errors(&output));
        }
    }
    assert!(15 <= count, "{count} examples");
}
