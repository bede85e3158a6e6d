//! What can go wrong beside kills: a full disk, a restored backup, a topic that is not there, was made anew or has lost records.

use std::process::Command;
use std::time::{Duration, Instant};

use redis::Commands;

use crate::client::Request;
use crate::exact::{check, counts, look, source, wait_for_readers, wait_for_status};
use crate::seen::Seen;
use crate::server::{Broker, Kind};
use crate::service::Home;
use crate::topic::Topic;

/// Whole substreams of the stream that is checked.
const SUBSTREAM: usize = 2_000;

fn send(topic: &Topic, key: &str) {
    topic.send(&vec![Some(key); SUBSTREAM]);
}

#[cfg(unix)]
#[test]
fn a_disk_that_takes_no_more_loses_and_doubles_no_record() {
    let Some(broker) = Broker::start(Kind::Redis) else { return };
    let topic = Topic::make(&broker, "visits");
    let home = Home::new(&source("web", &topic, "", ""));
    home.start().kill();
    let len = std::fs::metadata(home.path().join("dpsw-data/dpsw.redb")).expect("a database").len();
    let service = home.start_with_files_up_to(len + (64 << 10));
    let long = "x".repeat(500);
    for key in ["p0", "p1", "p2", "p3"] {
        send(&topic, key);
        topic.send(&vec![Some(long.as_str()); SUBSTREAM]);
    }
    wait_for_status(&mut home.client(&service), "cannot keep what it reads");
    service.kill();
    let service = home.start();
    let keys = ["p0", "p1", "p2", "p3"].iter().flat_map(|key| std::iter::repeat_n(Some(*key), SUBSTREAM));
    check(&mut home.client(&service), "web", &mut Seen::default(), 8 * SUBSTREAM, &counts(keys));
}

/// The topic has 200 MB; a reader that read on would hold them.
#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_waits_for_the_disk_holds_a_few_batches_and_not_the_topic() {
    let Some(broker) = Broker::start(Kind::Redis) else { return };
    let topic = Topic::make(&broker, "visits");
    let home = Home::new(&source("web", &topic, "", ""));
    home.start().kill();
    let long = "x".repeat(1_000);
    for _ in 0..100 {
        topic.send(&vec![Some(long.as_str()); SUBSTREAM]);
    }
    let len = std::fs::metadata(home.path().join("dpsw-data/dpsw.redb")).expect("a database").len();
    let service = home.start_with_files_up_to(len + (64 << 10));
    wait_for_status(&mut home.client(&service), "cannot keep what it reads");
    std::thread::sleep(Duration::from_secs(2));
    let memory = service.memory_max().expect("it runs");
    assert!(memory < 120 << 20, "{} MB", memory >> 20);
    service.kill();
}

/// What was shown after the backup is not counted again, although the broker has it still.
#[test]
fn a_restored_backup_goes_on_after_the_end_of_the_topic() {
    let Some(broker) = Broker::start(Kind::Redis) else { return };
    let topic = Topic::make(&broker, "visits");
    let home = Home::new(&source("web", &topic, "", ""));
    let (data, backup) = (home.path().join("dpsw-data"), home.path().join("backup"));
    let copy =
        |from, to| assert!(Command::new("cp").arg("-rp").args([from, to]).status().expect("cp").success());
    send(&topic, "p0");
    let service = home.start();
    let keys = |keys: &[&'static str]| {
        counts(keys.iter().flat_map(|key| std::iter::repeat_n(Some(*key), SUBSTREAM)))
    };
    check(&mut home.client(&service), "web", &mut Seen::default(), SUBSTREAM, &keys(&["p0"]));
    service.kill();
    copy(&data, &backup);
    let service = home.start();
    send(&topic, "p1");
    check(&mut home.client(&service), "web", &mut Seen::default(), 2 * SUBSTREAM, &keys(&["p0", "p1"]));
    service.kill();
    std::fs::remove_dir_all(&data).expect("a folder");
    copy(&backup, &data);
    send(&topic, "p2");
    let service = home.start();
    let mut client = home.client(&service);
    wait_for_status(&mut client, "goes on at 4000");
    wait_for_readers(&home, 3);
    send(&topic, "p3");
    let end = Instant::now() + Duration::from_secs(60);
    let view = loop {
        let view = look(&mut client, "web", &mut Seen::default());
        if 6_000 <= view.covered().end {
            break view;
        }
        assert!(Instant::now() < end, "nothing is read: {}", home.log());
        std::thread::sleep(Duration::from_millis(50));
    };
    let new = view.as_of(view.covered().end).and_then(|view| view.last(view.window().end - 4_000));
    let new = new.expect("all is kept");
    let shown = ["p0", "p1", "p2", "p3"].map(|key| new.frequency(key).expect("listed").value);
    assert_eq!(shown, [0.0, 0.0, 0.0, SUBSTREAM as f64], "what the backup did not know was counted again");
}

