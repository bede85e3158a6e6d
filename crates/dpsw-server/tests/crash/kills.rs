//! Killed at random moments under load: what was acknowledged counts once, and what was seen stays as it was.
//!
//! `./soak crash [KILLS]` runs the same with more kills.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dpsw::WindowView;

use crate::bodies::{Body, KINDS};
use crate::client::{Client, Reply, Request};
use crate::random::Random;
use crate::seen::Seen;
use crate::service::{Home, Service};
use crate::watch::{Alarm, watch};

/// With ε = 100,000 every draw of noise is zero (the chance of another one is below e^-10000): what these streams show can be
/// compared with what was sent. The others are as noisy as usual, so that noise that is drawn again is seen.
const SETTINGS: &str = "
[limits]
requests_per_second = 1_000_000
requests_burst = 1_000_000
[[source]]
name = 'web'
protects = 'event'
epsilon = 1e6
delta = 1e-6
columns = { page = 'text' }
[[source.stream]]
name = 'exact'
item = 'page'
window = 100_000
retention = 100
epsilon = 100_000.0
keys = { list = ['p0', 'p1', 'p2', 'p3', 'p4'] }
[[source.stream]]
name = 'exact-timed'
item = 'page'
window = '10s'
expected = 100_000
retention = 100
epsilon = 100_000.0
keys = { list = ['p0', 'p1', 'p2', 'p3', 'p4'] }
[[source.stream]]
name = 'noisy'
item = 'page'
window = 5_000
epsilon = 1.0
keys = { list = ['p0', 'p1', 'p2', 'p3', 'p4', 'k5', 'k6', 'k7', 'k8', 'k9'] }
[[source.stream]]
name = 'noisy-found'
item = 'page'
window = 20_000
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
const STREAMS: [&str; 5] = ["exact", "exact-timed", "noisy", "noisy-found", "noisy-timed"];
/// The keys that are sent, each by a producer of its own.
const KEYS: [&str; 5] = ["p0", "p1", "p2", "p3", "p4"];

/// How long anybody waits for what should come soon, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long they wait before they ask again.
const PAUSE: Duration = Duration::from_millis(5);

/// What producers, the one who looks, and the one who kills share.
struct World<'w> {
    home: &'w Home,
    /// Where the service listens now.
    address: Mutex<String>,
    /// Producers finish what they began, and send nothing more.
    is_over: AtomicBool,
    /// Somebody has failed: all stop at once.
    has_failed: AtomicBool,
    counts: Counts,
}

/// What happened, for those who read along.
#[derive(Debug, Default)]
struct Counts {
    acknowledged: AtomicU64,
    /// Of these, batches that were sent more than once, because nobody knew whether they had been taken.
    retried: AtomicU64,
    /// Of these, those that had been taken.
    had_been_taken: AtomicU64,
    /// Batches that were sent once more although they had been acknowledged.
    doubled: AtomicU64,
}

impl World<'_> {
    fn client(&self) -> Client {
        Client::new(&self.address.lock().expect("no panic"), &self.home.token)
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst) || self.has_failed()
    }
}

/// The pages of a batch: the producer's own key so often, others between, and one that is missing.
fn pages(producer: usize, number: u64) -> Vec<Option<&'static str>> {
    let mut random = Random(number * 100 + producer as u64);
    let mut pages = vec![Some(KEYS[producer]); own(producer, number) as usize];
    pages.extend((0..random.below(20)).map(|_| Some("not listed")));
    pages.insert(random.below(pages.len() as u64) as usize, None);
    pages
}

/// How often the producer's key is in a batch.
fn own(producer: usize, number: u64) -> u64 {
    1 + Random(number * 31 + producer as u64).below(40)
}

/// One who sends, and what it knows.
struct Producer<'w> {
    world: &'w World<'w>,
    number: usize,
    client: Client,
    /// Batches that were acknowledged, from the first on.
    acknowledged: u64,
}

