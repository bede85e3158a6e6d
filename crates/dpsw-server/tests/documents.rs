//! The commands of the documents, run against a real service as a person would: with a shell and curl.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use dpsw::WindowView;
use serde_json::Value;
use tempfile::TempDir;

const README: &str = include_str!("../../../README.md");
const HTTP: &str = include_str!("../../../docs/guide/http.md");
const OPERATE: &str = include_str!("../../../docs/guide/operate.md");
const UNIT: &str = include_str!("../../../packaging/dpsw-server.service");
const SETTINGS: &str = include_str!("../../../packaging/dpsw-server.toml");
const DOCKERFILE: &str = include_str!("../../../Dockerfile");

/// How long all commands of a document may take, in seconds, before they are ended.
const PATIENCE: &str = "240";

/// The shell blocks of a document, or of a section of it, as one script.
fn script(document: &str) -> String {
    let blocks = document.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.collect::<Vec<_>>().join("\n")
}

/// The same with addresses that are free now, whatever else runs on this machine.
fn at_free_addresses(script: &str) -> String {
    let held = [7878, 7879].map(|port| (port, TcpListener::bind("127.0.0.1:0").expect("an address")));
    held.iter().fold(script.to_owned(), |script, (port, listener)| {
        let free = listener.local_addr().expect("bound").to_string();
        script.replace(&format!("127.0.0.1:{port}"), &free)
    })
}

/// Runs a script in a folder. Whatever it has started ends with it.
#[track_caller]
fn run(folder: &Path, script: &str) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_dpsw-server")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let end = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT";
    let script = format!("set -eu\n{end}\n{}\n", at_free_addresses(script));
    let mut command = Command::new("timeout");
    command.args([PATIENCE, "bash", "-c", &script]).current_dir(folder);
    let output = command.env("PATH", path).env_remove("DPSW_KEY").output().expect("a shell runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}\n{script}", text(&output.stdout), text(&output.stderr));
    output
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_commands_of_the_page_for_operators_do_what_it_says() {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    run(folder, &waiting_for_counts(&script(&without_brokers())));
    let status: Value = serde_json::from_slice(&read(folder, "after-restore.json")).expect("JSON");
    // Something was shown after the backup, so that it must not be gone on from.
    assert!(status["notices"].to_string().contains("goes on at"), "{status}");
    check_page(folder);
    let saved = WindowView::from_bytes(&read(folder, "pages.view"));
    assert!(saved.is_ok(), "{saved:?}");
    let names = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    let tops: Vec<_> =
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with("top-")).collect();
    assert_eq!(tops.len(), 1);
    let top: Value = serde_json::from_slice(&std::fs::read(tops[0].path()).expect("a file")).expect("JSON");
    assert_eq!(top["items"][0]["item"], "/cart", "{top}");
}

/// The page without what needs brokers; the tests of brokers run that.
fn without_brokers() -> String {
    let (before, brokers) = OPERATE.split_once("\n## Brokers\n").expect("a section");
    let (_, after) = brokers.split_once("\n## ").expect("a section after it");
    format!("{before}\n## {after}")
}

/// A batch is counted a moment after it is acknowledged; people take longer than that to type the next line.
fn waiting_for_counts(commands: &str) -> String {
    let sent = "127.0.0.1:7878/v1/sources/web/events\n";
    let parts: Vec<&str> = commands.split(sent).collect();
    let [first, second, rest] = parts[..] else { panic!("two batches are sent: {commands}") };
    let until = |item: &str| {
        let top = "curl -sS -H @query.header http://127.0.0.1:7878/v1/streams/pages/top";
        format!("{sent}until {top} | grep -q '\"item\":\"{item}\"'; do sleep 0.1; done\n")
    };
    [first, &until("/cart"), second, &until("/"), rest].concat()
}

/// The page of Prometheus, by its own checker where that is installed, and by its grammar.
fn check_page(folder: &Path) {
    let page = String::from_utf8(read(folder, "page.prom")).expect("text");
    let (mut samples, mut known) = (0, Vec::new());
    for line in page.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            known.extend(comment.strip_prefix("TYPE ").map(|rest| rest.split(' ').next().expect("a name")));
            continue;
        }
        let (metric, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = metric.split_once('{').expect("labels");
        assert!(known.contains(&name), "{line}");
        assert!(labels.starts_with("stream=\"pages\"") && labels.ends_with("\"}"), "{line}");
        value.parse::<f64>().unwrap_or_else(|error| panic!("{line}: {error}"));
        samples += 1;
    }
    assert!(4 <= samples && page.contains("item=\"/cart\""), "{page}");
    let mut promtool = Command::new("promtool");
    let page = std::fs::File::open(folder.join("page.prom")).expect("a file");
    match promtool.args(["check", "metrics"]).stdin(page).output() {
        Ok(checked) => assert!(checked.status.success(), "{checked:?}"),
        Err(error) => {
            eprintln!("SKIPPED: promtool, which would check the page as well, cannot be run: {error}");
        }
    }
}