#[test]
fn a_topic_that_is_not_there_is_waited_for_and_read_from_its_beginning() {
    for kind in [Kind::Nats, Kind::Kafka] {
        let Some(broker) = Broker::start(kind) else { continue };
        let missing = Topic { kind, address: broker.address(), name: "visits".to_owned() };
        let home = Home::new(&source("web", &missing, "", ""));
        let service = home.start();
        let mut client = home.client(&service);
        wait_for_status(&mut client, "does not have; make the topic");
        client.ask(Request::get("/readyz")).expect("it runs").expect(200);
        let topic = Topic::make(&broker, "visits");
        send(&topic, "p0");
        let p0 = counts(std::iter::repeat_n(Some("p0"), SUBSTREAM));
        check(&mut client, "web", &mut Seen::default(), SUBSTREAM, &p0);
    }
}

/// Numbers begin anew with a topic: its records would be taken for those that were read.
#[test]
fn a_topic_that_was_made_anew_is_not_read_on() {
    let Some(broker) = Broker::start(Kind::Redis) else { return };
    let topic = Topic::make(&broker, "visits");
    let home = Home::new(&source("web", &topic, "", ""));
    send(&topic, "p0");
    let service = home.start();
    let p0 = counts(std::iter::repeat_n(Some("p0"), SUBSTREAM));
    check(&mut home.client(&service), "web", &mut Seen::default(), SUBSTREAM, &p0);
    service.kill();
    let client = redis::Client::open(format!("redis://{}/", broker.address())).expect("an address");
    let mut connection = client.get_connection().expect("it runs");
    let () = connection.del("visits").expect("a key");
    let _: Option<String> = connection.xadd("visits", "1-1", &[("value", "p1")]).expect("an entry");
    let service = home.start();
    let mut client = home.client(&service);
    wait_for_status(&mut client, "stands after the end of its topic");
    check(&mut client, "web", &mut Seen::default(), SUBSTREAM, &p0);
}

/// A broker that fell back to an older disk gets the same records again, under the same numbers, and hands them out again.
#[test]
fn records_that_a_broker_lost_and_got_again_count_once_and_what_was_shown_stays() {
    let Some(mut broker) = Broker::start(Kind::Redis) else { return };
    let topic = Topic::make(&broker, "visits");
    let home = Home::new(&source("web", &topic, "", ""));
    let address = broker.address();
    let add = |part: usize, key: &str| {
        let client = redis::Client::open(format!("redis://{address}/")).expect("an address");
        let mut connection = client.get_connection().expect("it runs");
        for number in part * SUBSTREAM..(part + 1) * SUBSTREAM {
            let id = format!("{}-1", number + 1);
            let _: Option<String> = connection.xadd("visits", id, &[("value", key)]).expect("an entry");
        }
    };
    let keys = |keys: &[&'static str]| {
        counts(keys.iter().flat_map(|key| std::iter::repeat_n(Some(*key), SUBSTREAM)))
    };
    add(0, "p0");
    broker.copy_disk(false);
    add(1, "p1");
    let (service, mut seen) = (home.start(), Seen::default());
    check(&mut home.client(&service), "web", &mut seen, 2 * SUBSTREAM, &keys(&["p0", "p1"]));
    broker.copy_disk(true);
    add(1, "p1");
    add(2, "p2");
    check(&mut home.client(&service), "web", &mut seen, 3 * SUBSTREAM, &keys(&["p0", "p1", "p2"]));
    service.kill();
    let service = home.start();
    check(&mut home.client(&service), "web", &mut seen, 3 * SUBSTREAM, &keys(&["p0", "p1", "p2"]));
}

/// Partitions are read in another order by each reader; what each of them holds counts once.
#[test]
fn partitions_that_come_in_another_order_after_a_restart_count_once_and_what_was_shown_stays() {
    let Some(broker) = Broker::start(Kind::Kafka) else { return };
    let topic = Topic::make(&broker, "visits");
    let home = Home::new(&source("web", &topic, "", ""));
    let keys = ["p0", "p1", "p2"];
    let all = |rounds: usize| {
        counts(keys.iter().flat_map(|key| std::iter::repeat_n(Some(*key), rounds * SUBSTREAM)))
    };
    let mut seen = Seen::default();
    for round in 0..3 {
        let order = [[0, 1, 2], [2, 0, 1], [1, 2, 0]][round];
        for partition in order {
            topic.send_to(partition, keys[partition as usize], SUBSTREAM);
        }
        let service = home.start();
        check(&mut home.client(&service), "web", &mut seen, 3 * (round + 1) * SUBSTREAM, &all(round + 1));
        service.kill();
    }
}

