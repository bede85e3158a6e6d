//! Ten thousand requests that nobody in their right mind sends, to the program itself: each is refused or ends, the program stays
//! up within its memory, and what others sent is counted.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::sync::LazyLock;

use crate::bodies::{Body, KINDS, gzip};
use crate::client::{Reply, connect};
use crate::others::{Others, SOURCE};
use crate::random::Random;
use crate::service::Home;

const REQUESTS: u64 = 10_000;
const CLIENTS: u64 = 4;
/// Bodies may take 64 MiB from their first byte until they are counted; the program itself has the rest.
const MEMORY_MAX: u64 = 200 << 20;

const SETTINGS: &str = "
[limits]
head_time = '200ms'
body_time = '200ms'
body = '2MiB'
memory = '64MiB'
unpacked_body = '8MiB'
requests_per_second = 1_000_000
requests_burst = 1_000_000
[[source]]
name = 'web'
protects = 'event'
epsilon = 10
delta = 1e-6
columns = { page = 'text' }
[[source.stream]]
name = 'pages'
item = 'page'
window = 10_000
epsilon = 1.0
keys = 'found'
";

const METHODS: [&str; 10] =
    ["GET", "POST", "POST", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW", "get"];
const PATHS: [&str; 22] = [
    "/v1/sources/web/events",
    "/v1/streams/pages/frequency?item=",
    "/v1/streams/pages/frequencies",
    "/v1/streams/pages/top?count=",
    "/v1/streams/pages/heavy-hitters?threshold=",
    "/v1/streams/pages/history?item=",
    "/v1/streams/pages/trend?window=",
    "/v1/streams/pages/view",
    "/v1/streams/pages/live",
    "/v1/streams/pages/prometheus",
    "/v1/streams/pages/privacy",
    "/v1/views/merge?count=",
    "/v1/sources",
    "/v1/check/sources",
    "/v1/tokens",
    "/v1/status",
    "/metrics",
    "/healthz",
    "/openapi.json",
    "/v1/streams/../../etc/passwd",
    "*",
    "http://elsewhere/",
];
const TYPES: [&str; 8] = [
    "text/plain",
    "text/csv",
    "application/json",
    "application/x-ndjson",
    "application/vnd.apache.arrow.stream",
    "multipart/form-data; boundary=x",
    "application/octet-stream",
    "nonsense",
];

/// A form with a part that is no view.
const FORM: &str = "--x\r\nContent-Disposition: form-data; name=\"view\"\r\n\r\nDPSW\r\n--x--\r\n";
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&vec![b'\n'; 20 << 20]));

fn pick<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

fn noise(random: &mut Random, len: u64) -> Vec<u8> {
    (0..len).map(|_| random.below(256) as u8).collect()
}

/// The bytes of a request: some right, some almost right, some noise.
fn request(random: &mut Random, token: &str) -> Vec<u8> {
    let target = match random.below(2) {
        0 => "POST /v1/sources/web/events".to_owned(),
        _ => format!("{} {}{}", pick(random, &METHODS), pick(random, &PATHS), tail(random)),
    };
    let body = body(random);
    let mut head = format!("{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    if random.below(8) != 0 {
        head += &format!("Authorization: Bearer {token}\r\n");
    }
    let other_type = pick(random, &TYPES);
    head += &format!("Content-Type: {}\r\n", pick(random, &[body.content_type, other_type]));
    head += &format!(
        "Content-Encoding: {}\r\n",
        pick(random, &[body.packing, body.packing, "gzip", "zstd", "br"])
    );
    head += &odd_header(random);
    let framed = match random.below(10) {
        0 => [format!("Content-Length: {}\r\n\r\n", random.below(1 << 40)).as_bytes(), &body.bytes].concat(),
        1 => [&b"Transfer-Encoding: chunked\r\n\r\n"[..], &chunked(random, &body.bytes)].concat(),
        _ => [format!("Content-Length: {}\r\n\r\n", body.bytes.len()).as_bytes(), &body.bytes].concat(),
    };
    let mut bytes = [head.as_bytes(), &framed].concat();
    if random.below(8) == 0 {
        damage(random, &mut bytes);
    }
    bytes
}

/// What follows a path.
fn tail(random: &mut Random) -> String {
    let long = "x".repeat(random.below(9000) as usize);
    let percent = |byte: u8| format!("%{byte:02x}");
    let random_bytes: String = noise(random, 9).into_iter().map(percent).collect();
    let number = random.below(u64::MAX).to_string();
    let tails = [
        "",
        "",
        "",
        "",
        "",
        "a",
        "5",
        "0.1",
        "-1",
        "1e999",
        "&as_of=7",
        "?window=1h",
        &long,
        &random_bytes,
        &number,
    ];
    pick(random, &tails).to_owned()
}

