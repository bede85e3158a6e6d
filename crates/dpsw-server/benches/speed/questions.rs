//! How long questions take while clients send as much as the service takes.

use std::time::{Duration, Instant};

use crate::Effort;
use crate::clients::{Connection, Way, get, send};
use crate::events::{Format, KEYS, Load, keys_of};
use crate::rates::service_folder;
use crate::service::{Durability, Service};
use crate::table::Asked::{AtMost, Nothing};
use crate::table::Table;

pub(crate) const NAMES: [&str; 2] = ["questions under NDJSON", "questions under Arrow"];

const QUESTIONS: [(&str, &str); 2] = [
    ("top", "/v1/streams/pages/top?count=10"),
    ("frequency", "/v1/streams/pages/frequency?item=/page/007919"),
];
/// A question is asked this long after the last answer.
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) fn measure(effort: Effort, table: &Table) {
    let keys = keys_of(KEYS, 400_000, 2);
    let folder = service_folder();
    let service = Service::start(folder.path(), Durability::On);
    let loads = [(Format::Ndjson, 1000, Way::InFlight(16)), (Format::Arrow, 50_000, Way::Connections(8))];
    let wanted = |name: &&str| table.wants_any(&[name]);
    for (name, (format, events, way)) in NAMES.into_iter().zip(loads).filter(|(name, _)| wanted(name)) {
        let load = Load::new(format, &keys, events);
        send(&service, &load, way, effort.round);
        let times = std::thread::scope(|scope| {
            scope.spawn(|| send(&service, &load, way, effort.asking));
            ask(&service, effort.asking)
        });
        for ((question, _), mut times) in QUESTIONS.into_iter().zip(times) {
            times.sort_unstable();
            let [median, slow] = [times[times.len() / 2], times[times.len() * 99 / 100]];
            table.time(&format!("{name}: {question}, median of {}", times.len()), median, Nothing);
            table.time(&format!("{name}: {question}, p99"), slow, AtMost(5.0));
        }
    }
}

/// How long each question took, in turn, until the time is over.
fn ask(service: &Service, time: Duration) -> [Vec<Duration>; 2] {
    let mut connection = Connection::open(service);
    let heads = QUESTIONS.map(|(_, path)| get(service, path));
    let mut times = [Vec::new(), Vec::new()];
    let until = Instant::now() + time;
    while Instant::now() < until {
        for (head, times) in heads.iter().zip(&mut times) {
            let began = Instant::now();
            let (status, body) = connection.ask(head, &[]);
            times.push(began.elapsed());
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
            std::thread::sleep(PAUSE);
        }
    }
    times
}