#[test]
fn records_that_were_deleted_before_they_were_read_are_told_and_the_others_are_read() {
    let Some(broker) = Broker::start(Kind::Nats) else { return };
    let topic = Topic::make(&broker, "visits");
    let home = Home::new(&source("web", &topic, "", ""));
    send(&topic, "p0");
    let service = home.start();
    let p0 = counts(std::iter::repeat_n(Some("p0"), SUBSTREAM));
    check(&mut home.client(&service), "web", &mut Seen::default(), SUBSTREAM, &p0);
    service.kill();
    send(&topic, "p1");
    topic.purge();
    send(&topic, "p2");
    let service = home.start();
    let mut client = home.client(&service);
    wait_for_status(&mut client, "no longer has the record that was read last");
    let keys = ["p0", "p2"].iter().flat_map(|key| std::iter::repeat_n(Some(*key), SUBSTREAM));
    check(&mut client, "web", &mut Seen::default(), 2 * SUBSTREAM, &counts(keys));
}

#[test]
fn partitions_that_are_added_are_read_from_their_beginning() {
    let Some(broker) = Broker::start(Kind::Kafka) else { return };
    let topic = Topic::make(&broker, "visits");
    let home = Home::new(&source("web", &topic, "", ""));
    let service = home.start();
    let mut client = home.client(&service);
    send(&topic, "p0");
    let p0 = counts(std::iter::repeat_n(Some("p0"), SUBSTREAM));
    check(&mut client, "web", &mut Seen::default(), SUBSTREAM, &p0);
    topic.grow(5);
    topic.send_to(4, "p1", SUBSTREAM);
    let keys = ["p0", "p1"].iter().flat_map(|key| std::iter::repeat_n(Some(*key), SUBSTREAM));
    check(&mut client, "web", &mut Seen::default(), 2 * SUBSTREAM, &counts(keys));
}

#[test]
fn reading_may_begin_after_what_the_topic_has() {
    for kind in [Kind::Redis, Kind::Nats, Kind::Kafka] {
        let Some(broker) = Broker::start(kind) else { continue };
        let topic = Topic::make(&broker, "visits");
        send(&topic, "p0");
        let home = Home::new(&source("web", &topic, "start = 'newest'", ""));
        let service = home.start();
        wait_for_readers(&home, 1);
        // Killed before it has read anything, it does not begin later still.
        service.kill();
        send(&topic, "p1");
        let service = home.start();
        let p1 = counts(std::iter::repeat_n(Some("p1"), SUBSTREAM));
        check(&mut home.client(&service), "web", &mut Seen::default(), SUBSTREAM, &p1);
    }
}

/// Where presence is private, nothing that can be asked for tells how much was read.
#[test]
fn how_much_was_read_is_not_said_where_presence_is_private() {
    let Some(broker) = Broker::start(Kind::Redis) else { return };
    let topic = Topic::make(&broker, "visits");
    let text = source("web", &topic, "", "").replace("'event'", "'presence'");
    let text = text.replace("window = 100_000", "window = '1s'\nexpected = 1_000");
    let home = Home::new(&text);
    let service = home.start();
    let mut client = home.client(&service);
    send(&topic, "p0");
    let end = Instant::now() + Duration::from_secs(60);
    let top = "/v1/streams/web/top?window=100s";
    while !client.ask(Request::get(top)).expect("it runs").text().contains("p0") {
        assert!(Instant::now() < end, "it is never counted");
        std::thread::sleep(Duration::from_millis(50));
    }
    // As a number of its own: times in milliseconds end in any digits.
    let says_how_much = |text: &str| text.split(|c: char| !c.is_ascii_digit()).any(|number| number == "2000");
    assert!(says_how_much("events: 2000."));
    for path in ["/metrics", "/v1/status", "/v1/sources", "/v1/sources/web"] {
        let said = client.ask(Request::get(path)).expect("it runs").expect(200).text();
        assert!(!says_how_much(&said) && !said.contains("events_total{"), "{path}: {said}");
    }
    assert!(!says_how_much(&home.log()), "{}", home.log());
}
