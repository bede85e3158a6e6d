//! Brokers that want a password and show a certificate: who is refused is told why and loses nothing, and no secret is seen.

use crate::client::{Client, Request};
use crate::exact::{check, counts, source, wait_for_status};
use crate::seen::Seen;
use crate::server::{Broker, Kind, PASSWORD, USER, certificate};
use crate::service::Home;
use crate::topic::Topic;

/// Whole substreams of the stream that is checked.
const SUBSTREAM: usize = 2_000;
const WRONG: &str = "shut-sesame-22c0";

/// A source that reads at this door, with these settings of it.
fn home(topic: &Topic, door: &str, more: &str) -> Home {
    let guarded = Topic { address: door.to_owned(), ..topic.clone() };
    let access = format!(
        "[[broker]]\naddress = '{door}'\nuser = '{USER}'\npassword = {{ file = 'password' }}\n{more}\n"
    );
    Home::new(&(access + &source("web", &guarded, "", "")))
}

fn write(home: &Home, name: &str, text: &str) {
    std::fs::write(home.path().join(name), text).expect("a file");
}

fn check_counts(client: &mut Client, seen: &mut Seen, keys: &[&str]) {
    let items = keys.iter().flat_map(|key| std::iter::repeat_n(Some(*key), SUBSTREAM));
    check(client, "web", seen, keys.len() * SUBSTREAM, &counts(items));
}

/// Nothing that can be asked for, and no line of the log, has a password.
fn check_secrets(home: &Home, client: &mut Client) {
    let paths = ["/v1/status", "/v1/sources", "/v1/sources/web", "/v1/streams/web", "/metrics", "/readyz"];
    let said = paths.map(|path| client.ask(Request::get(path)).expect("it runs").text());
    for text in said.iter().chain([&home.log()]) {
        assert!(!text.contains(PASSWORD) && !text.contains(WRONG) && !text.contains(USER), "{text}");
    }
}

/// A wrong password is told, and the right one is taken without a restart; what came in between counts once.
fn check_password(broker: &Broker, door: &str, more: &str) {
    let topic = Topic::make(broker, "visits");
    topic.send(&vec![Some("p0"); SUBSTREAM]);
    let home = home(&topic, door, more);
    write(&home, "ca.pem", &broker.certificate());
    write(&home, "password", WRONG);
    let service = home.start();
    let (mut client, mut seen) = (home.client(&service), Seen::default());
    wait_for_status(&mut client, "is refused by its broker");
    check_secrets(&home, &mut client);
    topic.send(&vec![Some("p1"); SUBSTREAM]);
    write(&home, "password", &format!("{PASSWORD}\n"));
    check_counts(&mut client, &mut seen, &["p0", "p1"]);
    check_secrets(&home, &mut client);
    if more.contains("ca.pem") {
        drop(client);
        service.kill();
        check_certificate(broker, &topic, &home, &mut seen);
    }
}

/// A broker with another certificate is not read; with the right one, reading goes on where it stood.
fn check_certificate(broker: &Broker, topic: &Topic, home: &Home, seen: &mut Seen) {
    write(home, "ca.pem", &certificate().0);
    let service = home.start();
    let mut client = home.client(&service);
    topic.send(&vec![Some("p2"); SUBSTREAM]);
    wait_for_status(&mut client, "does not trust its broker");
    write(home, "ca.pem", &broker.certificate());
    check_counts(&mut client, seen, &["p0", "p1", "p2"]);
    check_secrets(home, &mut client);
}

#[test]
fn kafka_is_read_with_the_right_password_alone() {
    let Some(broker) = Broker::start_guarded(Kind::Kafka) else { return };
    check_password(&broker, &broker.password_address(), "");
}

#[cfg(feature = "kafka-tls")]
#[test]
fn kafka_is_read_with_the_right_password_and_certificate_alone() {
    let Some(broker) = Broker::start_guarded(Kind::Kafka) else { return };
    check_password(&broker, &broker.guarded_address(), "sasl = 'scram-sha-256'\ntls = { ca = 'ca.pem' }");
}

#[test]
fn nats_is_read_with_the_right_password_and_certificate_alone() {
    let Some(broker) = Broker::start_guarded(Kind::Nats) else { return };
    check_password(&broker, &broker.guarded_address(), "tls = { ca = 'ca.pem' }");
}

#[test]
fn redis_is_read_with_the_right_password_and_certificate_alone() {
    let Some(broker) = Broker::start_guarded(Kind::Redis) else { return };
    check_password(&broker, &broker.guarded_address(), "tls = { ca = 'ca.pem' }");
}