impl Producer<'_> {
    fn run(mut self) -> u64 {
        let _alarm = Alarm(&self.world.has_failed);
        let mut random = Random(self.number as u64);
        while !self.world.is_over() {
            self.send_next();
            if random.below(20) == 0 && 0 < self.acknowledged {
                let back = 1 + random.below(50.min(self.acknowledged));
                self.send_again(self.acknowledged - back);
            }
        }
        self.acknowledged
    }

    /// Sends the next batch until it is acknowledged.
    fn send_next(&mut self) {
        let Some((reply, tries)) = self.insist(self.acknowledged) else { return };
        let was_taken = self.check(self.acknowledged, &reply);
        assert!(1 < tries || !was_taken, "a new batch was taken for one that came before");
        let counts = &self.world.counts;
        counts.acknowledged.fetch_add(1, Ordering::Relaxed);
        counts.retried.fetch_add(u64::from(1 < tries), Ordering::Relaxed);
        counts.had_been_taken.fetch_add(was_taken.into(), Ordering::Relaxed);
        self.acknowledged += 1;
    }

    /// Sends a batch that was acknowledged once more: it must be known.
    fn send_again(&mut self, number: u64) {
        let Some((reply, _)) = self.insist(number) else { return };
        assert!(self.check(number, &reply), "batch {number} was acknowledged and lost");
        self.world.counts.doubled.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a batch, to whichever service runs, until one answers with more than "later". The reply, and how often the batch may
    /// have arrived; nothing if somebody else has failed.
    fn insist(&mut self, number: u64) -> Option<(Reply, u64)> {
        let (mut tries, end) = (1, Instant::now() + PATIENCE);
        while !self.world.has_failed() {
            match self.send(number) {
                Ok(reply) if ![500, 503].contains(&reply.status) => return Some((reply, tries)),
                refused if end < Instant::now() => {
                    panic!("nobody takes a batch any more: {:?}", refused.map(|reply| reply.text()))
                }
                Ok(reply) => {
                    // Where the outcome is unknown it may have arrived.
                    tries += u64::from(reply.status == 500);
                    std::thread::sleep(PAUSE);
                }
                Err(_) => {
                    tries += 1;
                    std::thread::sleep(PAUSE);
                    self.client = self.world.client();
                }
            }
        }
        None
    }

    fn send(&mut self, number: u64) -> std::io::Result<Reply> {
        let body = Body::new(number % KINDS, &pages(self.number, number));
        let id = format!("producer-{}/{number}", self.number);
        let path = "/v1/sources/web/events";
        self.client.ask(Request { method: "POST", path, headers: &body.headers(&id), body: &body.bytes })
    }

    /// Whether the batch had been taken before.
    fn check(&self, number: u64, reply: &Reply) -> bool {
        let receipt = reply.clone().expect(if reply.status == 200 { 200 } else { 202 }).json();
        assert_eq!(receipt["events"], pages(self.number, number).len());
        assert_eq!(receipt["repeated"], reply.status == 200);
        reply.status == 200
    }
}

/// Kills and starts the service so often, and returns the one that runs last.
fn kill_often(world: &World<'_>, mut service: Service, kills: u64, seed: u64) -> Service {
    let mut random = Random(seed);
    let mut killed = 0;
    while killed < kills && !world.has_failed() {
        std::thread::sleep(Duration::from_millis(random.below(600)));
        service.kill();
        killed += 1;
        // A kill while it starts is a kill as well.
        while killed < kills && random.below(4) == 0 {
            world.home.start_in_vain(&mut random);
            killed += 1;
        }
        service = world.home.start();
        service.address.clone_into(&mut world.address.lock().expect("no panic"));
        if killed % 10 == 0 {
            eprintln!("{killed} of {kills} kills: {:?}", world.counts);
        }
    }
    service
}

/// A whole life with so many kills.
fn check_kills(kills: u64, seed: u64) {
    let home = Home::new(SETTINGS);
    let service = home.start();
    let world = World {
        home: &home,
        address: Mutex::new(service.address.clone()),
        is_over: AtomicBool::new(false),
        has_failed: AtomicBool::new(false),
        counts: Counts::default(),
    };
    let mut seen: [Seen; STREAMS.len()] = Default::default();
    let (service, acknowledged) = std::thread::scope(|scope| {
        let _alarm = Alarm(&world.has_failed);
        let world = &world;
        let producers = [0, 1, 2, 3, 4].map(|number| {
            let producer = Producer { world, number, client: world.client(), acknowledged: 0 };
            scope.spawn(|| producer.run())
        });
        let watcher = scope.spawn(|| {
            let _alarm = Alarm(&world.has_failed);
            watch(STREAMS, &mut seen, || world.is_over(), || world.client());
        });
        let service = kill_often(world, service, kills, seed);
        std::thread::sleep(Duration::from_millis(300));
        world.is_over.store(true, Ordering::SeqCst);
        let acknowledged = producers.map(|producer| producer.join().expect("no mistake was found"));
        watcher.join().expect("what was seen never changed");
        (service, acknowledged)
    });
    let filler = fill(&mut home.client(&service), &acknowledged);
    let events = sent(&acknowledged) + filler;
    compare(&home, &service, &acknowledged, events, &mut seen);
    // Once more from what is on the disk.
    service.kill();
    let service = home.start();
    compare(&home, &service, &acknowledged, events, &mut seen);
    let ranges: Vec<usize> = seen.iter().map(Seen::ranges).collect();
    eprintln!(
        "{kills} kills, {events} events, {:?}, {ranges:?} sealed ranges in {} looks",
        world.counts,
        seen.iter().map(|seen| seen.looks).sum::<u64>()
    );
    assert!(0 < world.counts.retried.load(Ordering::Relaxed), "somebody was interrupted");
    assert!(ranges.iter().all(|ranges| 3 < *ranges), "{ranges:?}");
}

