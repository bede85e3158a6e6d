//! How long a start takes after a crash.

use std::time::Instant;

use crate::clients::{Connection, get, send_all};
use crate::events::{Format, Load, key_lines, keys_of};
use crate::service::{Durability, Service, settle};
use crate::table::Asked::{AtMost, Nothing};
use crate::table::{Asked, Table};

pub(crate) const NAMES: [&str; 2] =
    ["start after a crash, 100 streams x 20 substreams", "start after a crash, one stream of 1,000,000 keys"];

struct Case {
    name: &'static str,
    streams: usize,
    window: usize,
    keys: u64,
    /// Windows that are kept.
    retention: u32,
    asked: Asked,
}

pub(crate) fn measure(table: &Table) {
    let [many, large] = NAMES;
    let cases = [
        Case { name: many, streams: 100, window: 100_000, keys: 1000, retention: 4, asked: AtMost(2000.0) },
        Case { name: large, streams: 1, window: 1_000_000, keys: 1_000_000, retention: 1, asked: Nothing },
    ];
    cases.into_iter().filter(|case| table.wants_any(&[case.name])).for_each(|case| case.measure(table));
}

impl Case {
    fn measure(&self, table: &Table) {
        let folder = settle(&self.sources());
        std::fs::write(folder.path().join("keys"), key_lines(self.keys)).expect("room");
        let service = Service::start(folder.path(), Durability::On);
        let events = self.window * (self.retention as usize + 1) + self.window / 7;
        send_all(&service, &Load::new(Format::Arrow, &keys_of(self.keys, events, 4), self.window / 20));
        service.quiet();
        let bytes = std::fs::metadata(service.database()).map_or(0, |file| file.len());
        service.kill();
        let began = Instant::now();
        let service = Service::start(folder.path(), Durability::On);
        let listens = began.elapsed();
        let mut connection = Connection::open(&service);
        for stream in 0..self.streams {
            let (status, _) = connection.ask(&get(&service, &format!("/v1/streams/pages-{stream}/top")), &[]);
            assert_eq!(status, 200);
        }
        table.time(&format!("{}: all answer", self.name), began.elapsed(), self.asked);
        table.time(&format!("{}: it listens", self.name), listens, Nothing);
        let size = format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        table.row(&format!("{}: the database", self.name), &size, "", Nothing, 0.0);
    }

    fn sources(&self) -> String {
        let Self { window, retention, .. } = self;
        let stream = |number: usize| {
            format!(
                "[[source.stream]]\nname = 'pages-{number}'\nitem = 'page'\nwindow = {window}\nepsilon = 1.0\n\
                retention = {retention}\nkeys = {{ file = 'keys' }}\n"
            )
        };
        let streams: String = (0..self.streams).map(stream).collect();
        format!(
            "[[source]]\nname = 'web'\nprotects = 'event'\nepsilon = 1000\ncolumns = {{ page = 'text' }}\n{streams}"
        )
    }
}
