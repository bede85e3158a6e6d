//! What was planted is found nowhere: a whole run of the program, all routes and formats, right and wrong, with a kill between;
//! every reply, line of the log and file is searched for keys, users' names and tokens, as they are and in other spellings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::bodies::{Body, KINDS};
use crate::client::{Client, Reply, Request};
use crate::service::Home;

const SETTINGS: &str = "
debug = true
prometheus = ['pages', 'timed', 'capped']
[[source]]
name = 'web'
protects = 'event'
epsilon = 8
delta = 1e-6
columns = { page = 'text' }
[[source.stream]]
name = 'pages'
item = 'page'
window = 10_000
epsilon = 4.0
delta = 1e-7
keys = 'found'
[[source]]
name = 'quiet'
protects = 'presence'
epsilon = 1
columns = { page = 'text' }
[[source.stream]]
name = 'timed'
item = 'page'
window = '2s'
expected = 1000
epsilon = 1.0
keys = { list = ['a', 'b'] }
[[source]]
name = 'users'
protects = 'users'
items_per_user = 1
epsilon = 8
delta = 1e-6
columns = { page = 'text' }
user_column = 'who'
[[source.stream]]
name = 'capped'
item = 'page'
window = 10_000
epsilon = 4.0
delta = 1e-7
keys = 'found'
";
/// Frequent enough to be found: answers may show it, the log and files may not.
const RELEASED: &str = "frequent key/of\u{e4}ll";
/// Below the noise; in batches and requests that are refused; who sent it: these are shown nowhere.
const RARE: &str = "rare key/7f\u{e4}3a+b=";
const JUNK: &str = "junk value/91\u{e4}c+d=";
const USER: &str = "user name/5e\u{e4}d+f=";
/// Whoever asks for it reads it in the answer, and nobody else.
const ASKED: &str = "asked key/c4\u{e4}b+e=";
/// In settings that cannot be meant: whoever wishes for them reads what is wrong with them.
const WISHED: &str = "wished value/d2\u{e4}e+a=";

/// A text in the spellings in which it might be written somewhere.
fn spellings(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let mut all = vec![
        ("plain", text.as_bytes().to_vec()),
        ("upper case", text.to_uppercase().into()),
        ("lower case", text.to_lowercase().into()),
        ("as a Rust string", text.escape_debug().to_string().into()),
        ("as ASCII", text.escape_default().to_string().into()),
        ("as ASCII JSON", text.replace('\u{e4}', "\\u00e4").into()),
        ("UTF-16", text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        (
            "as a list of bytes",
            text.as_bytes().iter().map(u8::to_string).collect::<Vec<_>>().join(", ").into(),
        ),
        ("backwards", text.bytes().rev().collect()),
    ];
    for (name, upper) in [("hex", false), ("upper hex", true)] {
        let digits = |byte: u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
        let percent = |space: &str| {
            let escape = |byte: u8| match byte {
                b' ' => space.to_owned(),
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
                _ => format!("%{}", digits(byte)),
            };
            text.bytes().map(escape).collect::<String>()
        };
        all.push((name, text.bytes().map(digits).collect::<String>().into()));
        all.push((
            "all percent",
            text.bytes().map(|byte| format!("%{}", digits(byte))).collect::<String>().into(),
        ));
        all.push(("percent", percent("%20").into()));
        all.push(("as in a form", percent("+").into()));
    }
    // In base64 a text looks otherwise by where it begins in three bytes; its first and last characters mix with others.
    for before in 0..3 {
        let bytes = [&b"\0\0"[..before], text.as_bytes()].concat();
        let whole = &bytes[..bytes.len() / 3 * 3];
        for encoded in [STANDARD_NO_PAD.encode(whole), URL_SAFE_NO_PAD.encode(whole)] {
            let skipped = if before == 0 { 0 } else { before + 1 };
            all.push(("base64", encoded.as_bytes()[skipped..].to_vec()));
        }
    }
    all
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// In which spelling a text is there.
fn spelling_in(bytes: &[u8], text: &str) -> Option<&'static str> {
    spellings(text).into_iter().find(|(_, spelling)| holds(bytes, spelling)).map(|(name, _)| name)
}

#[track_caller]
fn check_free(bytes: &[u8], secret: &str, what: &str) {
    let shown = || String::from_utf8_lossy(bytes).chars().take(3000).collect::<String>();
    if let Some(name) = spelling_in(bytes, secret) {
        panic!("{secret:?} is in {what}, {name}: {}", shown());
    }
}

#[test]
fn every_spelling_would_be_found() {
    let text = format!("some text before {RARE} and after");
    let encoded = (0..3).map(|cut| STANDARD_NO_PAD.encode(&text.as_bytes()[cut..]));
    let hex = text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let form = form_encoded(&[("item", RARE)]);
    for written in encoded.chain([hex, form, text.clone(), format!("{text:?}"), text.to_uppercase()]) {
        assert!(spelling_in(written.as_bytes(), RARE).is_some(), "{written}");
    }
    assert_eq!(spelling_in(text.as_bytes(), JUNK), None);
}

/// What was said.
struct Run<'h> {
    home: &'h Home,
    client: Client,
    replies: Vec<(String, Reply)>,
}

