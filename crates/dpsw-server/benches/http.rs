//! How fast batches are taken and questions are answered, as ratios in one run: `cargo bench -p dpsw-server --bench http`.
//! Server and clients share the machine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use dpsw::{Batch, DpswSketch, Settings, Strings};
use dpsw_server::auth::{Grant, Keeper};
use dpsw_server::clock::SystemClock;
use dpsw_server::http::{App, AppSettings, ServeSettings, router, serve};
use dpsw_server::limits::Limits;
use dpsw_server::{Engine, EngineSettings, Key};
use http_body_util::BodyExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::ServiceExt;

const KEYS: usize = 10_000;
const BATCH: usize = 1000;
/// How long each row is measured.
const TIME: Duration = Duration::from_secs(5);
const NDJSON: &str = "application/x-ndjson";
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// A service with a socket, and what its clients need.
struct Service {
    engine: Arc<Engine>,
    app: App,
    address: SocketAddr,
    token: String,
    _folder: tempfile::TempDir,
}

impl Service {
    async fn start(is_durable: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let mut settings = EngineSettings::new(&data, Key::from_bytes([7; 32]));
        settings.is_durable = is_durable;
        let engine = Arc::new(Engine::open(&settings, Arc::new(SystemClock)).expect("an engine"));
        let mut limits = Limits::default();
        (limits.requests_per_second, limits.requests_burst) = (1_000_000, 1_000_000);
        let keeper = Keeper::make(&data, &limits).expect("tokens");
        let token = keeper.create("", Grant::everything(), 0).expect("a token").text.to_string();
        let mut parts = AppSettings::new(Arc::clone(&engine), keeper, Arc::new(SystemClock));
        parts.limits = limits;
        let app = App::new(parts);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let settings = ServeSettings { app: app.clone(), tls: None };
        tokio::spawn(serve(listener, settings, std::future::pending()));
        let making = Arc::clone(&engine);
        tokio::task::spawn_blocking(move || make(&making)).await.expect("a thread");
        Self { engine, app, address, token, _folder: folder }
    }

    fn request(&self, content_type: &str, body: Bytes) -> Request<Body> {
        Request::post(format!("http://{}/v1/sources/web/events", self.address))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", content_type)
            .header("host", "localhost")
            .body(Body::from(body))
            .expect("a request")
    }
}

fn make(engine: &Engine) {
    let source = "name = 'web'\nprotects = 'event'\nepsilon = 1\ncolumns = { page = 'text' }";
    engine.create_source(toml::from_str(source).expect("a source")).expect("a source");
    let keys: Vec<String> = (0..KEYS).map(key).collect();
    let stream = format!(
        "name = 'pages'\nitem = 'page'\nwindow = 1_000_000\nepsilon = 1.0\nkeys = {{ list = {keys:?} }}"
    );
    engine.create_stream("web", toml::from_str(&stream).expect("a stream")).expect("a stream");
}

fn key(index: usize) -> String {
    format!("/page/{index:05}")
}

