//! Service and broker, killed at random moments under load: each record counts once, and what was seen stays as it was.
//!
//! `./soak brokers [KILLS]` runs the same with more kills.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::client::Client;
use crate::exact::{check, counts, filler, look, page, source};
use crate::random::Random;
use crate::seen::Seen;
use crate::server::{Broker, Kind};
use crate::service::{Home, Service};
use crate::topic::{Sender, Topic};
use crate::watch::{Alarm, watch};

/// As noisy as usual, so that noise that is drawn again is seen.
const NOISY: &str = "
[[source.stream]]
name = 'noisy'
item = 'page'
window = 5_000
epsilon = 1.0
keys = { list = ['p0', 'p1', 'p2', 'p3', 'p4', 'k5', 'k6', 'k7', 'k8', 'k9'] }
[[source.stream]]
name = 'noisy-found'
item = 'page'
window = 5_000
epsilon = 2.0
delta = 1e-9
keys = 'found'
[[source.stream]]
name = 'noisy-timed'
item = 'page'
window = '2s'
expected = 20_000
epsilon = 1.0
keys = { list = ['p0', 'p1', 'p2', 'p3', 'p4', 'k5', 'k6', 'k7', 'k8', 'k9'] }
";
const LIMITS: &str = "[limits]\nrequests_per_second = 1_000_000\nrequests_burst = 1_000_000\n";
const STREAMS: [&str; 4] = ["exact", "noisy", "noisy-found", "noisy-timed"];
/// Records that are sent at once.
const SENT: u64 = 60;

struct World<'w> {
    home: &'w Home,
    topic: &'w Topic,
    /// Where the service listens now.
    address: Mutex<String>,
    is_over: AtomicBool,
    /// How many records were acknowledged by the broker.
    sent: AtomicU64,
    /// How often a producer lost its broker.
    lost: AtomicU64,
}

impl World<'_> {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Waits until the broker has taken a good many more records.
    fn wait_for_records(&self) {
        let wanted = self.sent.load(Ordering::Relaxed) + 10 * SENT;
        while self.sent.load(Ordering::Relaxed) < wanted && !self.is_over() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn client(&self) -> Client {
        Client::new(&self.address.lock().expect("no panic"), &self.home.token)
    }
}

/// Some documents, and some records that are none.
fn documents(random: &mut Random) -> Vec<Option<String>> {
    let document = |n| match n {
        0 => Some("{".to_owned()),
        1 => None,
        2 => Some("{\"page\":\"not listed\"}".to_owned()),
        n => Some(format!("{{\"page\":\"p{}\"}}", n % 5)),
    };
    (0..SENT).map(|_| document(random.below(20))).collect()
}

/// Sends without a pause, to a broker that comes and goes. What was perhaps sent is sent no second time: the broker knows what
/// it has.
fn produce(world: &World<'_>, seed: u64) {
    let _alarm = Alarm(&world.is_over);
    let (mut random, mut sender): (_, Option<Sender>) = (Random(seed), None);
    while !world.is_over() {
        let documents = documents(&mut random);
        let documents: Vec<Option<&str>> = documents.iter().map(Option::as_deref).collect();
        let sent = match &mut sender {
            Some(sender) => sender.send(&documents),
            None => world.topic.sender().map(|new| sender = Some(new)),
        };
        match sent {
            Ok(()) => _ = world.sent.fetch_add(SENT, Ordering::Relaxed),
            Err(_) => {
                sender = None;
                world.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills service and broker so often; the service that runs last.
fn kill_often(world: &World<'_>, broker: &mut Broker, mut service: Service, kills: u64) -> Service {
    let mut random = Random(7);
    let mut killed = 0;
    while killed < kills && !world.is_over() {
        world.wait_for_records();
        std::thread::sleep(Duration::from_millis(random.below(600)));
        let (takes_service, takes_broker) = (random.below(10) < 7, random.below(10) < 4);
        if takes_broker {
            broker.kill();
            killed += 1;
            std::thread::sleep(Duration::from_millis(random.below(300)));
        }
        if takes_service {
            service.kill();
            killed += 1;
            // A kill while it starts is a kill as well.
            while killed < kills && random.below(4) == 0 {
                world.home.start_in_vain(&mut random);
                killed += 1;
            }
            service = world.home.start();
            service.address.clone_into(&mut world.address.lock().expect("no panic"));
        }
        if takes_broker {
            broker.start_again();
        }
        if takes_service || takes_broker {
            eprintln!("{:?}: {killed} of {kills} kills", broker.kind);
        }
    }
    service
}

fn check_kills(kind: Kind) {
    let kills = std::env::var("DPSW_KILLS").map_or(10, |kills| kills.parse().expect("a number of kills"));
    let Some(mut broker) = Broker::start(kind) else { return };
    let topic = Topic::make(&broker, "visits");
    let home = Home::new(&(LIMITS.to_owned() + &source("exact", &topic, "values = 'json'", NOISY)));
    let service = home.start();
    let world = World {
        home: &home,
        topic: &topic,
        address: Mutex::new(service.address.clone()),
        is_over: AtomicBool::new(false),
        sent: AtomicU64::new(0),
        lost: AtomicU64::new(0),
    };
    let mut seen: [Seen; STREAMS.len()] = Default::default();
    let service = std::thread::scope(|scope| {
        let _alarm = Alarm(&world.is_over);
        let world = &world;
        let producers = [1, 2].map(|seed| scope.spawn(move || produce(world, seed)));
        let watcher = scope.spawn(|| {
            let _alarm = Alarm(&world.is_over);
            watch(STREAMS, &mut seen, || world.is_over(), || world.client());
        });
        let service = kill_often(world, &mut broker, service, kills);
        world.wait_for_records();
        world.is_over.store(true, Ordering::SeqCst);
        producers.into_iter().for_each(|producer| producer.join().expect("no mistake was found"));
        watcher.join().expect("no mistake was found");
        service
    });
    let mut client = home.client(&service);
    let filler = filler(&mut client, "exact", topic.all().len());
    topic.send(&vec![Some("{\"page\":\"not listed\"}"); filler]);
    let records = topic.all();
    let pages: Vec<Option<String>> = records.iter().map(|value| page(value.as_deref())).collect();
    let counts = counts(pages.iter().map(Option::as_deref));
    check(&mut client, "exact", &mut seen[0], records.len(), &counts);
    let memory = service.memory_max();
    service.kill();
    let service = home.start();
    let mut client = home.client(&service);
    check(&mut client, "exact", &mut seen[0], records.len(), &counts);
    STREAMS.iter().zip(&mut seen).for_each(|(stream, seen)| drop(look(&mut client, stream, seen)));
    let ranges: Vec<usize> = seen.iter().map(Seen::ranges).collect();
    eprintln!(
        "{kind:?}: {kills} kills, {} records, {counts:?}, {ranges:?} sealed ranges in {} looks, a broker lost {} times, \
        {memory:?} bytes of memory",
        records.len(),
        seen.iter().map(|seen| seen.looks).sum::<u64>(),
        world.lost.load(Ordering::Relaxed)
    );
    assert!(ranges.iter().all(|ranges| 3 < *ranges), "{ranges:?}");
}

#[test]
fn every_kafka_record_counts_once_however_often_service_and_broker_are_killed() {
    check_kills(Kind::Kafka);
}

#[test]
fn every_nats_record_counts_once_however_often_service_and_broker_are_killed() {
    check_kills(Kind::Nats);
}

#[test]
fn every_redis_record_counts_once_however_often_service_and_broker_are_killed() {
    check_kills(Kind::Redis);
}
