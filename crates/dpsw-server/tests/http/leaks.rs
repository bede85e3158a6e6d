//! Nothing that was sent shows up where it should not: every log line, metric, problem and reply of a whole conversation is
//! searched for planted keys, users and tokens.

use std::io;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Method, StatusCode};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Reply, Rig, START_MS};

/// All that is logged, at every level, by whoever logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> Self {
        let log = Self::default();
        let subscriber =
            tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone());
        tracing::subscriber::set_global_default(subscriber.finish()).expect("no other test sets one");
        log
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no panic")).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Frequent enough to be found, so that answers may show it.
const RELEASED: &str = "planted-frequent-key";
/// Too rare to be found, a user, something in a wrong place, and one that is only asked for.
const PLANTED: [&str; 5] =
    ["planted-rare-key", "planted-user", "planted-junk", "planted-question", "planted-name"];

struct Conversation {
    rig: Rig,
    /// Every reply but answers about released keys.
    replies: Vec<Reply>,
}

impl Conversation {
    async fn get(&mut self, path: &str) {
        let reply = self.rig.get(path).await;
        self.replies.push(reply);
    }

    async fn batch(&mut self, source: &str, content_type: &str, body: String) {
        let request = self.rig.request(Method::POST, &format!("/v1/sources/{source}/events"));
        let id = format!("{}/{}", PLANTED[2], self.replies.len());
        let request = request.header("content-type", content_type).header("batch-id", id);
        let reply = self.rig.send(request.body(Body::from(body)).expect("a request")).await;
        self.replies.push(reply);
    }

    async fn make(&mut self) {
        let web = r#"{"name": "web", "protects": "event", "epsilon": 4, "delta": 1e-6, "columns": {"page": "text"}}"#;
        let found = json!({"name": "pages", "item": "page", "window": 10000, "epsilon": 4, "delta": 1e-7,
                           "keys": "found"});
        self.rig.make(web, &[found]).await;
        let quiet = r#"{"name": "quiet", "protects": "presence", "epsilon": 1, "columns": {"page": "text"}}"#;
        let timed = json!({"name": "timed", "item": "page", "window": "1h", "expected": 1000, "epsilon": 1,
                           "keys": {"list": ["a", "b"]}});
        self.rig.make(quiet, &[timed]).await;
        let users = r#"{"name": "users", "protects": "users", "items_per_user": 1, "epsilon": 1,
                        "columns": {"page": "text"}, "user_column": "who"}"#;
        let capped = json!({"name": "capped", "item": "page", "window": 10000, "epsilon": 1});
        self.rig.make(users, &[capped]).await;
    }

    async fn send(&mut self) {
        let [rare, user, junk, ..] = PLANTED;
        let frequent = format!("{{\"page\": {RELEASED:?}, \"{junk}\": {junk:?}}}\n").repeat(20_000);
        self.batch("web", "application/x-ndjson", format!("{frequent}{{\"page\": {rare:?}}}\n")).await;
        self.batch("web", "application/x-ndjson", format!("{{}}\n{{\"page\": {rare:?}\n")).await;
        self.batch("web", "application/json", format!("[{{\"page\": {rare:?}}}")).await;
        self.batch("web", "text/csv", format!("{junk},page\n1,\"{rare}\n")).await;
        self.batch("web", "text/csv", format!("{junk}\n{rare}\n")).await;
        self.batch("web", "application/vnd.apache.arrow.stream", rare.to_owned()).await;
        self.batch("web", junk, rare.to_owned()).await;
        let free_text = self.rig.batch_request("text/plain").header("batch-id", junk);
        self.replies.push(self.rig.send(free_text.body(Body::from(rare)).expect("a request")).await);
        self.batch("quiet", "text/plain", format!("{rare}\n").repeat(100)).await;
        self.batch("quiet", "application/x-ndjson", format!("{{\"page\": {rare:?}\n")).await;
        self.batch("users", "application/x-ndjson", format!("{{\"page\": {rare:?}, \"who\": {user:?}}}\n"))
            .await;
        self.batch("users", "application/x-ndjson", format!("{{\"who\": {user:?}\n")).await;
        self.rig.settle().await;
        self.rig.clock.set(START_MS + 7_200_000);
        self.rig.settle().await;
    }

    async fn ask(&mut self) {
        let [rare, _, junk, question, name] = PLANTED;
        for path in [
            format!("/v1/streams/{name}/top"),
            format!("/v1/sources/{name}"),
            format!("/{name}?{junk}={question}"),
            format!("/v1/streams/pages/top?{junk}={question}"),
            format!("/v1/streams/pages/top?window={junk}&as_of={junk}"),
            format!("/v1/streams/pages/frequency?item={question}&window=99999999"),
            format!("/v1/streams/timed/frequency?item={question}"),
            format!("/v1/streams/timed/frequency?item_base64={question}"),
            format!("/v1/streams/timed/history?item={question}"),
            format!("/v1/streams/timed/trend?item={question}"),
            "/v1/streams/timed/top?all=true".to_owned(),
            "/v1/streams/capped/top".to_owned(),
            "/v1/streams/capped/view".to_owned(),
            "/v1/streams/timed/view".to_owned(),
            "/v1/streams/pages".to_owned(),
            "/v1/streams/pages/privacy".to_owned(),
            "/v1/sources".to_owned(),
            "/v1/streams".to_owned(),
            "/v1/tokens".to_owned(),
            "/v1/status".to_owned(),
            "/metrics".to_owned(),
            "/readyz".to_owned(),
        ] {
            self.get(&path).await;
        }
        for body in
            [json!({"items": [question, [rare]]}), json!({"items": [question], junk: 1}), json!([question])]
        {
            let reply = self.rig.post("/v1/streams/pages/frequencies", body).await;
            self.replies.push(reply);
        }
        let request = self.rig.request(Method::POST, "/v1/streams/pages/frequencies").header(junk, question);
        let request = request.header("x-request-id", junk).header("content-type", "application/json");
        let reply =
            self.rig.send(request.body(Body::from(format!("{{{question}"))).expect("a request")).await;
        self.replies.push(reply);
        let method = Method::from_bytes(name.to_uppercase().as_bytes()).expect("a word");
        let reply =
            self.rig.send(self.rig.request(method, "/v1/sources").body(Body::empty()).expect("a request"));
        let reply = reply.await;
        self.replies.push(reply);
    }
}

