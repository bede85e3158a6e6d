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

/// Who is let in at a door that is guarded.
pub(crate) const USER: &str = "dpsw-reader";
/// Its password.
pub(crate) const PASSWORD: &str = "open-sesame-7fb1";

/// Whether a broker has guarded doors, beside the open one that producers of the tests take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doors {
    Open,
    Guarded,
}

/// A broker, until it is dropped.
pub(crate) struct Broker {
    pub(crate) kind: Kind,
    doors: Doors,
    folder: TempDir,
    ports: [u16; 4],
    child: Option<Child>,
}

impl Broker {
    /// A broker that takes records; `None`, said loudly, where this machine has none. In CI nothing is skipped.
    pub(crate) fn start(kind: Kind) -> Option<Self> {
        Self::start_with(kind, Doors::Open)
    }

    /// The same with doors that want a password and show a certificate.
    pub(crate) fn start_guarded(kind: Kind) -> Option<Self> {
        Self::start_with(kind, Doors::Guarded)
    }

    fn start_with(kind: Kind, doors: Doors) -> Option<Self> {
        if let Some(missing) = missing(kind) {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing} is not there");
            eprintln!("SKIPPED: {missing} is not there; ./test installs it");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let ports = std::array::from_fn(|_| free_port());
        let mut broker = Self { kind, doors, folder, ports, child: None };
        broker.write_certificate();
        if kind == Kind::Kafka {
            broker.format_kafka();
        }
        broker.start_again();
        Some(broker)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[0])
    }

    /// The door that wants a password and shows a certificate. JetStream has one door for all, and lets those in who are nobody.
    pub(crate) fn guarded_address(&self) -> String {
        let port = if self.kind == Kind::Nats { self.ports[0] } else { self.ports[2] };
        format!("127.0.0.1:{port}")
    }

    /// Kafka's door that wants a password and does not encrypt.
    pub(crate) fn password_address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[3])
    }

    /// The certificate that it shows, as PEM.
    pub(crate) fn certificate(&self) -> String {
        fs::read_to_string(self.path().join("certificate.pem")).expect("a certificate")
    }

    fn write_certificate(&self) {
        let (certificate, key) = certificate();
        for (name, text) in
            [("keystore.pem", key.clone() + &certificate), ("certificate.pem", certificate), ("key.pem", key)]
        {
            fs::write(self.path().join(name), text).expect("a file");
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Stops it, makes or brings back a copy of what it has on the disk, and starts it again.
    pub(crate) fn copy_disk(&mut self, is_back: bool) {
        self.kill();
        let [disk, copy] = ["data", "copy"].map(|name| self.path().join(name));
        let (from, to) = if is_back { (copy, disk) } else { (disk, copy) };
        let _ = fs::remove_dir_all(&to);
        assert!(Command::new("cp").arg("-rp").args([from, to]).status().expect("cp").success());
        self.start_again();
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
                if self.doors == Doors::Guarded {
                    fs::write(self.path().join("nats.conf"), nats_guards()).expect("a file");
                    command.args(["-c", "nats.conf"]);
                }
            }
            Kind::Redis => {
                fs::create_dir_all(folder).expect("a folder");
                command = Command::new("redis-server");
                command.args(["--port", &port, "--bind", "127.0.0.1", "--dir", folder, "--save", ""]);
                command.args(["--appendonly", "yes", "--appendfsync", "always"]);
                if self.doors == Doors::Guarded {
                    self.guard_redis(&mut command);
                }
            }
        }
        command
    }

    fn guard_redis(&self, command: &mut Command) {
        let file = |name| self.path().join(name);
        command.args([
            "--tls-port",
            &self.ports[2].to_string(),
            "--tls-auth-clients",
            "no",
            "--tls-cert-file",
        ]);
        command.arg(file("certificate.pem")).arg("--tls-key-file").arg(file("key.pem"));
        command.arg("--tls-ca-cert-file").arg(file("certificate.pem"));
        command.args(["--user", USER, "on", &format!(">{PASSWORD}"), "~*", "+@all"]);
    }

    /// A door with a password and one with a certificate as well.
    fn kafka_guards(&self) -> String {
        let [_, _, both, password] = self.ports;
        let login = "required";
        let plain = "org.apache.kafka.common.security.plain.PlainLoginModule";
        let scram = "org.apache.kafka.common.security.scram.ScramLoginModule";
        let keystore = self.path().join("keystore.pem");
        format!(
            ",SASL_SSL://127.0.0.1:{both},SASL_PLAINTEXT://127.0.0.1:{password}\n\
            listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN\n\
            listener.name.sasl_plaintext.plain.sasl.jaas.config={plain} {login} user_{USER}=\"{PASSWORD}\";\n\
            listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-256\n\
            listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={scram} {login};\n\
            ssl.keystore.type=PEM\nssl.keystore.location={}\n",
            keystore.display()
        )
    }

    fn format_kafka(&self) {
        let [port, controller, ..] = self.ports;
        let guards = if self.doors == Doors::Guarded { self.kafka_guards() } else { "\n".to_owned() };
        let doors = guards.lines().next().unwrap_or_default();
        let properties = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n\
            listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{doors}\n\
            advertised.listeners=PLAINTEXT://127.0.0.1:{port}{guards}controller.listener.names=CONTROLLER\n\
            listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT\nlog.dirs=data\n\
            offsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
            transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
            transaction.state.log.num.partitions=1\nauto.create.topics.enable=false\n"
        );
        // A broker that was killed may come back when its last life is forgotten: soon.
        let properties = properties + "broker.session.timeout.ms=1000\nbroker.heartbeat.interval.ms=200\n";
        fs::write(self.path().join("server.properties"), properties).expect("a file");
        let mut format = java();
        format.args(["kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ"]);
        format.args(["--add-scram", &format!("SCRAM-SHA-256=[name={USER},password={PASSWORD}]")]);
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

/// A new certificate of this machine, and its key.
pub(crate) fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn nats_guards() -> String {
    format!(
        "authorization {{ users: [ {{ user: nobody, password: nothing }}, {{ user: {USER}, password: \"{PASSWORD}\" }} ] }}\n\
        no_auth_user: nobody\nallow_non_tls: true\n\
        tls {{ cert_file: \"certificate.pem\", key_file: \"key.pem\" }}\n"
    )
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
