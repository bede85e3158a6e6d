//! What few bytes could make of much memory, and who could keep others out, many at once, against a program with little memory: it
//! refuses what costs too much, stays up, and another token is served meanwhile.

use std::io::{BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use dpsw::{DpswSketch, Keys, Settings};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

use crate::bodies::gzip;
use crate::client::{Client, Reply, Request, connect};
use crate::others::SOURCE;
use crate::service::{Home, Service};
use crate::slow::Over;

/// All of the program's address space: its code, stacks and buffers take some 300 MiB, bodies 512 MiB.
const MEMORY: u64 = 1200 << 20;
/// Where others come from.
const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 0);
/// How long they wait, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many do the same at once.
const AT_ONCE: usize = 6;

const SETTINGS: &str = "
[limits]
connections = 200
[[source]]
name = 'web'
protects = 'event'
epsilon = 10
columns = { page = 'text', number = 'integer' }
[[source.stream]]
name = 'pages'
item = 'page'
window = 10_000
epsilon = 1.0
keys = { list = ['a', 'b'] }
[[source.stream]]
name = 'numbers'
item = 'number'
window = 10_000
epsilon = 1.0
keys = { below = 2_000_000 }
";

/// The program, the token of those who ask too much, and those who are served meanwhile.
struct Rig {
    home: Home,
    service: Service,
    greedy: String,
    runtime: Runtime,
}

impl Rig {
    fn new() -> Self {
        let home = Home::new(&format!("{SETTINGS}{SOURCE}"));
        let greedy = home.token_for(&["ingest", "query", "admin"]);
        let service = home.start_with_memory(MEMORY);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        Self { home, service, greedy, runtime }
    }

    fn greedy(&self) -> Client {
        Client::new(&self.service.address, &self.greedy)
    }

    /// Others send a batch, ask a question, and see that the program is well, from another address.
    fn others_are_served(&self) {
        let headers = [("Content-Type", "text/plain")];
        let batch =
            Request { method: "POST", path: "/v1/sources/others/events", headers: &headers, body: b"a\n" };
        self.ask_from_elsewhere(batch).expect(202);
        self.ask_from_elsewhere(Request::get("/v1/streams/counted/top")).expect(200);
        self.ask_from_elsewhere(Request::get("/healthz")).expect(200);
    }

    fn ask_from_elsewhere(&self, request: Request<'_>) -> Reply {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(ELSEWHERE).expect("an address of this machine");
        let address = self.service.address.parse().expect("an address");
        let stream = self.runtime.block_on(socket.connect(address)).expect("it listens");
        let mut stream = stream.into_std().expect("a socket");
        stream.set_nonblocking(false).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(&self.home.client(&self.service).written(request)).expect("it runs");
        Reply::read(&mut BufReader::new(stream)).expect("it runs")
    }

    /// Many do the same at once, and others are served until they are done. All are answered, and none by the program's mistake.
    #[track_caller]
    fn many(&self, what: &str, request: Request<'_>, allowed: &[u16]) {
        let replies: Vec<Reply> = std::thread::scope(|scope| {
            let asking = || self.greedy().ask(request).unwrap_or_else(|error| panic!("{what}: {error}"));
            let many: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(asking)).collect();
            while !many.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                self.others_are_served();
            }
            many.into_iter().map(|one| one.join().expect("every one is answered")).collect()
        });
        self.others_are_served();
        let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
        println!("{what}: {statuses:?}, {:?} MiB", self.service.memory_max().map(|bytes| bytes >> 20));
        for reply in &replies {
            assert!(allowed.contains(&reply.status), "{what}: {} {}", reply.head, reply.text());
        }
    }

    fn events<'r>(headers: &'r [(&'r str, &'r str)], body: &'r [u8]) -> Request<'r> {
        Request { method: "POST", path: "/v1/sources/web/events", headers, body }
    }
}

const LEN: usize = 31 << 20;

#[test]
fn bodies_that_unpack_to_many_fields_take_no_memory_for_them() {
    let rig = Rig::new();
    let headers = [("Content-Type", "text/csv"), ("Content-Encoding", "gzip")];
    let body = gzip(&[b"page,number\n", &vec![b','; LEN][..]].concat());
    rig.many("commas", Rig::events(&headers, &body), &[202, 503]);
}