fn odd_header(random: &mut Random) -> String {
    match random.below(12) {
        0 => format!("Batch-Id: {}\r\n", "i".repeat(random.below(200) as usize)),
        1 => "Batch-Id: a/1\r\nBatch-Id: a/2\r\n".to_owned(),
        2 => "Content-Length: 5\r\nContent-Length: 6\r\n".to_owned(),
        3 => format!("X-Long: {}\r\n", "y".repeat(random.below(1 << 17) as usize)),
        4 => "X: y\r\n".repeat(random.below(300) as usize),
        5 => "Expect: 100-continue\r\n".to_owned(),
        6 => "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n".to_owned(),
        7 => "Authorization: Basic YTpi\r\n".to_owned(),
        8 => "Broken header\r\n".to_owned(),
        _ => String::new(),
    }
}

/// A batch or a question, whole or damaged, or a bomb.
fn body(random: &mut Random) -> Body {
    let pages = vec![Some(pick(random, &["a", "b", "\u{1f41d}", "\"", ""])); random.below(50) as usize];
    let mut body = Body::new(random.below(KINDS), &pages);
    match random.below(12) {
        0..4 => damage(random, &mut body.bytes),
        4 => {
            let len = random.below(2000);
            body.bytes = noise(random, len);
        }
        5 => body.bytes = "[".repeat(random.below(100_000) as usize).into(),
        6 => body.bytes = b"{\"items\": [\"a\", 5, null], \"threshold\": 0.1}".to_vec(),
        7 => (body.packing, body.bytes) = ("gzip", BOMB.clone()),
        8 => body.bytes = FORM.as_bytes().to_vec(),
        _ => {}
    }
    body
}

/// Changes, cuts, repeats or inserts some bytes.
fn damage(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(4) {
            0 => bytes.truncate(at),
            1 => {
                let noise = noise(random, 8);
                bytes.splice(at..at, noise);
            }
            2 => {
                let again = bytes[..at].to_vec();
                bytes.extend(again.into_iter().take(4000));
            }
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        }
    }
}

/// A body in chunks, of which one may say a wrong length.
fn chunked(random: &mut Random, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in body.chunks(1 + random.below(500) as usize) {
        let len = if random.below(20) == 0 { random.below(1 << 62) } else { piece.len() as u64 };
        bytes.extend([format!("{len:x}\r\n").as_bytes(), piece, b"\r\n"].concat());
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// Sends requests, and counts the replies by status; 0 stands for a connection that ended without one.
fn attack(address: &str, token: &str, seed: u64) -> BTreeMap<u16, u64> {
    let (mut random, mut statuses) = (Random(seed), BTreeMap::new());
    for number in 0..REQUESTS / CLIENTS {
        let mut stream = BufReader::new(connect(address).expect("it listens"));
        // The other end may have heard enough before all is sent.
        let _ = stream.get_mut().write_all(&request(&mut random, token));
        let reply = Reply::read(&mut stream);
        if let Ok(reply) = &reply {
            check(reply, &format!("seed {seed}, request {number}"));
        }
        *statuses.entry(reply.map_or(0, |reply| reply.status)).or_default() += 1;
    }
    statuses
}

/// A refusal is a problem, or comes from where HTTP itself is read; it is never the service's own mistake.
fn check(reply: &Reply, what: &str) {
    assert!(reply.status < 500 || reply.status == 503, "{what}: {} {}", reply.head, reply.text());
    if 400 <= reply.status && !reply.body.is_empty() {
        assert!(reply.head.contains("application/problem+json"), "{what}: {} {}", reply.head, reply.text());
        assert!(reply.body.len() < 2000, "{what}: {}", reply.text());
    }
}

#[test]
fn ten_thousand_hostile_requests_are_refused_and_others_are_served_meanwhile() {
    let home = Home::new(&format!("{SETTINGS}{SOURCE}"));
    let token = home.token_for(&["ingest", "query"]);
    let service = home.start();
    let (others, statuses) = std::thread::scope(|scope| {
        let attack = |seed| (service.address.clone(), token.clone(), seed);
        let attackers = (0..CLIENTS)
            .map(attack)
            .map(|(address, token, seed)| scope.spawn(move || self::attack(&address, &token, seed)));
        let attackers: Vec<_> = attackers.collect();
        let is_over = || attackers.iter().all(std::thread::ScopedJoinHandle::is_finished);
        let mut others = Others::default();
        while !is_over() {
            others.send(&mut home.client(&service));
        }
        let mut statuses = BTreeMap::<u16, u64>::new();
        for attacker in attackers {
            let counted = attacker.join().expect("every reply is in order");
            counted.into_iter().for_each(|(status, count)| *statuses.entry(status).or_default() += count);
        }
        (others, statuses)
    });
    let memory = service.memory_max();
    println!("{statuses:?}, {others:?}, at most {memory:?} bytes of memory");
    assert_eq!(statuses.values().sum::<u64>(), REQUESTS);
    assert!(
        [200, 202, 400, 401, 404, 405, 413, 415].iter().all(|status| statuses.contains_key(status)),
        "{statuses:?}"
    );
    assert!(memory.is_none_or(|memory| memory < MEMORY_MAX), "{memory:?}");
    assert!(!home.log().contains("panicked"), "{}", home.log());
    others.check(|| home.client(&service));
}
