//! A panic while events are counted ends the process, and the item that made it panic is null ever after.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SETTINGS: &str = "
[[source]]
name = 'web'
protects = 'event'
epsilon = 1e6
columns = { page = 'text' }
[[source.stream]]
name = 'pages'
item = 'page'
window = 100
epsilon = 1e5
keys = { list = ['a', 'b', 'poison'] }
";
/// The status of a process of which a thread failed.
const THREAD_FAILED: i32 = 70;

struct Service {
    child: Child,
    address: String,
    token: String,
}

impl Service {
    /// Starts it with a panic at this item, if there is one.
    fn start(folder: &Path, poison: Option<&str>) -> Self {
        let log =
            std::fs::File::options().create(true).append(true).open(folder.join("log")).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpsw-server"));
        command.current_dir(folder).env_remove("DPSW_KEY").env_remove("DPSW_PLANTED_PANIC");
        command.envs(poison.map(|item| ("DPSW_PLANTED_PANIC", item)));
        command.args(["--config", "dpsw.toml", "--address", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("the program runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("listens on http://")?.1.to_owned()));
        let token = std::fs::read_to_string(folder.join("dpsw-data/admin.token")).expect("the first token");
        Self { child, address: address.expect("it listens"), token: token.trim().to_owned() }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
            Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply
    }

    fn send(&self, pages: &[&str]) {
        let reply = self.ask("POST", "/v1/sources/web/events", &format!("{}\n", pages.join("\n")));
        assert!(reply.starts_with("HTTP/1.1 202"), "{reply}");
    }

    /// How often each key came in the last 100 events, once these are sealed: substreams have 32.
    fn counts(&self, sealed: u64) -> [f64; 3] {
        loop {
            let answers = ["a", "b", "poison"].map(|key| self.frequency(key));
            if answers.iter().all(|answer| answer["covered"]["end"].as_u64() == Some(sealed)) {
                return answers.map(|answer| answer["items"][0]["estimate"].as_f64().expect("a number"));
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn frequency(&self, key: &str) -> serde_json::Value {
        let reply = self.ask("GET", &format!("/v1/streams/pages/frequency?item={key}"), "");
        let (_, body) = reply.split_once("\r\n\r\n").expect("a reply");
        serde_json::from_str(body).expect("JSON")
    }

    fn end(mut self, signal: &str) -> Option<i32> {
        let killed = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_panic_ends_the_process_and_its_item_is_null_in_its_place_for_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("dpsw.toml"), SETTINGS).expect("a file");
    let mut service = Service::start(folder, Some("poison"));
    service.send(&["a"; 30]);
    // The batch is acknowledged: it is durable before it is counted.
    service.send(&[["b"; 9].as_slice(), &["poison"], &["b"; 9], &["poison"]].concat());
    let status = service.child.wait().expect("it ends by itself");
    assert_eq!(status.code(), Some(THREAD_FAILED), "{}", log(folder));
    assert!(log(folder).contains("dpsw-server: the thread dpsw-count-web failed"), "{}", log(folder));
    // The other items of the batch count, and so do other batches.
    let service = Service::start(folder, Some("poison"));
    service.send(&["a"; 46]);
    assert_eq!(service.counts(96), [76.0, 18.0, 0.0]);
    // Killed before its states are saved or after: a program that does not panic counts the item no more.
    assert_eq!(service.end("-KILL"), None);
    let service = Service::start(folder, None);
    assert_eq!(service.counts(96), [76.0, 18.0, 0.0]);
    service.send(&[["poison"; 40].as_slice(), &["a"; 56]].concat());
    assert_eq!(service.counts(192), [60.0, 0.0, 40.0], "one that is sent now counts");
    assert_eq!(service.end("-TERM"), Some(0));
    let said = log(folder);
    assert!(said.contains("planted.rs") && !said.contains("poison"), "a place and no item: {said}");
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).expect("a log")
}