#[test]
fn columns_that_nobody_wants_are_not_kept() {
    let rig = Rig::new();
    let pages: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let numbers: ArrayRef = Arc::new(arrow_array::UInt64Array::from(vec![7]));
    let wide: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(LEN)]));
    let batch = RecordBatch::try_from_iter([("page", pages), ("number", numbers), ("wide", wide)]);
    let batch = batch.expect("three columns");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("memory");
    writer.write(&batch).expect("memory");
    let body = gzip(&writer.into_inner().expect("memory"));
    let headers = [("Content-Type", "application/vnd.apache.arrow.stream"), ("Content-Encoding", "gzip")];
    rig.many("an unwanted column", Rig::events(&headers, &body), &[202, 503]);
}

#[test]
fn questions_of_many_small_items_take_no_memory_for_them() {
    let rig = Rig::new();
    let items = "{\"\":0},".repeat((15 << 20) / 7);
    let body = format!("{{\"items\":[{items}\"a\"]}}");
    let headers = [("Content-Type", "application/json")];
    let path = "/v1/streams/pages/frequencies";
    let request = Request { method: "POST", path, headers: &headers, body: body.as_bytes() };
    rig.many("small items", request, &[400, 503]);
    let nested = format!("{{\"items\":[[{items}0]]}}");
    rig.many("nested items", Request { body: nested.as_bytes(), ..request }, &[400, 503]);
}

#[test]
fn views_and_lists_are_refused_by_their_cost() {
    let rig = Rig::new();
    let settings = Settings::last_ticks(1000, 1000, 1.0).expect("settings").with_keys(Keys::Range(1 << 24));
    let view = DpswSketch::new(settings.plan().expect("a plan")).expect("randomness").view().to_bytes();
    assert!(view.len() < 1000, "{}", view.len());
    let headers = [("Content-Type", "application/vnd.dpsw.view")];
    let put = Request { method: "PUT", path: "/v1/streams/sent/view", headers: &headers, body: &view };
    rig.many("a view of many keys", put, &[400, 503]);
    let head = b"--x\r\nContent-Disposition: form-data; name=\"view\"\r\n\r\n";
    let form = [&head[..], &view, b"\r\n--x--\r\n"].concat();
    let headers = [("Content-Type", "multipart/form-data; boundary=x")];
    let merge = Request { method: "POST", path: "/v1/views/merge?count=10", headers: &headers, body: &form };
    rig.many("a merge of many keys", merge, &[400, 503]);
    // Enough events that windows are sealed and noise is over all of the keys.
    let numbers = "{\"number\":5}\n".repeat(20_000);
    let headers = [("Content-Type", "application/x-ndjson")];
    rig.greedy().ask(Rig::events(&headers, numbers.as_bytes())).expect("it runs").expect(202);
    let low = Request::get("/v1/streams/numbers/heavy-hitters?threshold=1e-9&all=true");
    // Until something is sealed there is nothing to list.
    let end = Instant::now() + PATIENCE;
    while rig.greedy().ask(low).expect("it runs").status == 200 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    rig.many("a low threshold", low, &[400, 503]);
}

/// Sends this and keeps the connection.
fn begin(address: &str, text: &[u8]) -> TcpStream {
    let mut stream = connect(address).expect("it listens");
    // It may be refused before all is sent.
    let _ = stream.write_all(text);
    stream
}

#[test]
fn connections_bodies_and_followers_that_only_wait_keep_nobody_out() {
    let rig = Rig::new();
    let address = &rig.service.address;
    let mut kept = Vec::new();
    let settings_frame = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings_frame].concat();
    kept.extend((0..250).map(|_| begin(address, &preface)));
    rig.others_are_served();
    let follow = format!(
        "GET /v1/streams/pages/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        rig.greedy
    );
    kept.extend((0..64).map(|_| begin(address, follow.as_bytes())));
    rig.others_are_served();
    let slow = format!(
        "POST /v1/sources/web/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\nAuthorization: Bearer {}\r\n\r\na",
        16 << 20,
        rig.greedy
    );
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Those that are refused come again.
        for _ in 0..4 {
            scope.spawn(|| {
                let mut slow_ones = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    slow_ones.push(begin(address, slow.as_bytes()));
                    std::thread::sleep(Duration::from_millis(5));
                    if 60 < slow_ones.len() {
                        slow_ones.remove(0);
                    }
                }
            });
        }
        let over = Over(&is_over);
        (0..50).for_each(|_| rig.others_are_served());
        drop(over);
    });
    println!("waiting: {:?} MiB", rig.service.memory_max().map(|bytes| bytes >> 20));
}
