//! The program itself, in a folder of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpsw-server"));
    command.current_dir(folder).env_remove("DPSW_KEY");
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    program(folder).args(args).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A service that runs until it is dropped.
struct Service {
    child: Child,
    /// Where it listens.
    address: String,
    /// What it said until it listened, and the lines about the first token.
    said: Vec<String>,
}

impl Service {
    fn start(folder: &Path, args: &[&str]) -> Self {
        Self::start_saying(folder, args, 0)
    }

    /// Starts it and reads so many more lines.
    fn start_saying(folder: &Path, args: &[&str], more: usize) -> Self {
        let mut command = program(folder);
        command.args(args).args(["--address", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut said: Vec<String> = Vec::new();
        let address = loop {
            let line = lines.next().expect("it says where it listens").expect("text");
            said.push(line.clone());
            if let Some((_, address)) = line.split_once("listens on http://") {
                break address.to_owned();
            }
        };
        said.extend(lines.by_ref().take(more).map_while(Result::ok));
        Self { child, address, said }
    }

    fn get(&self, path: &str, token: &str) -> String {
        self.ask("GET", path, token, "")
    }

    fn ask(&self, method: &str, path: &str, token: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
            Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            token.trim(),
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply
    }

    /// Asks it to end, as systemd does.
    fn end(mut self) {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[test]
fn the_first_start_makes_a_token_and_says_how_to_ask() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start_saying(folder.path(), &[], 3);
    let said = service.said.join("\n");
    let token =
        std::fs::read_to_string(folder.path().join("dpsw-data/admin.token")).expect("the first token");
    assert!(said.contains("dpsw-data.key") && !said.contains(token.trim()), "{said}");
    assert!(said.contains(&format!("http://{}/openapi.json", service.address)), "{said}");
    let line = service.said.last().expect("a line to try").trim().to_owned();
    let wanted = format!(
        "curl -H \"Authorization: Bearer $(cat dpsw-data/admin.token)\" http://{}/v1/sources",
        service.address
    );
    assert_eq!(line, wanted);
    let reply = service.get("/v1/sources", &token);
    assert!(reply.starts_with("HTTP/1.1 200") && reply.ends_with("{\"sources\":[]}"), "{reply}");
    service.end();
    let again = Service::start(folder.path(), &["--data", "dpsw-data"]);
    assert!(!again.said.join("\n").contains("dpsw-data.key"), "the key was there");
    assert!(again.get("/v1/sources", &token).starts_with("HTTP/1.1 200"));
    again.end();
}

/// Or the next start would not say where the first token is.
#[test]
fn nothing_is_made_where_the_address_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = taken.local_addr().expect("bound").to_string();
    let refused = run(folder.path(), &["--address", &address]);
    assert!(!refused.status.success() && text(&refused.stderr).contains(&address), "{refused:?}");
    assert!(text(&refused.stderr).contains("--address"), "{refused:?}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn whoever_ends_it_as_soon_as_it_listens_ends_it_in_peace() {
    let folder = tempfile::tempdir().expect("a folder");
    for _ in 0..10 {
        Service::start(folder.path(), &[]).end();
    }
}

/// A start takes as long as there is much to restore: probes learn that the process lives, and clients that they have to wait.
#[cfg(unix)]
#[test]
fn a_long_start_answers_health_and_tells_all_others_to_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("mkfifo").args(["-m", "600", "key"]).current_dir(folder.path()).status();
    assert!(made.expect("mkfifo runs").success());
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = free.local_addr().expect("bound").to_string();
    drop(free);
    let mut command = program(folder.path());
    command.args(["--address", &address, "--key-file", "key"]).stdout(Stdio::piped()).stderr(Stdio::null());
    // It waits for its key until somebody writes it.
    let mut child = command.spawn().expect("the program runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    while TcpStream::connect(&address).is_err() {
        std::thread::yield_now();
    }
    let mut service = Service { child, address, said: Vec::new() };
    let healthy = service.get("/healthz", "");
    assert!(healthy.starts_with("HTTP/1.1 200") && healthy.contains("dpsw-server"), "{healthy}");
    let waiting = service.get("/readyz", "");
    assert!(waiting.starts_with("HTTP/1.1 503"), "{waiting}");
    assert!(waiting.ends_with("{\"ready\":false,\"starting\":true}"), "{waiting}");
    let refused = service.get("/v1/sources", "");
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1"), "{refused}");
    assert!(refused.contains("\"code\":\"starting\""), "{refused}");
    std::fs::write(folder.path().join("key"), "7".repeat(64)).expect("it reads its key");
    service.said.extend(lines.by_ref().take(1).map_while(Result::ok));
    assert!(service.said[0].contains("listens on"), "{:?}", service.said);
    assert!(service.get("/readyz", "").ends_with("{\"ready\":true,\"starting\":false}"));
    service.end();
}

/// Whoever starts it from a program may be killed.
#[test]
fn it_ends_in_peace_when_its_input_does_if_it_was_told_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = program(folder.path());
    command.args(["--address", "127.0.0.1:0", "--end-with-stdin"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("listens on http://")), "it says where it listens");
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn tokens_are_made_listed_and_deleted_while_the_service_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let early = run(folder.path(), &["token", "create", "--role", "query"]);
    assert!(text(&early.stderr).contains("no data folder dpsw-data") && early.stdout.is_empty(), "{early:?}");
    assert!(!folder.path().join("dpsw-data").exists(), "nothing was made");
    Service::start(folder.path(), &[]).end();
    std::fs::remove_file(folder.path().join("dpsw-data/admin.token")).expect("the first token");
    let made = run(folder.path(), &["token", "create", "--role", "query", "--name", "reader"]);
    let token = text(&made.stdout);
    let service = Service::start(folder.path(), &[]);
    assert!(!folder.path().join("dpsw-data/admin.token").exists(), "there is a token already");
    assert!(service.get("/v1/sources", &token).starts_with("HTTP/1.1 200"));
    let second = text(&run(folder.path(), &["token", "create", "--role", "query", "--source", "web"]).stdout);
    assert!(service.get("/v1/sources", &second).starts_with("HTTP/1.1 200"), "it is known at once");
    let listed = text(&run(folder.path(), &["token", "list"]).stdout);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.contains("query everywhere  reader") && listed.contains("query source web"), "{listed}");
    let secret = token.trim().splitn(3, '_').nth(2).expect("three parts");
    assert!(!listed.contains(secret));
    let id = token.split('_').nth(1).expect("an id");
    let elsewhere = run(folder.path(), &["token", "--marker-folder", "none", "delete", id]);
    assert!(
        text(&elsewhere.stderr).contains("no marker folder none"),
        "a backup would revive it: {elsewhere:?}"
    );
    let admin = text(&run(folder.path(), &["token", "create", "--role", "admin"]).stdout);
    let tokens = folder.path().join("dpsw-data/tokens.json");
    let backup = std::fs::read(&tokens).expect("the tokens");
    assert!(run(folder.path(), &["token", "delete", id]).status.success());
    let failed = run(folder.path(), &["token", "delete", id]);
    assert!(!failed.status.success() && text(&failed.stderr).contains("there is no token"));
    assert!(!run(folder.path(), &["token", "create"]).status.success(), "a token needs a role");
    service.end();
    std::fs::write(&tokens, backup).expect("a restored file");
    let service = Service::start(folder.path(), &[]);
    assert!(service.get("/v1/sources", &token).starts_with("HTTP/1.1 401"), "it stays deleted");
    let status = service.get("/v1/status", &admin);
    assert!(status.contains("they stay deleted") && status.contains(id), "{status}");
    service.end();
}