/// How many events all acknowledged batches have.
fn sent(acknowledged: &[u64; 5]) -> u64 {
    let batches = |(producer, batches): (usize, &u64)| {
        (0..*batches).map(move |number| pages(producer, number).len() as u64).collect::<Vec<_>>()
    };
    acknowledged.iter().enumerate().flat_map(batches).sum()
}

/// Sends events that nobody counts until the last substream of the count window is complete, and says how many.
fn fill(client: &mut Client, acknowledged: &[u64; 5]) -> u64 {
    let len = look(client, "exact", &mut Seen::default()).plan().substream_len();
    let events = sent(acknowledged);
    let filler = events.next_multiple_of(len) - events;
    let body = Body::new(0, &vec![Some("not listed"); filler as usize]);
    let path = "/v1/sources/web/events";
    let request = Request { method: "POST", path, headers: &body.headers("filler/1"), body: &body.bytes };
    let reply = client.ask(request).expect("it runs").expect(202).json();
    assert_eq!(reply["events"], filler);
    filler
}

fn look(client: &mut Client, stream: &str, seen: &mut Seen) -> WindowView {
    let reply = client.ask(Request::get(&format!("/v1/streams/{stream}/view"))).expect("it runs").expect(200);
    seen.look(stream, &reply.body)
}

/// Holds the sealed counts of both exact streams against what was acknowledged.
fn compare(home: &Home, service: &Service, acknowledged: &[u64; 5], events: u64, seen: &mut [Seen; 5]) {
    let mut client = home.client(service);
    let [exact, timed, others @ ..] = seen;
    let view = wait(&mut client, "exact", exact, |view| events <= view.covered().end);
    assert_eq!(view.window().end, events, "every event has one position");
    check_counts(&view, acknowledged, "exact");
    // One thread counts a batch in all streams of its source, so all have a time before now, and are sealed when all until now is.
    // That they are acknowledged would not say so: a batch has the time at which it is counted.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let until = u64::try_from(now.as_millis()).expect("a time");
    let view = wait(&mut client, "exact-timed", timed, |view| until <= view.covered().end);
    check_counts(&view, acknowledged, "exact-timed");
    for (stream, seen) in STREAMS[2..].iter().zip(others) {
        look(&mut client, stream, seen);
    }
    check_answer(&mut client, acknowledged, events);
}

/// What can be seen of a stream once this holds.
fn wait(
    client: &mut Client,
    stream: &str,
    seen: &mut Seen,
    is_there: impl Fn(&WindowView) -> bool,
) -> WindowView {
    let end = Instant::now() + PATIENCE;
    loop {
        let view = look(client, stream, seen);
        if is_there(&view) {
            return view;
        }
        assert!(Instant::now() < end, "{stream} goes no further than {:?}", view.covered());
        std::thread::sleep(PAUSE);
    }
}

fn check_counts(view: &WindowView, acknowledged: &[u64; 5], stream: &str) {
    let retained = view.retained();
    let whole = view.as_of(view.covered().end).and_then(|view| view.last(view.window().end - retained.start));
    let whole = whole.expect("all is kept");
    assert_eq!(whole.window().start, view.began(), "{stream}: all is kept");
    for (producer, key) in KEYS.into_iter().enumerate() {
        let exact: u64 = (0..acknowledged[producer]).map(|number| own(producer, number)).sum();
        let shown = whole.frequency(key).expect("a listed key").value;
        assert_eq!(shown, exact as f64, "{stream}: {key}, of {} batches", acknowledged[producer]);
    }
}

/// The same over the door that people use.
fn check_answer(client: &mut Client, acknowledged: &[u64; 5], events: u64) {
    let reply = client
        .ask(Request::get(&format!("/v1/streams/exact/frequency?item=p0&window={events}")))
        .expect("it runs");
    let answer = reply.expect(200).json();
    let exact: u64 = (0..acknowledged[0]).map(|number| own(0, number)).sum();
    assert_eq!(answer["items"][0]["estimate"], exact as f64, "{answer}");
    assert_eq!(answer["total"], events, "{answer}");
}

#[test]
fn what_was_acknowledged_counts_once_and_what_was_seen_never_changes_however_often_it_is_killed() {
    let kills = std::env::var("DPSW_KILLS").map_or(10, |kills| kills.parse().expect("a number of kills"));
    check_kills(kills, 1);
}