impl Run<'_> {
    fn ask(&mut self, request: Request<'_>) -> Reply {
        let reply = self.client.ask(request).expect("it runs");
        self.replies.push((format!("{} {}", request.method, request.path), reply.clone()));
        reply
    }

    fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Reply {
        self.ask(Request { method: "POST", path, headers: &[("Content-Type", content_type)], body })
    }

    /// Frequent and rare keys in every format, whole, cut off and damaged.
    fn send(&mut self) {
        let frequent = vec![Some(RELEASED); 3000];
        for kind in 0..KINDS {
            let whole = Body::new(kind, &[&frequent[..], &[Some(RARE)]].concat());
            let broken = Body::new(kind, &[Some(RARE), Some(JUNK), Some(RARE)]);
            for source in ["web", "quiet", "users", JUNK_NAME] {
                let path = format!("/v1/sources/{source}/events");
                let free_text = base64::engine::general_purpose::STANDARD.encode(JUNK);
                let id = format!("{}/{kind}", URL_SAFE_NO_PAD.encode(JUNK));
                let headers = whole.headers(&id);
                // The same id each time would count once.
                self.ask(Request { method: "POST", path: &path, headers: &headers[..2], body: &whole.bytes });
                let cut = &broken.bytes[..broken.bytes.len() - 3];
                self.ask(Request { method: "POST", path: &path, headers: &broken.headers(&id), body: cut });
                let mut damaged = broken.bytes.clone();
                let middle = damaged.len() / 2;
                damaged[middle] ^= 0x15;
                self.ask(Request {
                    method: "POST",
                    path: &path,
                    headers: &broken.headers(&free_text),
                    body: &damaged,
                });
            }
        }
        for user in 0..30 {
            let who = if user == 0 { USER.to_owned() } else { format!("{USER} {user}") };
            let body =
                json!([{"page": RARE, "who": who}, {"page": RELEASED, "who": {who.clone(): 1}}]).to_string();
            self.post("/v1/sources/users/events", "application/json", body.as_bytes());
            self.post("/v1/sources/users/events", "application/json", &body.as_bytes()[..body.len() - 2]);
        }
        let csv = format!("page,who\n{}\"{RARE}\",\"{USER}\n", format!("{RELEASED},{USER} x\n").repeat(10));
        self.post("/v1/sources/users/events", "text/csv", csv.as_bytes());
    }

    /// Every route of the document, with names, parameters and bodies that are right and wrong.
    fn ask_everything(&mut self) {
        let document = self.ask(Request::get("/openapi.json")).expect(200).json();
        let mut routes = 0;
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, route) in methods.as_object().expect("methods") {
                routes += 1;
                self.ask_route(&method.to_uppercase(), path, route);
            }
        }
        assert!(20 < routes, "{routes} routes");
    }

    fn ask_route(&mut self, method: &str, path: &str, route: &Value) {
        for (source, stream) in
            [("web", "pages"), ("quiet", "timed"), ("users", "capped"), (JUNK_NAME, JUNK_NAME)]
        {
            // What is there stays there.
            if matches!(method, "DELETE" | "PUT") && source != JUNK_NAME {
                continue;
            }
            let path =
                path.replace("{source}", source).replace("{stream}", stream).replace("{id}", JUNK_NAME);
            let empty = Vec::new();
            let parameters = route["parameters"].as_array().unwrap_or(&empty);
            let queries = parameters.iter().filter(|parameter| parameter["in"] == "query");
            let names: Vec<&str> = queries.filter_map(|parameter| parameter["name"].as_str()).collect();
            let mut asked = vec![path.clone(), format!("{path}?{}", form_encoded(&[(JUNK, JUNK)]))];
            let value = |name: &str| if name == "item" { ASKED } else { JUNK };
            let query = |name: &&str| format!("{path}?{}", form_encoded(&[(name, value(name))]));
            asked.extend(names.iter().map(query));
            for path in asked {
                self.ask_with_bodies(method, &path);
            }
        }
    }

    fn ask_with_bodies(&mut self, method: &str, path: &str) {
        let wishes = [
            json!({"items": [ASKED], "threshold": 0.1}),
            json!({"items": [{JUNK: JUNK}]}),
            json!({"name": WISHED, "item": WISHED, "window": WISHED}),
            json!({"name": "other", "protects": WISHED, "epsilon": WISHED, "columns": {WISHED: WISHED}, WISHED: 1}),
            json!({"grant": {"roles": [WISHED]}, "name": 5}),
        ];
        let wishes = if method == "GET" { &wishes[..0] } else { &wishes };
        for body in wishes.iter().map(Value::to_string).chain([format!("{{{JUNK}")]) {
            let percent = form_encoded(&[("", JUNK)]);
            let headers =
                [("Content-Type", "application/json"), ("X-Request-Id", &percent), ("Referer", &percent)];
            self.ask(Request { method, path, headers: &headers, body: body.as_bytes() });
        }
    }

    /// Nothing of what is secret is in what was said.
    fn check_replies(&self) {
        let secret = self.home.token.splitn(3, '_').nth(2).expect("three parts");
        for (what, reply) in &self.replies {
            let all = [reply.head.as_bytes(), &reply.body].concat();
            for planted in [RARE, JUNK, USER, secret] {
                check_free(&all, planted, what);
            }
            assert!(reply.status < 500, "{what}: {} {}", reply.head, reply.text());
        }
    }
}