/// Kubernetes gives the volumes of a pod with an `fsGroup` to that group, with all that is in them, before each start.
#[cfg(unix)]
#[test]
fn folders_that_belong_to_a_group_are_used_and_those_that_others_can_read_are_not() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let volume = folder.path().join("volume");
    std::fs::create_dir(&volume).expect("a folder");
    let args = ["--data", "volume/data", "--address", "127.0.0.1:0"];
    let start = || Service::start(folder.path(), &args[..2]).end();
    start();
    let give = |others: u32, set_group_id: u32| {
        let folders = ["", "data", "data.marker"].map(|name| (volume.join(name), 0o770 | set_group_id));
        let files = ["data.key", "data/dpsw.redb", "data/tokens.json", "data.marker/marker"];
        for (path, mode) in folders.into_iter().chain(files.map(|name| (volume.join(name), 0o660))) {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode | others))
                .expect("an owner");
        }
    };
    give(0, 0o2000);
    start();
    for (others, set_group_id) in [(0o4, 0o2000), (0, 0)] {
        give(others, set_group_id);
        let refused = run(folder.path(), &args);
        assert!(text(&refused.stderr).contains("others may look into it"), "{refused:?}");
    }
}

/// Root makes tokens for a service that runs as another user, which must be able to change them.
#[cfg(unix)]
#[test]
fn what_root_makes_belongs_to_the_owner_of_the_folder() {
    use std::os::unix::fs::{MetadataExt, chown};
    let folder = tempfile::tempdir().expect("a folder");
    Service::start(folder.path(), &[]).end();
    let places = ["dpsw-data", "dpsw-data.marker"].map(|name| folder.path().join(name));
    if places.iter().any(|place| chown(place, Some(7878), Some(7878)).is_err()) {
        eprintln!("skipped: only root can give folders away");
        return;
    }
    let made = run(folder.path(), &["token", "create", "--role", "query"]);
    let token = text(&made.stdout);
    assert!(
        run(folder.path(), &["token", "delete", token.split('_').nth(1).expect("an id")]).status.success()
    );
    for name in ["dpsw-data/tokens.json", "dpsw-data/tokens.lock", "dpsw-data.marker/deleted-tokens.json"] {
        let owner = std::fs::metadata(folder.path().join(name)).expect(name);
        assert_eq!((owner.uid(), owner.gid(), owner.mode() & 0o777), (7878, 7878, 0o600), "{name}");
    }
}

