//! The same events counted in Redis, as people do today: pipelined commands, an append-only file that is synced every second.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use crate::table::Rate;

/// Commands that are sent at a time.
const PIPELINE: usize = 1000;
/// Pipelines in flight.
const IN_FLIGHT: usize = 16;

/// A Redis of its own in a folder of its own, until it is dropped.
pub(crate) struct Redis {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

/// How an event is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counted {
    /// A counter for each key.
    Incr,
    /// A sorted set for each minute: the top of a window can be asked for.
    Zincrby,
}

impl Redis {
    /// Starts it, if it is there.
    pub(crate) fn start() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let address = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a port");
        let mut command = Command::new("redis-server");
        command.args(["--port", &address.port().to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"]).arg(folder.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let redis = Self { child, address, _folder: folder };
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "redis-server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(redis)
    }

    /// Events per second that it counts in so long.
    pub(crate) fn rate(&self, keys: &[String], counted: Counted, time: Duration) -> Rate {
        let pipelines: Vec<String> = keys.chunks_exact(PIPELINE).map(|keys| counted.commands(keys)).collect();
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        let replies = stream.try_clone().expect("a socket");
        let (flying, landed) = sync_channel::<()>(IN_FLIGHT);
        let began = Instant::now();
        let events = std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut lines = Lines { replies, buffer: vec![0; 1 << 16], left: 0 };
                let mut events = 0;
                while landed.recv().is_ok() {
                    lines.skip(PIPELINE * counted.reply_lines());
                    events += PIPELINE as u32;
                }
                events
            });
            for pipeline in pipelines.iter().cycle().take_while(|_| began.elapsed() < time) {
                stream.write_all(pipeline.as_bytes()).expect("it takes commands");
                flying.send(()).expect("somebody reads");
            }
            drop(flying);
            reader.join().expect("no panic")
        });
        Rate { per_second: f64::from(events) / began.elapsed().as_secs_f64(), ran_ns: f64::NAN }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Counted {
    fn commands(self, keys: &[String]) -> String {
        let minute = std::time::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_secs() / 60).to_string();
        let set = format!("pages:{minute}");
        let command = |key: &String| match self {
            Self::Incr => command(&["INCR", key]),
            Self::Zincrby => command(&["ZINCRBY", &set, "1", key]),
        };
        keys.iter().map(command).collect()
    }

    /// Lines of a reply: an integer is one, a text is its length and itself.
    fn reply_lines(self) -> usize {
        match self {
            Self::Incr => 1,
            Self::Zincrby => 2,
        }
    }
}

fn command(words: &[&str]) -> String {
    let words: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{words}", words.matches('$').count())
}

/// Lines of replies, of which only the number matters; an error ends it all.
struct Lines {
    replies: TcpStream,
    buffer: Vec<u8>,
    /// Lines that were read and not yet skipped.
    left: usize,
}

impl Lines {
    fn skip(&mut self, lines: usize) {
        while self.left < lines {
            let len = self.replies.read(&mut self.buffer).expect("replies");
            assert!(0 < len, "redis-server closed the connection");
            let read = &self.buffer[..len];
            assert!(memchr::memchr(b'-', read).is_none(), "redis-server refused a command");
            self.left += memchr::memchr_iter(b'\n', read).count();
        }
        self.left -= lines;
    }
}
