//! The same conversation with two services whose sources are neighbours.

use dpsw::WindowView;
use serde_json::{Value, json};

use crate::client::Reply;
use crate::judge::Findings;
use crate::random::Random;
use crate::world::{START_MS, STEP_MS, Slip, World};

/// What neighbours differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One item is another one, missing, too long, or no text.
    Replaced,
    /// One event is there or not.
    Present,
}

/// Streams, each over a column of its own, so that one row can be changed in each of them by a coin of its own.
const STREAMS: usize = 32;
/// In the last streams the event becomes no item at all; their counters are not guessed from.
const SHAPES: [&str; 4] = ["null", "17", "{\"a\":[1,2]}", "\"LONG\""];
/// ε of each stream.
pub(crate) const EPSILON: f64 = 1.0;
/// Rows of a substream of time, beside the changed ones.
const ROWS: usize = 8;

/// One substream: where the changed events lie, how the rows are cut into batches, and when the service is killed.
struct Round {
    number: u64,
    coins: [bool; STREAMS],
    rows: Vec<usize>,
    cuts: [usize; 2],
    kills: [bool; 4],
    /// How many milliseconds after a step each batch comes to each of the services, where presence is private.
    delays: [[u64; 4]; 2],
}

pub(crate) struct Audit {
    kind: Kind,
    worlds: [World; 2],
    random: Random,
    substream_len: u64,
    pub(crate) findings: Findings,
}

/// What one service said in one round.
#[derive(Default)]
struct Said {
    /// What is not about sealed counters, in the order in which it was asked.
    plain: Vec<String>,
    /// The counters of the two keys in each stream, whenever they were looked at.
    looks: Vec<Vec<[i32; 2]>>,
}

impl Audit {
    pub(crate) fn new(kind: Kind, slip: Slip) -> Self {
        let mut worlds = [slip; 2].map(World::new);
        let mut lens = [0; 2];
        for (world, len) in worlds.iter_mut().zip(&mut lens) {
            make(world, kind);
            *len = view(world, 0).plan().substream_len();
        }
        let findings = Findings::default();
        Self { kind, worlds, random: Random(3), substream_len: lens[0], findings }
    }

    /// Runs so many rounds.
    pub(crate) fn run(mut self, rounds: u64) -> Findings {
        for number in 0..rounds {
            let round = self.round(number);
            let said = [0, 1].map(|side| self.play(&round, side));
            self.compare(&said);
            for (side, said) in said.iter().enumerate() {
                self.judge(&round, side, said);
            }
        }
        self.findings
    }

    fn round(&mut self, number: u64) -> Round {
        let len = match self.kind {
            Kind::Replaced => self.substream_len as usize,
            Kind::Present => ROWS,
        };
        let random = &mut self.random;
        let rows = (0..STREAMS).map(|_| random.below(len as u64) as usize).collect();
        let mut cuts = [0, 1].map(|_| random.below(len as u64) as usize);
        cuts.sort_unstable();
        let coins = std::array::from_fn(|_| random.below(2) == 1);
        let kills = std::array::from_fn(|_| random.below(3) == 0);
        let delays = [0, 1].map(|_| std::array::from_fn(|_| 1 + random.below(STEP_MS - 2)));
        Round { number, coins, rows, cuts, kills, delays }
    }

    /// The rows of a round as one of the two services gets them.
    fn rows(&self, round: &Round, side: usize) -> Vec<String> {
        let plain = match self.kind {
            Kind::Replaced => self.substream_len as usize,
            Kind::Present => ROWS,
        };
        let mut rows = vec![Vec::new(); plain];
        for stream in 0..STREAMS {
            let second = round.coins[stream] ^ (side == 1);
            let item = match (self.kind, second, (stream + SHAPES.len()).checked_sub(STREAMS)) {
                (_, false, _) => "\"a\"".to_owned(),
                (Kind::Present, true, _) => continue,
                (Kind::Replaced, true, None) => "\"b\"".to_owned(),
                (Kind::Replaced, true, Some(shape)) => SHAPES[shape].replace("LONG", &"x".repeat(5000)),
            };
            let field = format!("\"c{stream}\":{item}");
            match self.kind {
                Kind::Replaced => rows[round.rows[stream]].push(field),
                Kind::Present => rows.push(vec![field]),
            }
        }
        rows.into_iter().map(|fields| format!("{{{}}}\n", fields.join(","))).collect()
    }

    /// One service's part of a round.
    fn play(&mut self, round: &Round, side: usize) -> Said {
        match self.kind {
            Kind::Replaced => self.play_by_position(round, side),
            Kind::Present => self.play_by_time(round, side),
        }
    }