const SETTINGS: &str = "
data = 'kept'
prometheus = ['pages']
[[source]]
name = 'web'
protects = 'event'
epsilon = 2.0
delta = 1e-9
columns = { page = 'text' }
[[source.stream]]
name = 'pages'
item = 'page'
window = 100_000
epsilon = 1.0
keys = 'found'
[[source.stream]]
name = 'listed'
item = 'page'
window = '15m'
expected = 1000
epsilon = 0.5
keys = { file = 'keys.txt' }
";

#[test]
fn a_settings_file_is_checked_and_its_streams_are_made_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("dpsw.toml");
    std::fs::write(folder.path().join("keys.txt"), "a\nb\n").expect("a file");
    std::fs::write(&path, SETTINGS).expect("a file");
    let checked = run(folder.path(), &["--check", "dpsw.toml"]);
    let said = text(&checked.stdout);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    assert!(said.contains("is in order: 1 sources, 2 streams") && said.contains("epsilon"), "{said}");
    assert!(!folder.path().join("kept").exists(), "nothing was made");
    for _ in 0..2 {
        let service = Service::start(folder.path(), &["--config", "dpsw.toml"]);
        let token = std::fs::read_to_string(folder.path().join("kept/admin.token")).expect("the first token");
        let reply = service.get("/v1/streams", &token);
        assert!(reply.contains("\"name\":\"pages\"") && reply.contains("\"listed\":2"), "{reply}");
        service.end();
    }
}