/// The keys of a batch: few are frequent, many are rare.
fn keys_of(batch: usize, len: usize) -> Vec<String> {
    let mix = |index: usize| (batch * len + index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let skewed = |index: usize| {
        let uniform = (mix(index) % 1_000_000) as f64 / 1e6;
        (KEYS as f64).powf(uniform) as usize % KEYS
    };
    (0..len).map(|index| key(skewed(index))).collect()
}

fn ndjson(batch: usize, len: usize) -> Bytes {
    let line = |page: String| format!("{{\"page\":\"{page}\",\"status\":200}}\n");
    keys_of(batch, len).into_iter().map(line).collect::<String>().into()
}

fn arrow(batch: usize, len: usize) -> Bytes {
    let column: ArrayRef = Arc::new(StringArray::from(keys_of(batch, len)));
    let batch = RecordBatch::try_from_iter([("page", column)]).expect("one column");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("memory");
    writer.write(&batch).expect("memory");
    writer.into_inner().expect("memory").into()
}

/// What clients send: bodies of so many events each.
#[derive(Clone)]
struct Load {
    content_type: &'static str,
    bodies: Arc<[Bytes]>,
    events: usize,
}

impl Load {
    fn new(content_type: &'static str, events: usize, make: fn(usize, usize) -> Bytes) -> Self {
        Self { content_type, bodies: (0..32).map(|batch| make(batch, events)).collect(), events }
    }
}

/// Sends until the time is over, one after the other; how many batches were taken.
async fn send_http2(
    service: Arc<Service>,
    mut sender: hyper::client::conn::http2::SendRequest<Body>,
    load: Load,
    until: Instant,
) -> usize {
    let mut taken = 0;
    while Instant::now() < until {
        let body = load.bodies[taken % load.bodies.len()].clone();
        let reply = sender.send_request(service.request(load.content_type, body)).await.expect("a reply");
        taken += count(reply.status()).await;
    }
    taken
}

async fn count(status: StatusCode) -> usize {
    match status {
        StatusCode::ACCEPTED => 1,
        StatusCode::SERVICE_UNAVAILABLE => {
            tokio::time::sleep(Duration::from_millis(5)).await;
            0
        }
        other => panic!("{other}"),
    }
}

/// Events per second, with so many connections and so many batches in flight on each.
async fn rate(service: &Arc<Service>, load: &Load, connections: usize, in_flight: usize) -> f64 {
    let mut clients = JoinSet::new();
    let began = Instant::now();
    for _ in 0..connections {
        let stream = TcpStream::connect(service.address).await.expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = handshake.await.expect("HTTP/2");
        tokio::spawn(connection);
        for _ in 0..in_flight {
            clients.spawn(send_http2(Arc::clone(service), sender.clone(), load.clone(), began + TIME));
        }
    }
    let taken: usize = clients.join_all().await.into_iter().sum();
    (taken * load.events) as f64 / began.elapsed().as_secs_f64()
}

/// Events per second that are read on one thread: each body ends in a line that refuses it, so nothing else is done.
async fn reading(service: &Service) -> f64 {
    let body: Bytes = [ndjson(0, BATCH), Bytes::from_static(b"x\n")].concat().into();
    let router = router(service.app.clone());
    let (began, mut bodies) = (Instant::now(), 0);
    while began.elapsed() < TIME {
        let reply = router.clone().oneshot(service.request(NDJSON, body.clone())).await.expect("a reply");
        assert_eq!(reply.status(), StatusCode::BAD_REQUEST);
        bodies += BATCH;
    }
    bodies as f64 / began.elapsed().as_secs_f64()
}

/// Strings per second that the library counts on one thread.
fn library() -> f64 {
    let keys: Vec<String> = (0..KEYS).map(key).collect();
    let settings = Settings::last_items(1_000_000, 1.0).expect("settings").with_keys(keys);
    let mut sketch = DpswSketch::new(settings.plan().expect("a plan")).expect("randomness");
    let items = keys_of(0, 100_000);
    let mut strings = Strings::with_capacity(items.len(), 0);
    items.iter().for_each(|item| strings.push(item.as_bytes()));
    let (began, mut counted) = (Instant::now(), 0);
    while began.elapsed() < TIME {
        sketch.extend(Batch::strings(&strings)).expect("randomness");
        counted += strings.len();
    }
    counted as f64 / began.elapsed().as_secs_f64()
}

/// How long questions take while clients send as much as they can: the median, and what one in a hundred exceeds.
async fn questions(service: &Arc<Service>, load: &Load) -> [Duration; 2] {
    let stream = TcpStream::connect(service.address).await.expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
    tokio::spawn(connection);
    let sending = rate(service, load, 1, 16);
    let asking = async {
        let (began, mut times) = (Instant::now(), Vec::new());
        while began.elapsed() < TIME {
            let request = Request::get("/v1/streams/pages/frequency?item=/page/00001")
                .header("authorization", format!("Bearer {}", service.token))
                .header("host", "localhost");
            let asked = Instant::now();
            let reply = sender.send_request(request.body(Body::empty()).expect("a request")).await;
            reply.expect("a reply").into_body().collect().await.expect("a body");
            times.push(asked.elapsed());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        times
    };
    let (_, mut times) = tokio::join!(sending, asking);
    times.sort_unstable();
    [times[times.len() / 2], times[times.len() * 99 / 100]]
}

fn say(row: &str, rate: f64, other: Option<(&str, f64, &str)>) {
    let ratio = other.map_or(String::new(), |(than, other, asked)| {
        format!("{:>8.3} x {than} (asked: {asked})", rate / other)
    });
    println!("{row:<46}{:>10.2} M/s {ratio}", rate / 1e6);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let library = library();
    say("the library, strings", library, None);
    let [ndjson, arrow, large] = [
        Load::new(NDJSON, BATCH, ndjson),
        Load::new(ARROW, BATCH, arrow),
        Load::new(ARROW, 100 * BATCH, arrow),
    ];
    let off = Arc::new(Service::start(false).await);
    say("NDJSON, read and refused, without a socket", reading(&off).await, None);
    let [off_16, off_8] = [rate(&off, &ndjson, 1, 16).await, rate(&off, &ndjson, 8, 2).await];
    say("NDJSON, not durable, 1 connection, 16 in flight", off_16, None);
    say("NDJSON, not durable, 8 connections", off_8, None);
    let off_large = rate(&off, &large, 2, 2).await;
    say("Arrow, not durable, 100,000 per batch", off_large, Some(("the library", library, ">= 0.1")));
    drop(off);
    let on = Arc::new(Service::start(true).await);
    let on_16 = rate(&on, &ndjson, 1, 16).await;
    say("NDJSON, durable, 1 connection, 16 in flight", on_16, Some(("not durable", off_16, ">= 0.5")));
    let on_8 = rate(&on, &ndjson, 8, 2).await;
    say("NDJSON, durable, 8 connections", on_8, Some(("not durable", off_8, ">= 0.8")));
    let on_arrow = rate(&on, &arrow, 1, 16).await;
    say("Arrow, durable, 1,000 per batch", on_arrow, Some(("NDJSON", on_16, ">= 3")));
    let on_large = rate(&on, &large, 2, 2).await;
    say("Arrow, durable, 100,000 per batch", on_large, Some(("the library", library, ">= 0.03")));
    say("the same", on_large, Some(("NDJSON", on_8, ">= 3")));
    let [median, slow] = questions(&on, &ndjson).await;
    println!("questions while NDJSON comes: median {median:.2?}, p99 {slow:.2?} (asked: <= 5 ms)");
    on.engine.shutdown().expect("saved");
}