    /// The clock goes on, and batches come between its steps, to each service at times of its own. The last batch has one event,
    /// or is not there.
    fn play_by_time(&mut self, round: &Round, side: usize) -> Said {
        let mut rows = self.rows(round, side);
        let first_is_there = !round.coins[0] ^ (side == 1);
        let alone = if first_is_there { vec![rows.remove(ROWS)] } else { Vec::new() };
        let [first, second] = round.cuts;
        let batches = [&rows[..first], &rows[first..second], &rows[second..], &alone].map(<[String]>::concat);
        let (kind, len) = (self.kind, self.substream_len);
        assert!(6 * STEP_MS <= len, "a batch in each step, and two more steps");
        let start_ms = START_MS.next_multiple_of(len) + round.number * len;
        let world = &mut self.worlds[side];
        let mut said = Said::default();
        for (number, batch) in batches.iter().enumerate() {
            let step_ms = start_ms + (1 + number as u64) * STEP_MS;
            world.clock.set(step_ms);
            world.rest();
            said.ask_where_it_stands(world);
            world.clock.set(step_ms + round.delays[side][number]);
            if !batch.is_empty() {
                said.send(world, kind, round.number, number, batch);
            }
            world.clock.set(step_ms + STEP_MS - 1);
            if round.kills[number] {
                restart(world);
                if !batch.is_empty() {
                    said.send(world, kind, round.number, number, batch);
                }
            }
            said.ask_where_it_stands(world);
            if number == 1 {
                said.ask_what_is_open(world);
            }
        }
        // Sealed at the one step, shown at the next.
        for step_ms in [start_ms + len, start_ms + len + STEP_MS] {
            world.clock.set(step_ms);
            world.rest();
        }
        said.look(world, round.number, kind);
        said
    }

    fn play_by_position(&mut self, round: &Round, side: usize) -> Said {
        let rows = self.rows(round, side);
        let [first, second] = round.cuts;
        let batches = [&rows[..first], &rows[first..second], &rows[second..]].map(<[String]>::concat);
        let (kind, len) = (self.kind, self.substream_len);
        let world = &mut self.worlds[side];
        let mut said = Said::default();
        let start_ms = START_MS.next_multiple_of(len) + round.number * len;
        world.clock.set(start_ms);
        if world.slip == Slip::Redrawn {
            world.back_up();
        }
        for (number, batch) in batches.iter().enumerate() {
            said.send(world, kind, round.number, number, batch);
            if number + 1 < batches.len() {
                said.ask_what_is_open(world);
            }
            if round.kills[number] {
                restart(world);
                said.send(world, kind, round.number, number, batch);
            }
        }
        world.clock.set(start_ms + len);
        said.look(world, round.number, kind);
        if world.slip == Slip::Redrawn {
            world.clock.set(start_ms);
            world.restore();
            for (number, batch) in batches.iter().enumerate() {
                said.send(world, kind, round.number, number, batch);
            }
            world.clock.set(start_ms + len);
            said.look(world, round.number, kind);
        } else if round.kills[3] {
            restart(world);
            said.send(world, kind, round.number, 2, &batches[2]);
            said.look(world, round.number, kind);
        }
        said
    }

    /// Neighbours differ in sealed counters and in nothing else.
    fn compare(&mut self, said: &[Said; 2]) {
        let [one, other] = said;
        self.findings.plain += one.plain.len() as u64;
        if let Some((one, other)) = one.plain.iter().zip(&other.plain).find(|(one, other)| one != other) {
            self.findings.blame(REPLIES, || format!("{one}\nagainst\n{other}"));
        }
        if one.plain.len() != other.plain.len() {
            self.findings.blame(REPLIES, || "one said more".to_owned());
        }
    }

    /// What was seen stays, and whoever guesses the coins is not right too often.
    fn judge(&mut self, round: &Round, side: usize, said: &Said) {
        if said.looks.iter().any(|look| *look != said.looks[0]) {
            self.findings.blame(SEALED, || format!("round {}", round.number));
        }
        for stream in 0..STREAMS - SHAPES.len() {
            let second = round.coins[stream] ^ (side == 1);
            let seen = said.looks.iter().map(|look| self.guess(look[stream]));
            let guess = seen.reduce(|one, other| one.filter(|one| Some(*one) == other)).flatten();
            self.findings.guess(guess, second);
        }
    }

    /// Which of the two a guesser takes it for, where all counters agree.
    fn guess(&self, [a, b]: [i32; 2]) -> Option<bool> {
        match self.kind {
            Kind::Present => Some(a < 1),
            Kind::Replaced if 1 <= b && a < 1 => Some(true),
            Kind::Replaced if 1 <= a && b < 1 => Some(false),
            Kind::Replaced => None,
        }
    }
}

pub(crate) const REPLIES: &str = "replies that are not about sealed counters differ between neighbours";
pub(crate) const SEALED: &str = "what was seen of a sealed substream is seen otherwise";