/// Whoever has a token for a stream can change or delete it: that must not keep the service from starting.
#[test]
fn what_the_settings_file_cannot_make_is_a_notice_and_all_else_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("keys.txt"), "a\nb\n").expect("a file");
    std::fs::write(folder.path().join("dpsw.toml"), SETTINGS).expect("a file");
    Service::start(folder.path(), &["--config", "dpsw.toml"]).end();
    let token = std::fs::read_to_string(folder.path().join("kept/admin.token")).expect("the first token");
    let notices = |service: &Service| -> Vec<String> {
        let reply = service.get("/v1/status", &token);
        let (_, body) = reply.split_once("\r\n\r\n").expect("a reply");
        let status: serde_json::Value = serde_json::from_str(body).expect("JSON");
        serde_json::from_value(status["notices"].clone()).expect("texts")
    };
    // The same file by another path, and the same keys in another file.
    let moved = SETTINGS.replace("keys.txt", "./more/../moved.txt");
    std::fs::create_dir(folder.path().join("more")).expect("a folder");
    std::fs::rename(folder.path().join("keys.txt"), folder.path().join("moved.txt")).expect("a file");
    std::fs::write(folder.path().join("dpsw.toml"), moved).expect("a file");
    let service = Service::start(folder.path(), &["--config", "./dpsw.toml"]);
    assert_eq!(notices(&service), Vec::<String>::new());
    let args = ["token", "--config", "dpsw.toml", "create", "--role", "admin", "--stream"];
    let scoped = |stream| text(&run(folder.path(), &[&args[..], &[stream]].concat()).stdout);
    let (of_pages, of_listed) = (scoped("pages"), scoped("listed"));
    let other = r#"{"name": "pages", "item": "page", "window": 200000, "epsilon": 1.0, "keys": "found"}"#;
    let changed = service.ask("PUT", "/v1/streams/pages", &of_pages, other);
    assert!(changed.starts_with("HTTP/1.1 200"), "{changed}");
    let deleted = service.ask("DELETE", "/v1/streams/listed", &of_listed, "");
    assert!(deleted.starts_with("HTTP/1.1 204"), "{deleted}");
    service.end();
    std::fs::remove_file(folder.path().join("moved.txt")).expect("a file");
    let service = Service::start(folder.path(), &["--config", "dpsw.toml"]);
    let said = notices(&service);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("stream \"pages\"") && said[0].contains("with other settings"), "{said:?}");
    assert!(said[1].starts_with("stream \"listed\"") && said[1].contains("moved.txt"), "{said:?}");
    let reply = service.get("/v1/streams", &token);
    assert!(reply.contains("\"name\":\"pages\"") && reply.contains("200000"), "{reply}");
    service.end();
}

#[test]
fn settings_that_cannot_be_meant_are_refused_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let without_file = SETTINGS.replace("{ file = 'keys.txt' }", "{ list = ['a'] }");
    for (settings, wanted) in [
        ("address = '0.0.0.0:7878'", "[tls]"),
        ("adress = '127.0.0.1:1'", "unknown field `adress`"),
        ("[limits]\nrequests = 0", "requests must be from 1"),
        ("tls = { certificate = 'none.pem', key = 'none.pem' }", "none.pem cannot be read"),
        (SETTINGS, "cannot be read from keys.txt"),
        (&without_file.replace("epsilon = 2.0", "epsilon = 1.2"), "would bring the cost"),
    ] {
        std::fs::write(folder.path().join("dpsw.toml"), settings).expect("a file");
        let checked = run(folder.path(), &["--check", "dpsw.toml"]);
        assert!(!checked.status.success(), "{settings}");
        assert!(text(&checked.stderr).contains(wanted), "{wanted}: {}", text(&checked.stderr));
    }
    let refused = run(folder.path(), &["--address", "0.0.0.0:0"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("cleartext_public"));
    // Or every copy of the data would have its key.
    let refused = run(folder.path(), &["--address", "127.0.0.1:0", "--key-file", "dpsw-data/key"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("lies in the data folder"));
    assert!(!folder.path().join("dpsw-data").exists(), "nothing was made");
}
