//! The service, as `dpsw serve` and `dpsw demo --serve` run it.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::run::{Run, wait_until};
use crate::sandbox::{Sandbox, errors, fails, text};

const DPSW: &str = env!("CARGO_BIN_EXE_dpsw");

/// Whether the program of the service lies beside ours, as it does when the whole workspace is tested.
fn has_server() -> bool {
    let is_built = Path::new(DPSW).with_file_name("dpsw-server").is_file();
    if !is_built {
        let message = "SKIPPED: dpsw-server is not built; cargo test --workspace builds it";
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{message}");
        eprintln!("{message}");
    }
    is_built
}

/// A copy of dpsw with nothing beside it, on the same disk as the original so that it is a link.
fn alone() -> (TempDir, PathBuf) {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let dpsw = folder.path().join("dpsw");
    std::fs::hard_link(DPSW, &dpsw).expect("a link");
    (folder, dpsw)
}

fn run(program: &Path, path: &Path, arguments: &[&str]) -> Output {
    Run::start(Command::new(program).args(arguments).env("PATH", path)).output()
}

#[test]
fn serve_runs_what_lies_beside_it_or_on_the_path_with_all_arguments_and_its_exit_code() {
    let (folder, dpsw) = alone();
    let elsewhere = TempDir::new().expect("a folder");
    let typed = ["serve", "-c", "echo \"$@\"; exit 7", "name", "--check", "a b.toml", "--help", "-q"];
    for place in [elsewhere.path(), folder.path()] {
        // Any program will do that shows what it was told.
        symlink("/bin/sh", place.join("dpsw-server")).expect("a link");
        let output = run(&dpsw, elsewhere.path(), &typed);
        assert_eq!(output.status.code(), Some(7), "{}", errors(&output));
        assert_eq!(text(&output), "--check a b.toml --help -q\n");
    }
    // What lies beside it comes first.
    std::fs::remove_file(elsewhere.path().join("dpsw-server")).expect("a link");
    symlink("/bin/false", elsewhere.path().join("dpsw-server")).expect("a link");
    assert_eq!(run(&dpsw, elsewhere.path(), &typed).status.code(), Some(7));
}

#[test]
fn without_the_program_of_the_service_it_says_how_to_get_it() {
    let (folder, dpsw) = alone();
    for arguments in [&["serve"][..], &["serve", "--help"], &["demo", "--serve"]] {
        let output = run(&dpsw, folder.path(), arguments);
        fails(&output, 4, &["dpsw-server", "cargo build --release -p dpsw-server"]);
    }
}

#[test]
fn serve_checks_settings_as_the_service_does() {
    if !has_server() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("good.toml", "data = 'kept'\n");
    sandbox.write("bad.toml", "adress = '127.0.0.1:1'\n");
    let good = sandbox.run(&["serve", "--check", "good.toml"]);
    assert!(good.status.success() && text(&good).contains("is in order"), "{}", errors(&good));
    fails(&sandbox.run(&["serve", "--check", "bad.toml"]), 1, &["unknown field `adress`"]);
    assert!(text(&sandbox.run(&["serve", "--help"])).contains("--marker-folder"));
    assert!(text(&sandbox.run(&["help", "serve"])).contains("dpsw serve --check"));
}

/// The demo, after it has said how to ask the service.
struct Demo {
    run: Run,
    said: Vec<String>,
}

impl Demo {
    fn start(sandbox: &Sandbox, more: &[&str]) -> Self {
        let arguments = [&["demo", "--serve"][..], more].concat();
        let mut run = Run::start(sandbox.command(&arguments).env("TMPDIR", sandbox.path("")));
        let lines = BufReader::new(run.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let mut said = Vec::new();
        for line in lines {
            let is_last = line.contains("Ctrl-C");
            said.push(line);
            if is_last {
                break;
            }
        }
        assert!(said.iter().any(|line| line.contains("Ctrl-C")), "{said:?}: {}", errors(&run.output()));
        Self { run, said }
    }

    fn address(&self) -> &str {
        self.said[0].rsplit_once("http://").expect("an address").1
    }

    fn curls(&self) -> impl Iterator<Item = &str> {
        self.said.iter().map(|line| line.trim()).filter(|line| line.starts_with("curl "))
    }

    /// What a command of the greeting prints. What never ends is ended after two seconds.
    fn ask(command: &str) -> String {
        let command = command.replacen("curl ", "curl -sS -m 2 ", 1);
        text(&Run::start(Command::new("sh").args(["-c", &command])).output())
    }

    fn is_gone(address: &str) {
        wait_until("the service is gone", || TcpStream::connect(address).is_err());
    }
}

fn folders(sandbox: &Sandbox) -> usize {
    std::fs::read_dir(sandbox.path("")).expect("a folder").count()
}

#[test]
fn the_demo_serves_a_living_stream_says_how_to_ask_and_leaves_nothing_behind() {
    if !has_server() {
        return;
    }
    let sandbox = Sandbox::new();
    let before = folders(&sandbox);
    for signal in ["-INT", "-TERM"] {
        let mut demo = Demo::start(&sandbox, &[]);
        let page =
            demo.said.iter().find(|line| line.contains("/#stream=pages&token=")).expect("a page to open");
        let fetched = Demo::ask(&format!("curl '{}'", page.trim()));
        assert!(fetched.contains("<title>dpsw</title>"), "{fetched}");
        let asked: Vec<&str> = demo.curls().collect();
        assert_eq!(asked.len(), 6, "{:?}", demo.said);
        // Found keys are seen as soon as a part of the window is sealed.
        for top in &asked[..2] {
            wait_until("the first page is found", || Demo::ask(top).contains(r#""item":"/""#));
        }
        let wanted = [r#""lower""#, "event: top", "dpsw_item_estimate{", "one event replaced by another"];
        for (command, wanted) in asked[2..].iter().zip(wanted) {
            let reply = Demo::ask(command);
            assert!(reply.contains(wanted), "{command}: {reply}");
        }
        let (first, end) = (Demo::ask(asked[4]), "dpsw_window_end");
        let end_of = |page: &str| page.lines().find(|line| line.starts_with(end)).map(str::to_owned);
        wait_until("the stream goes on", || end_of(&Demo::ask(asked[4])) != end_of(&first));
        let address = demo.address().to_owned();
        demo.run.signal(signal);
        assert_eq!(demo.run.code(), Some(0), "{signal}");
        Demo::is_gone(&address);
        assert_eq!(folders(&sandbox), before, "the folder is removed");
    }
}

#[test]
fn a_demo_that_is_killed_takes_its_service_along() {
    if !has_server() {
        return;
    }
    let sandbox = Sandbox::new();
    let demo = Demo::start(&sandbox, &[]);
    demo.run.signal("-KILL");
    Demo::is_gone(demo.address());
}

#[test]
fn a_demo_with_a_folder_of_its_own_goes_on_where_it_was() {
    if !has_server() {
        return;
    }
    let sandbox = Sandbox::new();
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let mut demo = Demo::start(&sandbox, &["--data", "kept/here"]);
        tokens.push(demo.said[1].clone());
        demo.run.signal("-INT");
        assert_eq!(demo.run.code(), Some(0));
        assert!(sandbox.path("kept/here/data").is_dir());
    }
    assert_eq!(tokens[0], tokens[1]);
}
