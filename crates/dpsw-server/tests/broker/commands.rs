//! The commands of the page for operators, run as they stand against real brokers.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::exact::{check, counts, source, wait_for_readers};
use crate::seen::Seen;
use crate::server::{Broker, Kind, jars};
use crate::service::Home;
use crate::topic::Topic;

const OPERATE: &str = include_str!("../../../../docs/guide/operate.md");
/// How long all commands of a section may take, in seconds, before they are ended.
const PATIENCE: &str = "120";

/// The shell blocks of a section, as one script.
fn script(section: &str) -> String {
    let rest = OPERATE.split(&format!("\n### {section}\n")).nth(1).expect("a section");
    let section = rest.split("\n##").next().expect("a section");
    let blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.collect::<Vec<_>>().join("\n")
}

/// What a person types who looks at each answer: the next line comes when the records are counted.
fn by_hand(script: &str) -> String {
    let line = |line: &str| match line.ends_with("/top") {
        true => format!("until {line} >top; grep -q '\"item\":\"/cart\"' top; do sleep 0.1; done\n"),
        false => format!("{line}\n"),
    };
    script.lines().map(line).collect()
}

/// Kafka's own commands, as its distribution has them.
fn write_kafka_commands(folder: &Path) {
    for (name, class) in
        [("kafka-topics.sh", "TopicCommand"), ("kafka-console-producer.sh", "ConsoleProducer")]
    {
        let path = folder.join(name);
        let class = format!("org.apache.kafka.tools.{class}");
        let text = format!(
            "#!/bin/sh\nexec java -Xmx128m -cp '{}/*' {class} \"$@\" 2>>kafka-tools.log\n",
            jars().display()
        );
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("a file");
    }
}

/// Runs the commands of a section; afterwards another service can claim the topic where they gave it away.
fn check_commands(kind: Kind, section: &str, port: u16) {
    let Some(broker) = Broker::start(kind) else { return };
    if kind == Kind::Nats {
        // Whose own command for this is not everywhere.
        Topic::make(&broker, "visits").send(&vec![Some("/cart"); 20_000]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    write_kafka_commands(folder.path());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let service = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let commands = by_hand(&script(section)).replace(&format!("127.0.0.1:{port}"), &broker.address());
    let commands = commands.replace("127.0.0.1:7878", &service);
    assert_eq!(commands.matches("dpsw-server --config").count(), 1, "{commands}");
    let commands =
        format!("set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{commands}\ncat top\n");
    let programs = Path::new(env!("CARGO_BIN_EXE_dpsw-server")).parent().expect("a folder").display();
    let path =
        format!("{programs}:{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("timeout");
    command.args([PATIENCE, "bash", "-c", &commands]).current_dir(folder.path());
    let output = command.env("PATH", path).env_remove("DPSW_KEY").output().expect("a shell runs");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let log = std::fs::read(folder.path().join(format!("{}.log", kind.name()))).unwrap_or_default();
    assert!(output.status.success(), "{}\n{}\n{}", said(&output.stdout), said(&output.stderr), said(&log));
    assert!(said(&output.stdout).contains("\"item\":\"/cart\""), "{}", said(&output.stdout));
    if kind != Kind::Nats {
        check_claim_is_gone(&Topic { kind, address: broker.address(), name: "visits".to_owned() });
    }
}

/// A stranger may read what was given away, from its end on.
fn check_claim_is_gone(topic: &Topic) {
    let home = Home::new(&source("web", topic, "start = 'newest'", ""));
    let service = home.start();
    wait_for_readers(&home, 1);
    topic.send(&vec![Some("p0"); 2_000]);
    let p0 = counts(std::iter::repeat_n(Some("p0"), 2_000));
    check(&mut home.client(&service), "web", &mut Seen::default(), 2_000, &p0);
}

#[test]
fn the_commands_for_kafka_run_as_they_stand() {
    check_commands(Kind::Kafka, "Kafka", 9092);
}

#[test]
fn the_commands_for_nats_run_as_they_stand() {
    check_commands(Kind::Nats, "NATS JetStream", 4222);
}

#[test]
fn the_commands_for_redis_run_as_they_stand() {
    check_commands(Kind::Redis, "Redis streams", 6379);
}
