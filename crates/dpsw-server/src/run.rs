//! Starts the service, and ends it in peace.

use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;

use dpsw_durable::disk::owner_only;
use dpsw_server::auth::{Grant, Keeper};
use dpsw_server::clock::{Clock, SystemClock};
use dpsw_server::http::{App, AppSettings, ServeSettings, answer_until, serve};
use dpsw_server::key::Origin;
use dpsw_server::settings::{LogFormat, Settings};
use dpsw_server::tls::Tls;
use dpsw_server::{Engine, EngineSettings, Key};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::Failure;

/// The variable that may hold the key.
const KEY_VARIABLE: &str = "DPSW_KEY";
/// The file of the first token, in the data folder.
const FIRST_TOKEN: &str = "admin.token";
/// Threads that answer; bodies and long questions are worked on by others.
const ANSWERING_MAX: usize = 4;
/// The status of a process that was interrupted twice.
const INTERRUPTED: i32 = 130;

/// What is said of a start that panicked.
const START_FAILED: &str = "the start failed, and the log says where";
/// The status of a process of which a thread failed.
pub(crate) const THREAD_FAILED: u8 = 70;

/// A thread of the engine failed: the process ends, so that whoever watches over it starts it again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ThreadFailed(String);

/// The events that end the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Signals alone.
    BySignals,
    /// Signals, or the end of standard input.
    WithStdin,
}

pub(crate) fn run(settings: &Settings, end: End) -> Result<(), Failure> {
    settings.check_address()?;
    start_log(settings);
    let tls = settings.tls.clone().map(Tls::open).transpose()?;
    // Before anything is made: what the first start says would be lost with an address that is taken.
    let listener = listen(settings)?;
    let runtime = runtime()?;
    let engine = runtime.block_on(answer(listener, settings.clone(), tls, end))?;
    engine.shutdown()?;
    tracing::info!("everything is saved");
    Ok(())
}

/// The parts of a service that has started.
struct Started {
    engine: Arc<Engine>,
    app: App,
    /// The file of the first token, if it was just made.
    first_token: Option<PathBuf>,
}

/// Restores everything, which may take long.
fn start(settings: &Settings) -> Result<Started, Failure> {
    let engine = open_engine(settings)?;
    settings.make_sources(&engine);
    let keeper = keeper(settings, &engine)?;
    let first_token = first_token(&keeper, &settings.data)?;
    let app = app(settings, Arc::clone(&engine), keeper);
    dpsw_server::broker::start(app.clone(), settings.brokers.clone());
    Ok(Started { engine, app, first_token })
}

fn listen(settings: &Settings) -> Result<std::net::TcpListener, Failure> {
    let listener = std::net::TcpListener::bind(settings.address).map_err(|error| {
        format!(
            "{} cannot be listened on: {error}; name another one with --address, such as 127.0.0.1:7979",
            settings.address
        )
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Answers from now on: while the service starts, that it does. Returns when it was told to end.
async fn answer(
    listener: std::net::TcpListener,
    settings: Settings,
    tls: Option<Arc<Tls>>,
    end: End,
) -> Result<Arc<Engine>, Failure> {
    let listener = TcpListener::from_std(listener)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    // Whoever reads that the service listens may end it at once.
    let told = told_to_end()?;
    let mut told = std::pin::pin!(async move {
        tokio::select! {
            () = told => {}
            () = end.of_input() => {}
        }
    });
    let starting = tokio::task::spawn_blocking(move || start(&settings));
    let Started { engine, app, first_token } = tokio::select! {
        // A thread that cannot be joined has panicked.
        started = answer_until(starting, &listener, tls.as_ref()) => started.map_err(|_| START_FAILED)??,
        () = &mut told => end_at_once(),
    };
    greet(&format!("{scheme}://{}", listener.local_addr()?), first_token.as_deref());
    let mut failure = None;
    let ended = async {
        tokio::select! {
            () = &mut told => {}
            reason = engine.failed() => failure = Some(reason),
        }
    };
    serve(listener, ServeSettings { app, tls }, ended).await?;
    if let Some(reason) = failure {
        return Err(ThreadFailed(reason).into());
    }
    let told_again = told_to_end()?;
    tokio::spawn(async move {
        told_again.await;
        std::process::exit(INTERRUPTED);
    });
    Ok(engine)
}

/// A start that nobody wants any more, which a thread is busy with. Nothing is lost: it is as if the process had been killed.
fn end_at_once() -> ! {
    tracing::info!("told to end while it was starting");
    std::process::exit(0)
}

impl End {
    async fn of_input(self) {
        if self == Self::BySignals {
            return std::future::pending().await;
        }
        let (ended, end) = tokio::sync::oneshot::channel();
        // A thread of its own: one of the runtime's would keep the process from ending.
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = ended.send(());
        });
        let _ = end.await;
    }
}

/// What tells the process to end: an interrupt, or a request to terminate. Heard from the moment on that this is made.
#[cfg(unix)]
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    })
}