/// What a person types who looks at each answer: the service has started by the next line, and what never ends is left.
fn by_hand(commands: &str) -> String {
    let waits = "dpsw-server --address 127.0.0.1:7878 >log 2>&1 &\n\
                 until curl -sf http://127.0.0.1:7878/readyz >ready; do sleep 0.1; done\n";
    let lines = commands.lines().filter(|line| !line.starts_with("cargo ")).map(|line| match line {
        line if line.contains("curl ") && line.contains(" -N ") => format!("timeout 2 {line} || true\n"),
        line if line.contains("/top?") => {
            format!("until {line} >top 2>>log; grep -q '\"item\"' top; do sleep 0.1; done; cat top\n")
        }
        // A new token is known after a moment.
        line if line.contains(" -T ") => {
            format!("until {} 2>>log; do sleep 0.1; done\n", line.replacen("curl ", "curl -sS -f ", 1))
        }
        line if line.starts_with("curl ") => line.replacen("curl ", "curl -sS --fail-with-body ", 1) + "\n",
        line if line.contains("dpsw-server &") => waits.to_owned(),
        line => format!("{line}\n"),
    });
    lines.collect()
}

/// Enough visits of a few pages that the most frequent one is found: the pages alone, and as an access log.
fn write_pages(folder: &Path) {
    let page = |n: usize| ["/", "/cart", "/", "/search"][n % 4];
    let pages = (0..200_000).map(|n| format!("{}\n", page(n))).collect::<String>();
    let log = (0..200_000)
        .map(|n| format!("h - - [01/Jan/2026:00:00:00 +0000] \"GET {} HTTP/1.1\" 200 1\n", page(n)));
    std::fs::write(folder.join("pages.txt"), pages).expect("a file");
    std::fs::write(folder.join("access.log"), log.collect::<String>()).expect("a file");
}

#[test]
fn the_commands_of_the_readme_and_of_the_page_on_http_run() {
    let service = README.split("\n## As a service\n").nth(1).expect("a section");
    let service = service.split("\n## ").next().expect("a section");
    assert_eq!(script(service).matches("curl ").count(), 5, "{service}");
    for (document, wanted) in [(service, 1), (HTTP, 3)] {
        let folder = TempDir::new().expect("a folder");
        write_pages(folder.path());
        let output = run(folder.path(), &by_hand(&script(document)));
        let said = String::from_utf8(output.stdout).expect("text");
        // In the answers, and where one is followed.
        assert!(wanted <= said.matches(r#""item":"/","#).count(), "{said}");
        assert!(!said.contains("problem"), "{said}");
    }
}

#[test]
fn the_recipes_name_what_the_service_has() {
    for part in ["/v1/sources/web/events", "/v1/streams/pages/prometheus"] {
        let blocks = OPERATE.split("```").skip(1).step_by(2).filter(|block| !block.starts_with("sh"));
        assert!(blocks.filter(|block| block.contains(part)).count() >= 1, "{part}");
    }
    let vector =
        OPERATE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block");
    let vector: toml::Table = toml::from_str(vector).expect("TOML");
    assert_eq!(vector["sinks"]["dpsw"]["type"].as_str(), Some("http"));
}

/// The words behind the program that systemd starts.
fn unit_arguments() -> Vec<&'static str> {
    let line = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/dpsw-server "));
    line.expect("it starts the program").split(' ').collect()
}

/// The words behind the program that a container starts.
fn container_arguments() -> Vec<&'static str> {
    let entry = DOCKERFILE.split_once("ENTRYPOINT [\"dpsw-server\",").expect("it starts the program").1;
    entry.split('"').skip(1).step_by(2).collect()
}

/// A key or a marker in a backup of the data would undo what they are for.
#[test]
fn packages_start_the_service_with_data_marker_and_key_in_folders_of_their_own() {
    for arguments in [unit_arguments(), container_arguments()] {
        let folder = TempDir::new().expect("a folder");
        let root = folder.path();
        let place = |path: &str| root.join(path.trim_start_matches('/'));
        for made in ["/etc/dpsw", "/var/lib/dpsw", "/var/lib/dpsw-marker", "/var/lib/dpsw-key"] {
            std::fs::create_dir_all(place(made)).expect("a folder");
            assert!(made == "/etc/dpsw" || UNIT.contains(&made["/var/lib/".len()..]), "{made}");
            assert!(made == "/etc/dpsw" || DOCKERFILE.contains(made), "{made}");
        }
        let there = SETTINGS.replace("\"/var/lib", &format!("\"{}", place("/var/lib").display()));
        let settings = if arguments.contains(&"--data") { String::new() } else { there };
        std::fs::write(place("/etc/dpsw/dpsw-server.toml"), settings).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpsw-server"));
        let path = |word: &str| if word.starts_with('/') { place(word).into() } else { word.into() };
        command.args(arguments.iter().map(|word| -> std::ffi::OsString { path(word) }));
        command.args(["--address", "127.0.0.1:0", "--end-with-stdin"]).env_remove("DPSW_KEY");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("listens on http://")), "{arguments:?}");
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
        for kept in ["dpsw/data/dpsw.redb", "dpsw-marker/marker/marker", "dpsw-key/key"] {
            assert!(place("/var/lib").join(kept).is_file(), "{kept}");
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpsw-server"));
        command.arg("--config").arg(place("/etc/dpsw/dpsw-server.toml"));
        let made = command.args(["token", "create", "--role", "query"]).output().expect("the program runs");
        let (said, tokens) = (String::from_utf8_lossy(&made.stderr), place("/var/lib/dpsw/data/tokens.json"));
        let tokens = std::fs::read_to_string(tokens).expect("tokens").matches("hash").count();
        match arguments.contains(&"--data") {
            // The words of a container are not in its settings.
            true => assert!(said.contains("there is no data folder") && tokens == 1, "{said}"),
            false => assert!(made.status.success() && tokens == 2, "{said}"),
        }
    }
}
