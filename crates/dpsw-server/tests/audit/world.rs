//! A service in this process, with real storage, real sockets and a clock that is set; and the slips that are planted in it.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dpsw_server::auth::{Grant, Keeper};
use dpsw_server::clock::{Clock, SetClock};
use dpsw_server::http::{App, AppSettings, ServeSettings, serve};
use dpsw_server::limits::Limits;
use dpsw_server::{Engine, EngineSettings, Key};
use tokio::runtime::{Builder, Runtime};

use crate::client::{Client, Reply, Request};

/// The service's own clock has steps of this length.
pub(crate) const STEP_MS: u64 = 1000;

/// The clock begins here.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// What the service does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slip {
    Nothing,
    /// A restart goes back to before the last seal, so that noise is drawn again for what was seen.
    Redrawn,
    /// A receipt says how many items were not null.
    ReceiptCountsItems,
    /// Health depends on an event that is not sealed.
    HealthOfOpenEvents,
    /// A batch moves the service's clock to when it came.
    BatchMovesClock,
}

/// A service and all that it keeps.
pub(crate) struct World {
    folder: tempfile::TempDir,
    token: String,
    /// The time outside.
    pub(crate) clock: Arc<SetClock>,
    /// What the service sees of it: all, but with a slip when a batch comes and at whole steps alone.
    seen: Arc<SetClock>,
    pub(crate) slip: Slip,
    life: Option<Life>,
    /// How many events had the first key, as a service with a slip looks at them.
    first: usize,
}

/// From a start to a kill.
struct Life {
    client: Client,
    runtime: Runtime,
    engine: Arc<Engine>,
}

impl World {
    pub(crate) fn new(slip: Slip) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(SetClock::at(START_MS));
        let seen = match slip {
            Slip::BatchMovesClock => Arc::new(SetClock::at(START_MS)),
            _ => Arc::clone(&clock),
        };
        let mut world = Self { folder, token: String::new(), clock, seen, slip, life: None, first: 0 };
        drop(world.engine());
        let keeper = Keeper::open(&world.data(), &world.marker(), &limits()).expect("the tokens");
        world.token = keeper.create("", Grant::everything(), START_MS).expect("a token").text.to_string();
        world.start();
        world
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("kept/data")
    }

    fn marker(&self) -> PathBuf {
        self.folder.path().join("kept/data.marker")
    }

    fn engine(&self) -> Engine {
        fs::create_dir_all(self.folder.path().join("kept")).expect("room");
        let mut settings = EngineSettings::new(self.data(), Key::from_bytes([7; 32]));
        let step_ms = if self.slip == Slip::BatchMovesClock { 1 } else { STEP_MS };
        settings.clock_step = Duration::from_millis(step_ms);
        Engine::open(&settings, self.seen.clone()).expect("the engine opens")
    }

    pub(crate) fn start(&mut self) {
        let engine = Arc::new(self.engine());
        let keeper = Keeper::open(&self.data(), &self.marker(), &limits()).expect("the tokens");
        let mut parts = AppSettings::new(Arc::clone(&engine), keeper, self.clock.clone());
        parts.limits = limits();
        let settings = ServeSettings { app: App::new(parts), tls: None };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let client = Client::new(&listener.local_addr().expect("bound").to_string(), &self.token);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            serve(listener, settings, std::future::pending()).await
        });
        self.life = Some(Life { client, runtime, engine });
    }

    /// Ends the service as in a crash: nothing is saved that was not.
    pub(crate) fn kill(&mut self) {
        if let Some(Life { client, runtime, engine }) = self.life.take() {
            drop((client, runtime));
            assert_eq!(Arc::strong_count(&engine), 1, "nobody else holds the engine");
        }
    }

    /// Copies all that is kept, the marker with it, as nobody should.
    pub(crate) fn back_up(&mut self) {
        self.kill();
        copy(&self.folder.path().join("kept"), &self.folder.path().join("copy"));
        self.start();
    }

    pub(crate) fn restore(&mut self) {
        self.kill();
        copy(&self.folder.path().join("copy"), &self.folder.path().join("kept"));
        self.start();
    }

    pub(crate) fn settle(&mut self) {
        self.life().engine.settle().expect("healthy");
    }

    /// Waits until the service has nothing to do at this time. What its clock moves is shown at its next step.
    pub(crate) fn rest(&mut self) {
        if self.slip == Slip::BatchMovesClock {
            let instant = self.clock.now_ms() / STEP_MS * STEP_MS;
            self.seen.set(instant.max(self.seen.now_ms()));
            return self.settle();
        }
        self.life().engine.rest().expect("healthy");
    }

    fn life(&mut self) -> &mut Life {
        self.life.as_mut().expect("it runs")
    }

    pub(crate) fn get(&mut self, path: &str) -> Reply {
        self.ask(Request::get(path))
    }

    pub(crate) fn post(&mut self, path: &str, content_type: &str, batch_id: &str, body: &str) -> Reply {
        let headers = [("Content-Type", content_type), ("Batch-Id", batch_id)];
        let headers = if batch_id.is_empty() { &headers[..1] } else { &headers };
        self.ask(Request { method: "POST", path, headers, body: body.as_bytes() })
    }

    fn ask(&mut self, request: Request<'_>) -> Reply {
        let reply = self.life().client.ask(request).expect("a reply");
        if self.slip == Slip::BatchMovesClock && request.path.ends_with("/events") {
            self.seen.set(self.clock.now_ms());
            self.settle();
        }
        self.slip(request, reply)
    }

    /// What a service with this slip says instead.
    fn slip(&mut self, request: Request<'_>, mut reply: Reply) -> Reply {
        let body = String::from_utf8_lossy(request.body);
        let is_batch = request.path.ends_with("/events");
        let items = body.lines().filter(|line| line.contains(":\"")).count();
        self.first += if is_batch { body.matches("\"a\"").count() } else { 0 };
        match self.slip {
            Slip::ReceiptCountsItems if is_batch => {
                let mut receipt = reply.json();
                receipt["events"] = items.into();
                reply.body = receipt.to_string().into();
            }
            Slip::HealthOfOpenEvents if request.path == "/v1/status" => {
                let mut status = reply.json();
                status["notices"] = serde_json::json!([format!("{} events wait", self.first)]);
                reply.body = status.to_string().into();
            }
            _ => {}
        }
        reply
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
    }
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.requests_per_second, limits.requests_burst) = (1_000_000, 1_000_000);
    limits
}

/// Copies a folder, in place of what is there.
fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).expect("it may be removed");
    }
    fs::create_dir(to).expect("room");
    fs::set_permissions(to, fs::metadata(from).expect("a folder").permissions()).expect("an owner");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let path = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &path);
        } else {
            fs::copy(entry.path(), path).expect("room");
        }
    }
}
