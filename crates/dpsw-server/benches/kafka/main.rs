//! How fast a source reads Kafka, beside a consumer that does nothing with what it reads:
//! `cargo bench -p dpsw-server --features kafka --bench kafka`.
//!
//! One broker, one topic with three partitions, and both read the same records in turn, round by round. The service is a process
//! of its own; its records are durable, decoded, counted and sealed when the time is taken. After `--`: `--quick`.

#[expect(dead_code, reason = "the bench needs few of the things that tests do with a service")]
#[path = "../../tests/crash/client.rs"]
mod client;
#[path = "../../tests/crash/random.rs"]
mod random;
#[expect(dead_code, reason = "the bench reads Kafka alone, and kills nothing")]
#[path = "../../tests/broker/server.rs"]
mod server;
#[expect(dead_code, reason = "the bench needs few of the things that tests do with a service")]
#[path = "../../tests/crash/service.rs"]
mod service;

use std::time::{Duration, Instant};

use dpsw::WindowView;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::client::{Client, Request};
use crate::server::{Broker, Kind};
use crate::service::Home;

const PARTITIONS: i32 = 3;
/// Different keys; a stream lists all of them.
const KEYS: u64 = 1_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    Text,
    Json,
}

fn main() {
    let is_quick = std::env::args().any(|word| word == "--quick");
    let (rounds, records) = if is_quick { (3, 1_000_000) } else { (5, 4_000_000) };
    let Some(broker) = Broker::start(Kind::Kafka) else { return };
    for values in [Values::Text, Values::Json] {
        let mut rates: Vec<(f64, f64)> = measure(&broker, values, rounds, records);
        rates.sort_by(|one, other| (one.1 / one.0).total_cmp(&(other.1 / other.0)));
        let (bare, service) = rates[rounds / 2];
        println!(
            "{values:?}: the service {:.2} M records/s, a bare consumer {:.2} M/s, ratio {:.2} (median of {rounds} rounds of {records}; asked: 0.5)",
            service / 1e6,
            bare / 1e6,
            service / bare
        );
    }
}

/// Records per second of a bare consumer and of the service, round by round.
fn measure(broker: &Broker, values: Values, rounds: usize, records: usize) -> Vec<(f64, f64)> {
    let topic = format!("{values:?}").to_lowercase();
    make_topic(broker, &topic);
    let home = home(broker, &topic);
    (1..=rounds)
        .map(|round| {
            let from = ends(broker, &topic);
            produce(broker, &topic, values, records);
            let bare = consume(broker, &topic, &from, records);
            (bare, serve(&home, &topic, round * records, records))
        })
        .inspect(|(bare, service)| eprintln!("{values:?}: bare {bare:.0}/s, service {service:.0}/s"))
        .collect()
}

fn home(broker: &Broker, topic: &str) -> Home {
    let home = Home::new(&format!(
        "[limits]\nrequests_per_second = 1_000_000\nrequests_burst = 1_000_000\n\
        [[source]]\nname = '{topic}'\nprotects = 'event'\nepsilon = 1\ncolumns = {{ page = 'text' }}\n\
        [source.broker]\nkind = 'kafka'\naddress = '{}'\ntopic = '{topic}'\nrouting = 'independent'\nvalues = '{topic}'\n\
        [[source.stream]]\nname = '{topic}'\nitem = 'page'\nwindow = 1_000_000\nepsilon = 1.0\nkeys = {{ file = 'keys' }}\n",
        broker.address()
    ));
    std::fs::write(home.path().join("keys"), (0..KEYS).map(|n| key(n) + "\n").collect::<String>())
        .expect("room");
    home
}

fn key(number: u64) -> String {
    format!("/page/{number:06}")
}

fn config(broker: &Broker) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker.address());
    config
}

fn make_topic(broker: &Broker, topic: &str) {
    let admin: AdminClient<DefaultClientContext> = config(broker).create().expect("settings");
    let topics = [NewTopic::new(topic, PARTITIONS, TopicReplication::Fixed(1))];
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let made = runtime.block_on(admin.create_topics(&topics, &AdminOptions::new())).expect("it answers");
    made.into_iter().for_each(|made| drop(made.expect("a topic")));
}

