//! Real brokers on 127.0.0.1, each in a folder of its own: started, killed, and never left behind.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a broker may take to start on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Kafka,
    Nats,
    Redis,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Nats => "nats",
            Self::Redis => "redis",
        }
    }

    /// How many partitions a topic is made with.
    pub(crate) fn partitions(self) -> usize {
        if self == Self::Kafka { 3 } else { 1 }
    }
}

/// A broker, until it is dropped.
pub(crate) struct Broker {
    pub(crate) kind: Kind,
    folder: TempDir,
    ports: [u16; 2],
    child: Option<Child>,
}

impl Broker {
    /// A broker that takes records; `None`, said loudly, where this machine has none. In CI nothing is skipped.
    pub(crate) fn start(kind: Kind) -> Option<Self> {
        if let Some(missing) = missing(kind) {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing} is not there");
            eprintln!("SKIPPED: {missing} is not there; ./test installs it");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mut broker = Self { kind, folder, ports: [free_port(), free_port()], child: None };
        if kind == Kind::Kafka {
            broker.format_kafka();
        }
        broker.start_again();
        Some(broker)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[0])
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Kills it, as a machine that fails: it learns nothing of it.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it with what it has on the disk, and returns when it answers.
    pub(crate) fn start_again(&mut self) {
        self.kill();
        let log = File::options().create(true).append(true).open(self.path().join("log")).expect("a log");
        let mut command = self.command();
        command.current_dir(self.path()).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        self.child = Some(command.spawn().expect("the broker runs"));
        let end = Instant::now() + PATIENCE;
        while !self.answers() {
            let has_ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            assert!(has_ended.is_none() && Instant::now() < end, "{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it takes connections; Redis does so before it has read its data.
    fn answers(&self) -> bool {
        let Ok(mut connection) = TcpStream::connect(self.address()) else { return false };
        let mut pong = [0; 5];
        self.kind != Kind::Redis
            || (connection.write_all(b"PING\r\n").is_ok()
                && connection.read_exact(&mut pong).is_ok()
                && pong == *b"+PONG")
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path().join("log")).unwrap_or_default()).into_owned()
    }

    fn command(&self) -> Command {
        let (port, folder) = (self.ports[0].to_string(), self.path().join("data"));
        let folder = folder.to_str().expect("a name in UTF-8");
        let mut command;
        match self.kind {
            Kind::Kafka => {
                command = java();
                command.args(["kafka.Kafka", "server.properties"]);
            }
            Kind::Nats => {
                command = Command::new("nats-server");
                command.args(["-js", "-sd", folder, "-a", "127.0.0.1", "-p", &port]);
            }
            Kind::Redis => {
                fs::create_dir_all(folder).expect("a folder");
                command = Command::new("redis-server");
                command.args(["--port", &port, "--bind", "127.0.0.1", "--dir", folder, "--save", ""]);
                command.args(["--appendonly", "yes", "--appendfsync", "always"]);
            }
        }
        command
    }

    fn format_kafka(&self) {
        let [port, controller] = self.ports;
        let properties = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
            listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
            advertised.listeners=PLAINTEXT://127.0.0.1:{port}\ncontroller.listener.names=CONTROLLER\n\
            listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\nlog.dirs=data\n\
            offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
            transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
            transaction.state.log.num.partitions=1\nauto.create.topics.enable=false\n"
        );
        // A broker that was killed may come back when its last life is forgotten: soon.
        let properties = properties + "broker.session.timeout.ms=1000\nbroker.heartbeat.interval.ms=200\n";
        fs::write(self.path().join("server.properties"), properties).expect("a file");
        let mut format = java();
        format.args(["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ"]);
        let done =
            format.args(["-c", "server.properties"]).current_dir(self.path()).output().expect("java runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what {:?} said:\n{}", self.kind, self.log());
        }
        self.kill();
    }
}

fn java() -> Command {
    let mut command = Command::new("java");
    // It starts in half the time.
    command.args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp"]);
    command.arg(jars().join("*"));
    command
}

/// Where ./test has put Kafka.
pub(crate) fn jars() -> PathBuf {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kafka/jars");
    std::env::var_os("DPSW_KAFKA_JARS").map_or_else(usual, PathBuf::from)
}

/// What a broker needs and this machine has not.
fn missing(kind: Kind) -> Option<&'static str> {
    let runs = |program: &str, argument: &str| {
        let mut command = Command::new(program);
        command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    match kind {
        Kind::Kafka if !runs("java", "-version") => Some("java"),
        Kind::Kafka if !jars().is_dir() => Some("Apache Kafka"),
        Kind::Nats if !runs("nats-server", "--version") => Some("nats-server"),
        Kind::Redis if !runs("redis-server", "--version") => Some("redis-server"),
        _ => None,
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    listener.local_addr().expect("bound").port()
}
