//! A stream without noise, so that what it shows can be held against what the broker has.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dpsw::WindowView;
use serde_json::Value;

use crate::client::{Client, Reply, Request};
use crate::seen::Seen;
use crate::service::Home;
use crate::topic::Topic;

/// The keys that are listed.
pub(crate) const KEYS: [&str; 5] = ["p0", "p1", "p2", "p3", "p4"];
/// How long anybody waits for what should come soon, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(20);

/// A source with one stream whose counts are exact: with ε = 100,000 every draw of noise is zero (the chance of another one is
/// below e^-10000). What stands in `more` comes behind.
pub(crate) fn source(name: &str, topic: &Topic, broker: &str, more: &str) -> String {
    let Topic { kind, address, name: topic } = topic;
    let kind = kind.name();
    format!(
        "[[source]]\nname = '{name}'\nprotects = 'event'\nepsilon = 1e6\ndelta = 1e-6\ncolumns = {{ page = 'text' }}\n\
        [source.broker]\nkind = '{kind}'\naddress = '{address}'\ntopic = '{topic}'\nrouting = 'independent'\n{broker}\n\
        [[source.stream]]\nname = '{name}'\nitem = 'page'\nwindow = 100_000\nretention = 100\nepsilon = 100_000.0\n\
        keys = {{ list = ['p0', 'p1', 'p2', 'p3', 'p4'] }}\n{more}\n"
    )
}

/// How often each listed key is among these items.
pub(crate) fn counts<'i>(items: impl Iterator<Item = Option<&'i str>>) -> BTreeMap<&'static str, u64> {
    let mut counts: BTreeMap<&'static str, u64> = KEYS.iter().map(|key| (*key, 0)).collect();
    for item in items.flatten() {
        KEYS.iter().filter(|key| **key == item).for_each(|key| *counts.get_mut(key).expect("listed") += 1);
    }
    counts
}

/// The page of a document, if it is one.
pub(crate) fn page(value: Option<&str>) -> Option<String> {
    let document: Value = serde_json::from_str(value?).ok()?;
    document["page"].as_str().map(str::to_owned)
}

pub(crate) fn look(client: &mut Client, stream: &str, seen: &mut Seen) -> WindowView {
    let path = format!("/v1/streams/{stream}/view");
    seen.look(stream, &ask(client, &path).expect("it runs").expect(200).body)
}

/// Asks once more where a connection was idle for so long that the service has closed it.
fn ask(client: &mut Client, path: &str) -> std::io::Result<Reply> {
    client.ask(Request::get(path)).or_else(|_| client.ask(Request::get(path)))
}

/// How many records complete the last substream of a stream that has this many.
pub(crate) fn filler(client: &mut Client, stream: &str, records: usize) -> usize {
    let len = look(client, stream, &mut Seen::default()).plan().substream_len();
    let len = usize::try_from(len).expect("short");
    records.next_multiple_of(len) - records
}

/// Waits until a stream shows so many records, and holds that it has those and no others, each in its place.
#[track_caller]
pub(crate) fn check(
    client: &mut Client,
    stream: &str,
    seen: &mut Seen,
    records: usize,
    counts: &BTreeMap<&str, u64>,
) {
    let end = Instant::now() + PATIENCE;
    let view = loop {
        let view = look(client, stream, seen);
        if records as u64 <= view.covered().end {
            break view;
        }
        let covered = view.covered();
        assert!(Instant::now() < end, "{stream} has {covered:?} of {records}: {}", client_status(client));
        std::thread::sleep(PAUSE);
    };
    assert_eq!(view.window().end, records as u64, "{stream}: every record has one place");
    let whole =
        view.as_of(view.covered().end).and_then(|view| view.last(view.window().end)).expect("all is kept");
    for (key, count) in counts {
        let shown = whole.frequency(*key).expect("a listed key").value;
        assert_eq!(shown, *count as f64, "{stream}: {key}");
    }
}

pub(crate) fn client_status(client: &mut Client) -> String {
    client
        .ask(Request::get("/v1/status"))
        .map_or_else(|error| error.to_string(), |reply| reply.json().to_string())
}

/// Waits until the status says this.
#[track_caller]
pub(crate) fn wait_for_status(client: &mut Client, wanted: &str) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let status = client_status(client);
        if status.contains(wanted) {
            return status;
        }
        assert!(Instant::now() < end, "{wanted:?} is never said: {status}");
        std::thread::sleep(PAUSE);
    }
}

/// Waits until somebody has begun to read so often, in all lives of the service together.
pub(crate) fn wait_for_readers(home: &Home, readers: usize) {
    let end = Instant::now() + PATIENCE;
    while home.log().matches("reads its broker").count() < readers {
        assert!(Instant::now() < end, "nobody reads: {}", home.log());
        std::thread::sleep(PAUSE);
    }
}