/// Frequent keys are frequent, and no neighbours.
fn produce(broker: &Broker, topic: &str, values: Values, records: usize) {
    let mut config = config(broker);
    config.set("linger.ms", "20").set("queue.buffering.max.messages", "1000000");
    let producer: ThreadedProducer<DefaultProducerContext> = config.create().expect("settings");
    let mut state = 1_u64;
    for _ in 0..records {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (state >> 11) as f64 / 2_f64.powi(53);
        let key = key(((KEYS as f64).powf(uniform) - 1.0) as u64);
        let value =
            if values == Values::Text { key } else { format!("{{\"page\":\"{key}\",\"status\":200}}") };
        while producer.send(BaseRecord::<(), str>::to(topic).payload(&value)).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    producer.flush(PATIENCE).expect("it runs");
}

/// A consumer that fetches as the service does: with what is usual, a fast one rests for a second whenever its queue is full.
fn consumer(broker: &Broker) -> BaseConsumer {
    let mut config = config(broker);
    config.set("group.id", "bench").set("enable.auto.commit", "false");
    config.set("isolation.level", "read_committed").set("queued.max.messages.kbytes", "32768");
    config.set("queued.min.messages", "50000").set("fetch.queue.backoff.ms", "2");
    config.create().expect("settings")
}

fn ends(broker: &Broker, topic: &str) -> TopicPartitionList {
    let (consumer, mut list) = (consumer(broker), TopicPartitionList::new());
    for partition in 0..PARTITIONS {
        let (_, end) = consumer.fetch_watermarks(topic, partition, PATIENCE).expect("it runs");
        list.add_partition_offset(topic, partition, Offset::Offset(end)).expect("an offset");
    }
    list
}

/// Records per second of a consumer that looks at each, from the first on.
fn consume(broker: &Broker, topic: &str, from: &TopicPartitionList, records: usize) -> f64 {
    let consumer = consumer(broker);
    consumer.assign(from).expect("a topic");
    let (mut began, mut bytes) = (Instant::now(), 0);
    for number in 0..records {
        let message = consumer.poll(PATIENCE).expect("a record").expect("it runs");
        bytes += message.payload_len();
        if number == 0 {
            began = Instant::now();
        }
    }
    assert!(records < bytes, "{topic} has values");
    records as f64 / began.elapsed().as_secs_f64()
}

/// Records per second of the service, from the first that are durable until all whole substreams are sealed.
fn serve(home: &Home, topic: &str, total: usize, records: usize) -> f64 {
    let service = home.start();
    let mut client = home.client(&service);
    let first = wait(|| Some(taken(&mut client, topic)).filter(|taken| 0 < *taken), Duration::from_millis(1));
    let began = Instant::now();
    wait(|| (taken(&mut client, topic) == records).then_some(()), Duration::from_millis(10));
    let path = format!("/v1/streams/{topic}/view");
    wait(
        || {
            let reply = client.ask(Request::get(&path)).expect("it runs").expect(200);
            let view = WindowView::from_bytes(&reply.body).expect("a view");
            let whole = total as u64 / view.plan().substream_len() * view.plan().substream_len();
            (whole <= view.covered().end).then_some(())
        },
        Duration::from_millis(20),
    );
    (records - first) as f64 / began.elapsed().as_secs_f64()
}

/// How many records are durable since the service started.
fn taken(client: &mut Client, topic: &str) -> usize {
    let page = client.ask(Request::get("/metrics")).expect("it runs").expect(200).text();
    let start = format!("dpsw_events_total{{source=\"{topic}\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok()).unwrap_or(0)
}

fn wait<T>(mut look: impl FnMut() -> Option<T>, pause: Duration) -> T {
    let end = Instant::now() + 4 * PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "the service does not read");
        std::thread::sleep(pause);
    }
}
