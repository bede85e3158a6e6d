//! The service as a process of its own: the program itself, or the same without durability, which no setting of the program
//! switches off.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dpsw_server::auth::{Grant, Keeper};
use dpsw_server::clock::SystemClock;
use dpsw_server::http::{App, AppSettings, ServeSettings, serve};
use dpsw_server::settings::Settings;
use dpsw_server::{Engine, EngineSettings, Key};
use tokio::net::TcpListener;

/// What this program is told to be the service without durability.
pub(crate) const WITHOUT_DURABILITY: &str = "--without-durability";

const SETTINGS: &str = "dpsw.toml";
const TOKEN: &str = "dpsw-data/admin.token";

/// Limits that do not stand in the way of one client that sends as much as it can, and of many that follow.
const LIMITS: &str = "[limits]\nrequests_per_second = 1_000_000\nrequests_burst = 1_000_000\nconnections = 2048\n\
                      live_clients = 1024\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    On,
    Off,
}

/// A service that runs until it is dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    folder: PathBuf,
}

/// Makes a folder with the settings of these sources.
pub(crate) fn settle(sources: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(SETTINGS), format!("{LIMITS}{sources}")).expect("room");
    folder
}

impl Service {
    /// Starts it in a folder with settings; returns when it listens.
    pub(crate) fn start(folder: &Path, durability: Durability) -> Self {
        let mut command = match durability {
            Durability::On => Command::new(env!("CARGO_BIN_EXE_dpsw-server")),
            Durability::Off => Command::new(std::env::current_exe().expect("this program")),
        };
        let settings = folder.join(SETTINGS);
        match durability {
            Durability::On => command
                .arg("--config")
                .arg(settings)
                .args(["--address", "127.0.0.1:0"])
                .env_remove("DPSW_KEY"),
            Durability::Off => command.arg(WITHOUT_DURABILITY).arg(settings),
        };
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut addresses = lines.map_while(Result::ok).filter_map(|line| {
            line.split_once("listens on http://").and_then(|(_, address)| address.parse().ok())
        });
        let address = addresses.next().expect("it says where it listens");
        let token = fs::read_to_string(folder.join(TOKEN)).expect("the first token").trim().to_owned();
        Self { child, address, token, folder: folder.to_owned() }
    }

    /// The bytes of its memory.
    pub(crate) fn resident(&self) -> u64 {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.child.id())).expect("Linux");
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
        pages.expect("a number") * 4096
    }

    /// How long its threads have run in all.
    pub(crate) fn ran(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("Linux");
        let ran = |task: fs::DirEntry| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
        };
        tasks.flatten().filter_map(ran).sum()
    }

    /// Waits until it has counted what it took and does nothing any more; since when that is so.
    pub(crate) fn quiet(&self) -> Instant {
        loop {
            let (began, ran) = (Instant::now(), self.ran());
            std::thread::sleep(Duration::from_millis(10));
            if self.ran().saturating_sub(ran) < began.elapsed() / 20 {
                return began;
            }
        }
    }

    /// Writes to the disk what it left to the system, so that nobody else waits for that.
    pub(crate) fn flush(&self) {
        let database = fs::File::open(self.database()).expect("its database");
        database.sync_all().expect("a disk");
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join("dpsw-data/dpsw.redb")
    }

    /// Ends it at once, as in a crash.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end();
    }
}

/// Is the service, but commits do not wait for the disk.
pub(crate) fn run_without_durability(settings: &Path) {
    let settings = Settings::load(settings).expect("settings");
    let mut engine = EngineSettings::new(&settings.data, Key::from_bytes([7; 32]));
    engine.is_durable = false;
    let engine = Arc::new(Engine::open(&engine, Arc::new(SystemClock)).expect("a folder"));
    settings.make_sources(&engine);
    let keeper = Keeper::open(&settings.data, &settings.marker_folder(), &settings.limits).expect("tokens");
    let token = keeper.create("first", Grant::everything(), 0).expect("a token");
    fs::write(settings.data.join("admin.token"), &*token.text).expect("room");
    let mut parts = AppSettings::new(engine, keeper, Arc::new(SystemClock));
    parts.limits = settings.limits;
    let app = App::new(parts);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).enable_all().build().expect("threads");
    let listening = async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("listens on http://{}", listener.local_addr().expect("bound"));
        serve(listener, ServeSettings { app, tls: None }, std::future::pending()).await
    };
    runtime.block_on(listening).expect("it answers");
}
