//! `dpsw demo --serve`: the service with a living stream, to try its questions on.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::commands::demo::shop::Visits;
use crate::commands::serve;
use crate::fault::{Fault, Kind};
use crate::interrupt;
use crate::show::output::print;

/// A source whose streams share its budget: a window of requests and one of time. The address is any that is free.
const SETTINGS: &str = r#"address = "127.0.0.1:0"
data = "data"
prometheus = ["pages"]

[[source]]
name = "shop"
protects = "event"
epsilon = 2.0
delta = 1e-9
columns = { page = "text", status = "integer" }

[[source.stream]]
name = "pages"
item = "page"
window = 20_000
epsilon = 1.0
keys = "found"
"#;
/// It begins after the first requests, which come all at once: their rate would be taken for that of the minute to come.
const MINUTE: &str = r#"{"name": "minute", "item": "page", "window": "1m", "expected": 120000, "epsilon": 1.0, "keys": "found"}"#;
const SETTINGS_FILE: &str = "demo.toml";
/// Requests that come at the start, so that there is something to ask for at once.
const FIRST: u64 = 30_000;
/// Requests of a batch, and the time between two: about 2,000 per second.
const BATCH: u64 = 200;
const PAUSE: Duration = Duration::from_millis(100);

/// Runs until it is interrupted, which is how it is meant to end.
pub(crate) fn run(data: Option<&Path>) -> Result<()> {
    let folder = Folder::new(data)?;
    fs::write(folder.path.join(SETTINGS_FILE), SETTINGS)?;
    let service = Service::start(&folder.path)?;
    let fed = feed(&service, &folder);
    fed.and(service.end())
}

fn feed(service: &Service, folder: &Folder) -> Result<()> {
    let mut visits = Visits::new();
    let mut post = Post::to(&service.address, "/v1/sources/shop/events", &service.token)?;
    let mut send = |batch: String| post.send(&batch).map_err(|error| service.failed(&error));
    send(visits.batch(FIRST))?;
    let mut streams = Post::to(&service.address, "/v1/sources/shop/streams", &service.token)?;
    streams.make(MINUTE).map_err(|error| service.failed(&error))?;
    print(&greeting(service, folder))?;
    while !interrupt::is_requested() {
        let started = Instant::now();
        send(visits.batch(BATCH))?;
        thread::sleep(PAUSE.saturating_sub(started.elapsed()));
    }
    Ok(())
}

fn greeting(Service { address, token, .. }: &Service, Folder { path, is_temporary }: &Folder) -> String {
    let stream = format!("-H 'Authorization: Bearer {token}' 'http://{address}/v1/streams");
    let left = if *is_temporary { "leaves nothing behind" } else { "keeps the folder" };
    format!(
        "A made-up shop sends 2,000 requests per second to a service at http://{address}
Its token is {token}

Open the dashboard, which takes the token out of the address at once:
  http://{address}/#stream=pages&token={token}

Or from another terminal, ask for
the most frequent pages of the last 20,000 requests, and of the last minute:
  curl {stream}/pages/top?count=5'
  curl {stream}/minute/top?count=5'
how often one page was asked for, as it changes, and as Prometheus reads it:
  curl {stream}/pages/frequency?item=/summer-sale'
  curl -N {stream}/pages/live?count=5'
  curl {stream}/pages/prometheus?count=5'
and what is promised to whoever sends a request:
  curl {stream}/pages/privacy'

Everything lies in {}. Ctrl-C ends this and {left}.
",
        path.display()
    )
}

/// The running service. It ends with its standard input, so also if this program is killed.
struct Service {
    child: Child,
    input: Option<ChildStdin>,
    address: String,
    token: String,
    last_words: LastWords,
}

