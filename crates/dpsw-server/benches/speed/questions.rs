//! How long questions take while clients send as much as the service takes; beside an echo, whose time is that of the machine.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::Effort;
use crate::clients::{Connection, Way, get, send};
use crate::events::{Format, KEYS, Load, keys_of};
use crate::rates::service_folder;
use crate::service::{Durability, Service};
use crate::table::Asked::{AtMost, Nothing};
use crate::table::{Rate, Table};

pub(crate) const NAMES: [&str; 2] = ["questions under NDJSON", "questions under Arrow"];

const QUESTIONS: [&str; 2] =
    ["/v1/streams/pages/top?count=10", "/v1/streams/pages/frequency?item=/page/007919"];
/// A question is asked this long after the last answer.
const PAUSE: Duration = Duration::from_millis(2);

pub(crate) fn measure(effort: Effort, table: &Table) {
    let keys = keys_of(KEYS, 400_000, 2);
    let folder = service_folder();
    let service = Service::start(folder.path(), Durability::On);
    let loads = [(Format::Ndjson, 1000, Way::InFlight(1)), (Format::Arrow, 50_000, Way::OneByOne(8))];
    let wanted = |name: &&str| table.wants_any(&[name]);
    for (name, (format, events, way)) in NAMES.into_iter().zip(loads).filter(|(name, _)| wanted(name)) {
        let load = Load::new(format, &keys, events);
        send(&service, &load, way, effort.round);
        let (events, times) = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                step_back();
                send(&service, &load, way, effort.asking)
            });
            let times = ask(&service, effort.asking);
            (sending.join().expect("no panic"), times)
        });
        let rate = Rate { per_second: events as f64 / effort.asking.as_secs_f64(), ran_ns: f64::NAN };
        table.rate(&format!("{name}: the events meanwhile"), rate, None, Nothing);
        let [top, frequency, echo] = times;
        for (question, times) in [("top", top), ("frequency", frequency), ("an echo", echo)] {
            report(&format!("{name}: {question}"), times, table);
        }
    }
}

/// Clients that send would run on other machines: here they get what the service and those who ask leave.
fn step_back() {
    let _ = rustix::process::nice(5);
}

fn report(name: &str, mut times: Vec<Duration>, table: &Table) {
    times.sort_unstable();
    let [median, slow] = [times[times.len() / 2], times[times.len() * 99 / 100]];
    let asked = if name.ends_with("echo") { Nothing } else { AtMost(5.0) };
    table.time(&format!("{name}, median of {}", times.len()), median, Nothing);
    table.time(&format!("{name}, p99"), slow, asked);
}

/// How long each question and the echo took, in turn, until the time is over.
fn ask(service: &Service, time: Duration) -> [Vec<Duration>; 3] {
    let mut connection = Connection::open(service);
    let mut echo = echo();
    let heads = QUESTIONS.map(|path| get(service, path));
    let [mut tops, mut frequencies, mut echoes] = [const { Vec::new() }; 3];
    let until = Instant::now() + time;
    while Instant::now() < until {
        for (head, times) in heads.iter().zip([&mut tops, &mut frequencies]) {
            times.push(timed(|| {
                let (status, body) = connection.ask(head, &[]);
                assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
            }));
        }
        echoes.push(timed(|| {
            let heard = echo.write_all(&[1]).and_then(|()| echo.read_exact(&mut [0]));
            heard.expect("an echo");
        }));
    }
    [tops, frequencies, echoes]
}

fn timed(ask: impl FnOnce()) -> Duration {
    let began = Instant::now();
    ask();
    let took = began.elapsed();
    std::thread::sleep(PAUSE);
    took
}

/// A connection to a thread that sends back every byte.
fn echo() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        stream.set_nodelay(true).expect("a socket");
        let mut byte = [0];
        while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
    });
    stream
}