/// A name that a path can have, and nothing has.
const JUNK_NAME: &str = "junk%20value%2F91%C3%A4c%2Bd%3D";

fn form_encoded(pairs: &[(&str, &str)]) -> String {
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    pairs
        .iter()
        .map(|(name, value)| format!("{}={}", plain_or(name, encode), encode(value)))
        .collect::<Vec<_>>()
        .join("&")
}

/// Names that are asked for stay readable.
fn plain_or(name: &str, encode: impl Fn(&str) -> String) -> String {
    if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') { name.to_owned() } else { encode(name) }
}

/// All files of a folder, by path.
fn files(folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            files(&entry.path(), all);
        } else {
            all.insert(entry.path(), fs::read(entry.path()).expect("a file"));
        }
    }
}

fn check_files(home: &Home) {
    let mut all = BTreeMap::new();
    files(home.path(), &mut all);
    assert!(100_000 < all.values().map(Vec::len).sum::<usize>(), "{:?}", all.keys());
    // The secret may have underscores of its own.
    let secret = home.token.splitn(3, '_').nth(2).expect("three parts");
    for (path, bytes) in &all {
        for planted in [RARE, JUNK, USER, ASKED, WISHED, RELEASED, secret] {
            check_free(bytes, planted, &path.display().to_string());
        }
    }
    let key = fs::read_to_string(home.path().join("dpsw-data.key")).expect("a key");
    all.iter().filter(|(path, _)| !path.ends_with("dpsw-data.key")).for_each(|(path, bytes)| {
        check_free(bytes, key.trim(), &path.display().to_string());
    });
}

#[test]
fn what_was_planted_is_in_no_reply_log_metric_or_file() {
    let home = Home::new(SETTINGS);
    let service = home.start();
    let mut run = Run { home: &home, client: home.client(&service), replies: Vec::new() };
    run.send();
    run.ask_everything();
    service.kill();
    check_files(&home);
    let service = home.start();
    run.client = home.client(&service);
    run.send();
    run.ask_everything();
    // The run is real: what is frequent is found, listed, and in the view and the page of metrics.
    for path in ["/v1/streams/pages/top", "/v1/streams/pages/view", "/v1/streams/pages/prometheus"] {
        let reply = run.ask(Request::get(path)).expect(200);
        assert!(holds(&reply.body, RELEASED.as_bytes()), "{path}: {}", reply.text());
    }
    let accepted = run.replies.iter().filter(|(_, reply)| reply.status == 202).count();
    let refused = run.replies.iter().filter(|(_, reply)| 400 <= reply.status).count();
    println!("{} replies, {accepted} batches taken, {refused} refusals", run.replies.len());
    assert!(20 < accepted && 500 < refused, "{accepted} taken, {refused} refused");
    run.check_replies();
    drop(service);
    check_files(&home);
    let log = home.log();
    assert!(log.contains("/v1/streams/{stream}/frequency") && log.contains("listening"), "{log}");
}