impl Service {
    fn start(folder: &Path) -> Result<Self> {
        let mut command = command(folder)?;
        let mut child = command.spawn().map_err(|error| serve::unstarted(&command, error))?;
        let input = child.stdin.take();
        let last_words = LastWords::of(child.stderr.take().context("it has a pipe")?);
        let stdout = BufReader::new(child.stdout.take().context("it has a pipe")?);
        let mut service = Self { child, input, address: String::new(), token: String::new(), last_words };
        let mut lines = stdout.lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("listens on http://")?.1.to_owned()));
        service.address = address.ok_or_else(|| service.failed("it does not listen"))?;
        let token = folder.join("data/admin.token");
        let text = fs::read_to_string(&token);
        service.token =
            text.with_context(|| format!("{} cannot be read", token.display()))?.trim().to_owned();
        Ok(service)
    }

    fn failed(&self, why: impl std::fmt::Display) -> anyhow::Error {
        Fault::of(
            Kind::Failure,
            format!("the service failed: {why:#}; it last said: {}", self.last_words.text()),
        )
    }

    /// Lets it save everything and end.
    fn end(mut self) -> Result<()> {
        drop(self.input.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(self.failed(status)) }
    }
}

fn command(folder: &Path) -> Result<Command> {
    let mut command = serve::program()?;
    command.arg("--end-with-stdin").arg("--config").arg(folder.join(SETTINGS_FILE)).env_remove("DPSW_KEY");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // An interrupt at the terminal is for this program, which then ends the service.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    Ok(command)
}

/// The newest line of the service's log.
struct LastWords(Arc<Mutex<String>>);

impl LastWords {
    fn of(log: impl Read + Send + 'static) -> Self {
        let newest = Arc::<Mutex<String>>::default();
        let kept = Arc::clone(&newest);
        thread::spawn(move || {
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
        });
        Self(newest)
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The folder of a demo. A temporary one goes when the demo does.
struct Folder {
    path: PathBuf,
    is_temporary: bool,
}

impl Folder {
    fn new(named: Option<&Path>) -> Result<Self> {
        let temporary = || std::env::temp_dir().join(format!("dpsw-demo-{}", std::process::id()));
        let path = named.map_or_else(temporary, Path::to_owned);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // A temporary folder must be new: one that is there belongs to somebody else.
        let made = builder.recursive(named.is_some()).create(&path);
        made.with_context(|| format!("the folder {} cannot be made", path.display()))?;
        Ok(Self { path, is_temporary: named.is_none() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the longest answer that is read.
const ANSWER_MAX: u64 = 64 * 1024;

/// A connection to the service, on which batches are sent one after the other.
struct Post {
    connection: BufReader<TcpStream>,
    /// All of a request but the length of its body.
    head: String,
}

impl Post {
    fn to(address: &str, path: &str, token: &str) -> Result<Self> {
        let connection = TcpStream::connect(address).context("the service does not answer")?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        Ok(Self { connection: BufReader::new(connection), head })
    }

    /// Sends a batch and waits until it is durable.
    fn send(&mut self, batch: &str) -> Result<()> {
        self.ask("application/x-ndjson", batch, &[" 202 "])
    }

    /// Makes what is described, unless it is there.
    fn make(&mut self, described: &str) -> Result<()> {
        self.ask("application/json", described, &[" 201 ", " 409 "])
    }

    fn ask(&mut self, content: &str, body: &str, wanted: &[&str]) -> Result<()> {
        let request =
            format!("{}Content-Type: {content}\r\nContent-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.connection.get_mut().write_all(request.as_bytes())?;
        let (status, body) = self.answer()?;
        if wanted.iter().any(|wanted| status.contains(wanted)) {
            Ok(())
        } else {
            bail!("the service replied {status}: {body}")
        }
    }

    fn answer(&mut self) -> Result<(String, String)> {
        let status = self.line()?;
        let mut len = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                len = value.trim().parse().context("the service says no length")?;
            }
        }
        let mut body = String::new();
        self.connection.by_ref().take(len.min(ANSWER_MAX)).read_to_string(&mut body)?;
        Ok((status, body))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.connection.by_ref().take(ANSWER_MAX).read_line(&mut line)?;
        if read == 0 { bail!("the service ended the connection") } else { Ok(line.trim_end().to_owned()) }
    }
}
