//! What records are written like, and what becomes of those that nobody can read.

use crate::client::Request;
use crate::exact::{check, counts, filler, page, source};
use crate::seen::Seen;
use crate::server::{Broker, Kind};
use crate::service::Home;
use crate::topic::Topic;

/// Texts, with a missing value and one that is too long among them.
fn texts() -> Vec<Option<String>> {
    let text = |n: usize| match n % 9 {
        7 => None,
        8 => Some("x".repeat(70_000)),
        rest => Some(format!("p{rest}")),
    };
    (0..3_000).map(text).collect()
}

/// Documents, with some among them that are none.
fn documents() -> Vec<Option<String>> {
    let document = |n: usize| match n % 11 {
        5 => Some("{\"page\": ".to_owned()),
        6 => Some("[]".to_owned()),
        7 => None,
        8 => Some(String::from_utf8_lossy(&[0xff, 0xfe]).into_owned()),
        9 => Some("{\"page\":{\"page\":\"p1\"}}".to_owned()),
        10 => Some("{\"page\":\"\\u0070\\u0032\"}".to_owned()),
        rest => Some(format!("{{\"other\":[1,{{}}],\"page\":\"p{rest}\"}}")),
    };
    (0..3_000).map(document).collect()
}

fn borrowed(values: &[Option<String>]) -> Vec<Option<&str>> {
    values.iter().map(Option::as_deref).collect()
}

/// Texts, documents and documents inside documents; the service is stopped half-way, and goes on where it stood.
fn check_values(kind: Kind) {
    let Some(broker) = Broker::start(kind) else { return };
    let topics = ["texts", "documents", "nested"].map(|name| Topic::make(&broker, name));
    let nested = "values = 'json'\nfields = { page = '/visits/1/page' }";
    let settings = [
        source("texts", &topics[0], "", ""),
        source("documents", &topics[1], "values = 'json'", ""),
        source("nested", &topics[2], nested, ""),
    ];
    let (texts, documents) = (texts(), documents());
    let outer = |inner: &Option<String>| inner.as_ref().map(|inner| format!("{{\"visits\":[0,{inner}]}}"));
    let outer: Vec<Option<String>> = documents.iter().map(outer).collect();
    let sent = [&texts, &documents, &outer];
    let half = texts.len() / 2;
    topics.iter().zip(sent).for_each(|(topic, values)| topic.send(&borrowed(&values[..half])));
    let home = Home::new(&settings.concat());
    home.start().kill();
    drop(home.start());
    topics.iter().zip(sent).for_each(|(topic, values)| topic.send(&borrowed(&values[half..])));
    let service = home.start();
    let mut client = home.client(&service);
    for (stream, topic) in ["texts", "documents", "nested"].into_iter().zip(&topics) {
        let filler = filler(&mut client, stream, texts.len());
        topic.send(&vec![Some("not listed"); filler]);
        let pages: Vec<Option<String>> = match stream {
            "texts" => texts.clone(),
            _ => documents.iter().map(|value| page(value.as_deref())).collect(),
        };
        let counts = counts(pages.iter().map(Option::as_deref));
        check(&mut client, stream, &mut Seen::default(), texts.len() + filler, &counts);
    }
    let metrics = client.ask(Request::get("/metrics")).expect("it runs").expect(200).text();
    assert!(metrics.contains("dpsw_events_total{source=\"texts\"}"), "{metrics}");
    let sent = Request {
        method: "POST",
        path: "/v1/sources/texts/events",
        headers: &[("Content-Type", "text/plain")],
        body: b"p0",
    };
    let refused = client.ask(sent).expect("it runs").expect(409).text();
    assert!(refused.contains("has-broker"), "{refused}");
    assert!(!home.log().contains("visits") && !home.log().contains("p0"), "{}", home.log());
}

#[test]
fn kafka_values_are_items_in_their_places_whether_they_can_be_read_or_not() {
    check_values(Kind::Kafka);
}

#[test]
fn nats_values_are_items_in_their_places_whether_they_can_be_read_or_not() {
    check_values(Kind::Nats);
}

#[test]
fn redis_values_are_items_in_their_places_whether_they_can_be_read_or_not() {
    check_values(Kind::Redis);
}

/// Records as long as brokers take them, far more than there is memory for: each is a null item in its place, and those behind count.
fn check_long_values(kind: Kind) {
    let Some(broker) = Broker::start(kind) else { return };
    let topic = Topic::make(&broker, "long");
    let (long, len) = ("x".repeat(900_000), 400);
    let mut sender = topic.sender().expect("it runs");
    for _ in 0..len / 8 {
        sender.send(&[Some(&long[..]); 8]).expect("it runs");
    }
    topic.send(&[Some("p1"); 100]);
    let home = Home::new(&source("long", &topic, "", ""));
    let service = home.start_with_memory(700 << 20);
    let mut client = home.client(&service);
    let filler = filler(&mut client, "long", len + 100);
    topic.send(&vec![Some("not listed"); filler]);
    let counts = counts((0..100).map(|_| Some("p1")));
    check(&mut client, "long", &mut Seen::default(), len + 100 + filler, &counts);
    println!("{kind:?}: {:?} MiB", service.memory_max().map(|bytes| bytes >> 20));
}

#[test]
fn nats_records_of_any_length_take_little_memory() {
    check_long_values(Kind::Nats);
}

#[test]
fn redis_records_of_any_length_take_little_memory() {
    check_long_values(Kind::Redis);
}
