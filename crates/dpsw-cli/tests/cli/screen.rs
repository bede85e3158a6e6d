//! The live view, in a terminal made by `script`.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::run::{Run, wait_until};
use crate::sandbox::{Sandbox, records};

/// A run in a terminal of 100 x 30, and what it wrote there.
struct Terminal {
    run: Run,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// `None`, with a message, where there is no `script`.
    fn run(sandbox: &Sandbox, arguments: &str) -> Option<Self> {
        let command = format!("stty rows 30 cols 100; '{}' {arguments}", env!("CARGO_BIN_EXE_dpsw"));
        let mut script = Command::new("script");
        script.args(["-qfec", &command, "/dev/null"]).current_dir(sandbox.path(""));
        let mut run = Run::try_start(script.env("TERM", "xterm-256color").stdin(Stdio::piped()))
            .inspect_err(|_| eprintln!("SKIPPED: there is no `script` to make a terminal with"))
            .ok()?;
        let mut output = run.stdout.take().expect("a pipe");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(len @ 1..) = output.read(&mut block) {
                shared.lock().expect("not poisoned").extend(&block[..len]);
            }
        });
        Some(Self { run, seen })
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("not poisoned")).into_owned()
    }

    #[track_caller]
    fn wait_for(&self, part: &str) {
        wait_until(&format!("{part:?} is shown"), || self.text().contains(part));
    }

    fn press(&mut self, keys: &[u8]) {
        let input = self.run.stdin.as_mut().expect("a pipe");
        input.write_all(keys).and_then(|()| input.flush()).expect("pressed");
    }
}

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

#[test]
fn the_live_view_shows_bars_and_intervals_and_ends_with_a_table() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(10_000, |_, item| format!("{item}\n")));
    for (keys, code) in [(&b"q"[..], 0), (b"\x03", 130)] {
        let arguments = "top t.txt --window 10000 --epsilon 1 --domain keys.txt --watch";
        let Some(mut terminal) = Terminal::run(&sandbox, arguments) else { return };
        terminal.wait_for("end of the input");
        let text = terminal.text();
        for part in [ENTER, "10,000 records", "█", "░", "±"] {
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
        terminal.press(keys);
        assert_eq!(terminal.run.code(), Some(code));
        terminal.wait_for("95 % interval");
        let text = terminal.text();
        let left = text.rfind(LEAVE).expect("the screen is given back");
        assert!(text[left..].contains("95 % interval"), "{text:?}");
    }
}

#[test]
fn the_live_view_says_why_it_has_no_bars() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "a\nb\n");
    let Some(mut terminal) = Terminal::run(&sandbox, "top t.txt --follow --window 10000 --epsilon 1 --watch")
    else {
        return;
    };
    // Blanks are not drawn on an empty screen, so words come one by one.
    terminal.wait_for("helps:");
    terminal.wait_for("--window");
    let text = terminal.text();
    assert!(text.contains("complete;") && text.contains("far"), "{text:?}");
    terminal.press(b"q");
    assert_eq!(terminal.run.code(), Some(0));
}

#[test]
fn the_demo_fills_the_screen_and_ends_with_a_summary() {
    let sandbox = Sandbox::new();
    let Some(mut terminal) = Terminal::run(&sandbox, "demo") else { return };
    terminal.wait_for("◆");
    terminal.press(b"q");
    assert_eq!(terminal.run.code(), Some(0));
    terminal.wait_for("demo: ");
}

#[test]
fn a_data_error_gives_the_screen_back_before_it_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("t.ndjson", "{\"k\" 1}\n");
    let arguments = "top t.ndjson --column k --window 10000 --epsilon 1 --domain keys.txt --watch";
    let Some(mut terminal) = Terminal::run(&sandbox, arguments) else { return };
    assert_eq!(terminal.run.code(), Some(4));
    terminal.wait_for("t.ndjson:1:");
    let text = terminal.text();
    assert!(text.find(LEAVE).expect("given back") < text.find("t.ndjson:1:").expect("told"), "{text:?}");
}

#[test]
fn a_file_that_is_missed_is_noticed_before_anything_is_typed() {
    let sandbox = Sandbox::new();
    let arguments = "count / acess.log --window 1000 --epsilon 1";
    let Some(mut terminal) = Terminal::run(&sandbox, arguments) else { return };
    terminal.wait_for("counting /, acess.log in standard input: no file is named after the items");
    terminal.press(b"\x04");
    assert_eq!(terminal.run.code(), Some(0));
}
