//! A topic has one reader: others are refused, and copies of its data are fenced.

use std::process::Command;
use std::time::Duration;

use crate::client::Client;
use crate::exact::{check, client_status, counts, look, source, wait_for_status};
use crate::seen::Seen;
use crate::server::{Broker, Kind};
use crate::service::Home;
use crate::topic::Topic;

/// Whole substreams of the stream that is checked.
const SUBSTREAM: usize = 2_000;
/// Longer than a reader goes without asking whether the topic is still its own.
const LONG: Duration = Duration::from_secs(3);

/// A substream of one key.
fn send(topic: &Topic, key: &str) {
    topic.send(&vec![Some(key); SUBSTREAM]);
}

fn repeated(keys: &[&str]) -> std::collections::BTreeMap<&'static str, u64> {
    counts(keys.iter().flat_map(|key| std::iter::repeat_n(Some(*key), SUBSTREAM)))
}

/// A folder with everything that another one has, also the marker.
fn copy(home: &Home, settings: &str) -> Home {
    let copy = Home::new(settings);
    for name in ["dpsw-data", "dpsw-data.marker", "dpsw-data.key"] {
        let (from, to) = (home.path().join(name), copy.path().join(name));
        let removed = if to.is_dir() { std::fs::remove_dir_all(&to) } else { std::fs::remove_file(&to) };
        drop(removed);
        let done = Command::new("cp").arg("-rp").args([from, to]).status().expect("cp runs");
        assert!(done.success(), "{name}");
    }
    copy
}

/// Another service is refused, also while the first one is down; copies of the data take over once and in one direction.
fn check_owners(kind: Kind) {
    let Some(broker) = Broker::start(kind) else { return };
    let topic = Topic::make(&broker, "visits");
    let settings = source("web", &topic, "", "");
    let home = Home::new(&settings);
    let service = home.start();
    let (mut client, mut seen) = (home.client(&service), Seen::default());
    send(&topic, "p0");
    check(&mut client, "web", &mut seen, SUBSTREAM, &repeated(&["p0"]));

    let stranger = Home::new(&settings);
    let refused = stranger.start();
    let mut asking = stranger.client(&refused);
    wait_for_status(&mut asking, "reads already");
    send(&topic, "p1");
    check(&mut client, "web", &mut seen, 2 * SUBSTREAM, &repeated(&["p0", "p1"]));

    // The first one reads and is idle: what is on the disk is whole. Its copy has all that it has.
    let copied = copy(&home, &settings);
    let other = copied.start();
    wait_for_status(&mut client, "taken over by another copy");
    let mut copied_client = Client::new(&other.address, &home.token);
    send(&topic, "p2");
    check(&mut copied_client, "web", &mut seen, 3 * SUBSTREAM, &repeated(&["p0", "p1", "p2"]));
    std::thread::sleep(LONG);
    check(&mut client, "web", &mut Seen::default(), 2 * SUBSTREAM, &repeated(&["p0", "p1"]));
    service.kill();
    other.kill();
    // The copy has read further: the first one would release otherwise what the copy has shown.
    let service = home.start();
    let mut client = home.client(&service);
    wait_for_status(&mut client, "read further by another copy");
    check(&mut client, "web", &mut Seen::default(), 2 * SUBSTREAM, &repeated(&["p0", "p1"]));
    service.kill();
    let other = copied.start();
    let mut copied_client = Client::new(&other.address, &home.token);
    send(&topic, "p3");
    check(&mut copied_client, "web", &mut seen, 4 * SUBSTREAM, &repeated(&["p0", "p1", "p2", "p3"]));

    assert_eq!(look(&mut asking, "web", &mut Seen::default()).window().end, 0, "a stranger has read nothing");
    assert!(client_status(&mut asking).contains("reads already"));
}

#[test]
fn a_kafka_topic_has_one_reader() {
    check_owners(Kind::Kafka);
}

#[test]
fn a_nats_stream_has_one_reader() {
    check_owners(Kind::Nats);
}

#[test]
fn a_redis_stream_has_one_reader() {
    check_owners(Kind::Redis);
}
