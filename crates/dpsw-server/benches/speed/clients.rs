//! Clients that send as much as the service takes: over one connection with many batches in flight, or over many.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::events::Load;
use crate::service::Service;
use crate::table::Rate;

/// How batches are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// So many connections (HTTP/2), each with [`IN_FLIGHT`] batches in flight.
    InFlight(usize),
    /// So many connections (HTTP/1.1), each with one batch in flight.
    OneByOne(usize),
}

/// Batches of a connection that are sent before the first is acknowledged.
pub(crate) const IN_FLIGHT: usize = 16;
/// A batch that found no room is sent again after this long.
const LATER: Duration = Duration::from_millis(2);

/// Events that are acknowledged in so long.
pub(crate) fn send(service: &Service, load: &Load, way: Way, time: Duration) -> usize {
    let until = Instant::now() + time;
    match way {
        Way::InFlight(connections) => send_in_flight(service, load, connections, until),
        Way::OneByOne(connections) => std::thread::scope(|scope| {
            let clients: Vec<_> = (0..connections)
                .map(|first| scope.spawn(move || send_one(service, load, first, until)))
                .collect();
            clients.into_iter().map(|client| client.join().expect("no panic")).sum()
        }),
    }
}

/// Events per second until all are acknowledged and counted, and the nanoseconds that the service's threads ran for each.
pub(crate) fn rate(service: &Service, load: &Load, way: Way, time: Duration) -> Rate {
    let (began, ran) = (Instant::now(), service.ran());
    let events = send(service, load, way, time) as f64;
    let per_second = events / service.quiet().duration_since(began).as_secs_f64();
    Rate { per_second, ran_ns: (service.ran() - ran).as_secs_f64() * 1e9 / events }
}

/// A connection (HTTP/1.1) on which one asks after the other.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(service: &Service) -> Self {
        let stream = TcpStream::connect(service.address).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        Self { reader: BufReader::new(stream) }
    }

    /// Sends a request; the status of the reply and its body.
    pub(crate) fn ask(&mut self, head: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let stream = self.reader.get_mut();
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("it takes requests");
        let status = self.line();
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut len = 0;
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                len = value.parse().expect("a length");
            }
        }
        let mut body = vec![0; len];
        self.reader.read_exact(&mut body).expect("a body");
        (status, body)
    }

    /// A line of the head or of a stream of events, without its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a reply");
        line.trim_end().to_owned()
    }

    /// Asks without waiting for more than the head.
    pub(crate) fn begin(&mut self, head: &str) {
        self.reader.get_mut().write_all(head.as_bytes()).expect("it takes requests");
    }
}

pub(crate) fn get(service: &Service, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n", service.token)
}

fn post(service: &Service, load: &Load, len: usize) -> String {
    let (token, content_type) = (&service.token, load.format.content_type());
    format!(
        "POST /v1/sources/web/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
        content-type: {content_type}\r\ncontent-length: {len}\r\n\r\n"
    )
}

/// Sends one batch after the other, beginning with this one.
fn send_one(service: &Service, load: &Load, first: usize, until: Instant) -> usize {
    let mut connection = Connection::open(service);
    let heads: Vec<String> = load.bodies.iter().map(|body| post(service, load, body.len())).collect();
    let mut events = 0;
    for batch in (0..load.bodies.len()).cycle().skip(first) {
        if until <= Instant::now() {
            break;
        }
        match connection.ask(&heads[batch], &load.bodies[batch]).0 {
            202 => events += load.events,
            503 => std::thread::sleep(LATER),
            other => panic!("{other}"),
        }
    }
    events
}

/// Sends every batch once.
pub(crate) fn send_all(service: &Service, load: &Load) {
    let mut connection = Connection::open(service);
    for body in load.bodies.iter() {
        while connection.ask(&post(service, load, body.len()), body).0 != 202 {
            std::thread::sleep(LATER);
        }
    }
}

fn send_in_flight(service: &Service, load: &Load, connections: usize, until: Instant) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
    let bodies: Arc<[Bytes]> = load.bodies.iter().map(|body| Bytes::copy_from_slice(body)).collect();
    runtime.block_on(async {
        let connections = (0..connections).map(|_| send_over_one(service, load, &bodies, until));
        futures_util::future::join_all(connections).await.into_iter().sum()
    })
}

async fn send_over_one(service: &Service, load: &Load, bodies: &[Bytes], until: Instant) -> usize {
    let stream = tokio::net::TcpStream::connect(service.address).await.expect("it listens");
    stream.set_nodelay(true).expect("a socket");
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.expect("HTTP/2");
    tokio::spawn(connection);
    let send = async |first: usize| {
        let (mut sender, mut events) = (sender.clone(), 0);
        for body in bodies.iter().cycle().skip(first) {
            if until <= Instant::now() {
                break;
            }
            let reply = sender.send_request(request(service, load, body.clone())).await;
            match reply.expect("a reply").status() {
                StatusCode::ACCEPTED => events += load.events,
                StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(LATER).await,
                other => panic!("{other}"),
            }
        }
        events
    };
    futures_util::future::join_all((0..IN_FLIGHT).map(send)).await.into_iter().sum()
}

fn request(service: &Service, load: &Load, body: Bytes) -> Request<Body> {
    Request::post(format!("http://{}/v1/sources/web/events", service.address))
        .header("authorization", format!("Bearer {}", service.token))
        .header("content-type", load.format.content_type())
        .body(Body::from(body))
        .expect("a request")
}