/// Other systems have interrupts alone.
#[cfg(not(unix))]
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// Says where the service is and how to ask it. The token itself stays in its file, out of whatever keeps this output.
fn greet(address: &str, first_token: Option<&Path>) {
    say(&format!("dpsw-server {} listens on {address}", env!("CARGO_PKG_VERSION")));
    if let Some(path) = first_token {
        let path = path.display();
        say(&format!(
            "The first token, which may do everything, is in {path}: move it to where you keep secrets.\n\
            All that can be asked stands in {address}/openapi.json. Try:\n  \
            curl -H \"Authorization: Bearer $(cat {path})\" {address}/v1/sources"
        ));
    }
}

/// A service goes on if nobody listens to what it says.
fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// Writes our own events to stderr, and no others: libraries could write what clients send.
fn start_log(settings: &Settings) {
    let level = if settings.debug { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let ours = Targets::new().with_target("dpsw_server", level);
    let layer = fmt::layer().with_writer(std::io::stderr);
    let layer = match settings.log {
        LogFormat::Text => layer.with_filter(ours).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_filter(ours).boxed(),
    };
    tracing_subscriber::registry().with(layer).init();
    // What a panic says may hold what a client sent.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a thread panicked");
    }));
}

fn open_engine(settings: &Settings) -> Result<Arc<Engine>, Failure> {
    let mut engine = EngineSettings::new(&settings.data, key(settings)?);
    engine.marker_folder = settings.marker_folder();
    engine.senders_max = settings.limits.senders;
    Ok(Arc::new(Engine::open(&engine, Arc::new(SystemClock))?))
}

fn key(settings: &Settings) -> Result<Key, Failure> {
    if let Ok(text) = std::env::var(KEY_VARIABLE) {
        return Ok(Key::from_text(KEY_VARIABLE, &text)?);
    }
    settings.check_key()?;
    let path = settings.key_path();
    let (key, origin) = Key::of_file(&path)?;
    if origin == Origin::Made {
        let path = path.display();
        say(&format!(
            "The data will be encrypted with a new key in {path}: keep a copy of it apart from the data."
        ));
    }
    Ok(key)
}

/// The tokens. Those of a restored backup that had been deleted before stay deleted, and a notice says so.
fn keeper(settings: &Settings, engine: &Engine) -> Result<Keeper, Failure> {
    let keeper = Keeper::open(&settings.data, &settings.marker_folder(), &settings.limits)?;
    match keeper.take_out_deleted() {
        Ok(ids) if ids.is_empty() => {}
        Ok(ids) => engine.notice(&format!(
            "the data folder had tokens that were deleted after it was copied; they stay deleted: {}",
            ids.join(", ")
        )),
        // A full disk: they are left out whenever the file is read.
        Err(error) => engine.notice(&format!("deleted tokens of a restored backup are still in it: {error}")),
    }
    Ok(keeper)
}

/// Makes the first token, if there is none; the file that it is in.
fn first_token(keeper: &Keeper, data: &Path) -> Result<Option<PathBuf>, Failure> {
    if !keeper.is_empty() {
        return Ok(None);
    }
    let token = keeper.create("first", Grant::everything(), SystemClock.now_ms())?;
    let path = data.join(FIRST_TOKEN);
    let mut file = owner_only().write(true).create(true).truncate(true).open(&path)?;
    writeln!(file, "{}", *token.text)?;
    file.sync_all()?;
    Ok(Some(path))
}

fn app(settings: &Settings, engine: Arc<Engine>, keeper: Keeper) -> App {
    let mut parts = AppSettings::new(engine, keeper, Arc::new(SystemClock));
    parts.limits = settings.limits.clone();
    parts.prometheus = settings.prometheus.clone();
    App::new(parts)
}

fn runtime() -> std::io::Result<Runtime> {
    let threads = available_parallelism().map_or(1, NonZero::get).min(ANSWERING_MAX);
    Builder::new_multi_thread().worker_threads(threads).enable_all().thread_name("dpsw-answer").build()
}