fn make(world: &mut World, kind: Kind) {
    let columns: Value = (0..STREAMS).map(|stream| (format!("c{stream}"), json!("text"))).collect();
    let protects = if kind == Kind::Present { "presence" } else { "event" };
    let source = json!({"name": "web", "protects": protects, "epsilon": 1000, "columns": columns});
    world.post("/v1/sources", "application/json", "", &source.to_string()).expect(201);
    for stream in 0..STREAMS {
        let mut config = json!({"name": format!("s{stream}"), "item": format!("c{stream}"), "window": 60,
                                "epsilon": EPSILON, "keys": {"list": ["a", "b", "c", "d"]}});
        if kind == Kind::Present {
            (config["window"], config["expected"]) = (json!("60s"), json!(60));
        }
        world.post("/v1/sources/web/streams", "application/json", "", &config.to_string()).expect(201);
    }
}

fn restart(world: &mut World) {
    world.kill();
    world.start();
}

fn view(world: &mut World, stream: usize) -> WindowView {
    let reply = world.get(&format!("/v1/streams/s{stream}/view")).expect(200);
    WindowView::from_bytes(&reply.body).expect("a view")
}

/// A reply without what is different in every one.
fn plain(path: &str, reply: &Reply) -> String {
    let head =
        reply.head.lines().filter(|line| !line.starts_with("date:") && !line.starts_with("x-request-id:"));
    let text = reply.text();
    let body = text.lines().filter(|line| !line.starts_with("dpsw_question_seconds"));
    let head = head.filter(|line| !(path == "/metrics" && line.starts_with("content-length")));
    format!("{path}\n{}\n{}", head.collect::<Vec<_>>().join("\n"), body.collect::<Vec<_>>().join("\n"))
}

impl Said {
    fn send(&mut self, world: &mut World, kind: Kind, round: u64, number: usize, batch: &str) {
        let id = format!("round-{round}/{number}");
        let reply = world.post("/v1/sources/web/events", "application/x-ndjson", &id, batch);
        // Where presence is private, whoever sends a batch knows how many events it has, and nobody else learns it.
        match kind {
            Kind::Replaced => self.plain.push(plain("a batch", &reply)),
            Kind::Present => assert!([200, 202].contains(&reply.status), "{}", reply.text()),
        }
    }

    /// What a follower gets now, but for rows, which follow from sealed counters.
    fn ask_where_it_stands(&mut self, world: &mut World) {
        let reply = world.get("/v1/streams/s0/live");
        let text = reply.text();
        if reply.status != 200 {
            return self.plain.push(plain("live", &reply));
        }
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).expect("an event").to_owned();
        let answer: Value = serde_json::from_str(&field("data: ")).expect("an answer");
        self.plain.push(format!("live {} {} {}", field("id: "), answer["window"], answer["covered"]));
    }

    /// Everything that can be asked while the changed events are open.
    fn ask_what_is_open(&mut self, world: &mut World) {
        world.rest();
        for path in [
            "/v1/status",
            "/readyz",
            "/metrics",
            "/v1/sources",
            "/v1/sources/web",
            "/v1/streams",
            "/v1/streams/s0",
            "/v1/streams/s0/privacy",
            "/v1/streams/s0/frequency?item=a&as_of=18446744073709551615",
            "/v1/streams/s0/frequency?item=never-listed",
            "/v1/streams/s0/history?item=a&window=0",
        ] {
            let reply = world.get(path);
            self.plain.push(plain(path, &reply));
        }
        let broken =
            world.post("/v1/sources/web/events", "application/x-ndjson", "", "{\"c0\":\"a\"}\n{\"c0\":");
        self.plain.push(plain("a broken batch", &broken));
    }

    /// Everything that counters are in: the counters of each stream, and of answers what is asked and covered.
    fn look(&mut self, world: &mut World, round: u64, kind: Kind) {
        if kind == Kind::Replaced {
            world.settle();
        }
        let mut look = Vec::new();
        for stream in 0..STREAMS {
            let view = view(world, stream);
            let sealed: Vec<_> =
                view.sealed().filter(|sealed| is_of(&view, sealed.substream(), round, kind)).collect();
            let [only] = &sealed[..] else { panic!("round {round}: {} sealed ranges", sealed.len()) };
            let cells = only.sketch().cells();
            let count = |key: &str| only.cells(key).into_iter().map(|cell| cells[cell]).sum();
            look.push([count("a"), count("b")]);
        }
        self.looks.push(look);
        self.ask_answers(world);
    }

    fn ask_answers(&mut self, world: &mut World) {
        let view = view(world, 0);
        let answer = world.get("/v1/streams/s0/frequency?item=a").expect(200).json();
        let estimate = view.frequency("a").expect("listed");
        let said = answer["items"][0]["estimate"].as_f64().expect("a number");
        assert!((said - estimate.value).abs() < 0.006, "answers are those of the view, {said}: {estimate:?}");
        for field in ["window", "covered", "protects", "epsilon", "delta", "total", "hidden"] {
            self.plain.push(format!("{field} {}", answer[field]));
        }
    }
}

/// Whether a substream is that of a round.
fn is_of(view: &WindowView, substream: u64, round: u64, kind: Kind) -> bool {
    let first = if kind == Kind::Present { START_MS.div_ceil(view.plan().substream_len()) } else { 0 };
    substream == first + round
}