#[tokio::test]
async fn no_log_line_metric_problem_or_reply_holds_what_was_sent() {
    let log = Log::start();
    let mut conversation = Conversation { rig: Rig::new(), replies: Vec::new() };
    conversation.make().await;
    conversation.send().await;
    conversation.ask().await;
    let Conversation { rig, replies } = conversation;
    // The conversation is real: the frequent key is found and listed, and rare ones are not.
    let top = rig.get("/v1/streams/pages/top?all=true").await;
    assert_eq!(top.status, StatusCode::OK);
    assert!(top.text().contains(RELEASED), "{}", top.text());
    let secret = rig.token.splitn(3, '_').nth(2).expect("three parts");
    let log = log.text();
    assert!(log.contains("/v1/streams/{stream}/frequency") && log.contains("bad-batch"), "{log}");
    let planted = || PLANTED.into_iter().map(str::to_owned).chain(PLANTED.map(str::to_uppercase));
    for planted in planted().chain([secret.to_owned()]) {
        assert!(!log.contains(&planted), "{planted} is in the log:\n{log}");
        for reply in replies.iter().chain([&top]) {
            let (text, headers) = (reply.text(), format!("{:?}", reply.headers));
            assert!(
                !text.contains(&planted) && !headers.contains(&planted),
                "{planted} is in {headers} {text}"
            );
        }
    }
    assert!(!log.contains(RELEASED), "a released key is no matter for the log:\n{log}");
    // Where whether an event came is private, no line says that a batch came: not how many, not even that one was refused.
    let refused = log.lines().filter(|line| line.contains("/v1/sources/{source}/events")).count();
    assert_eq!(refused, 8, "seven of web, one of users and none of quiet:\n{log}");
}
