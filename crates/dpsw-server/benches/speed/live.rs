//! What a thousand clients cost that follow a stream and hear nothing.

use crate::clients::{Connection, get, send_all};
use crate::events::{Format, KEYS, Load, keys_of};
use crate::rates::service_folder;
use crate::service::{Durability, Service};
use crate::table::Asked::AtMost;
use crate::table::Table;

pub(crate) const NAME: &str = "1,000 clients that follow live: memory for each";
const CLIENTS: usize = 1000;

pub(crate) fn measure(table: &Table) {
    let folder = service_folder();
    let service = Service::start(folder.path(), Durability::On);
    let keys = keys_of(KEYS, 1_200_000, 3);
    send_all(&service, &Load::new(Format::Arrow, &keys, 50_000));
    service.quiet();
    let before = service.resident();
    let _clients: Vec<Connection> = (0..CLIENTS).map(|_| follow(&service)).collect();
    service.quiet();
    let after = service.resident();
    let each = after.saturating_sub(before) as f64 / CLIENTS as f64 / 1024.0;
    let ratio = format!("{} MiB before, {} MiB after", before >> 20, after >> 20);
    table.row(NAME, &format!("{each:.1} KiB"), &ratio, AtMost(64.0), each);
}

/// A client that has its first event.
fn follow(service: &Service) -> Connection {
    let mut connection = Connection::open(service);
    connection.begin(&get(service, "/v1/streams/pages/live"));
    while !connection.line().starts_with("data:") {}
    connection
}
