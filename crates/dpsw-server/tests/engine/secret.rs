//! Nothing that was sent can be read on the disk or in the log, and nobody else may look.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::{Rig, id_of, pages, send, view};

const PLANTED: &str = "planted-key-7f3a";

/// Keeps every line of the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = self.0.lock().expect("no panic");
        event.record(&mut Line(&mut text));
        text.push('\n');
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn files(folder: &Path, take: &mut impl FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        take(&entry.path());
        if entry.path().is_dir() {
            files(&entry.path(), take);
        }
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn what_was_sent_stands_nowhere_in_the_files_or_the_log() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).expect("no other test keeps the log");
    let rig = Rig::new();
    let source = "name = 'web'\nprotects = 'users'\nitems_per_user = 1\nuser_column = 'user'\nepsilon = 1000
        delta = 1e-6\ncolumns = { page = 'text' }";
    let stream = "name = 'quinces'\nitem = 'page'\nwindow = 1000\nepsilon = 200\nkeys = 'found'";
    let engine = rig.with(source, &[stream]);
    for batch in 0..60 {
        let users = (0..50).map(|user| Some(format!("{PLANTED}-{batch}-{user}"))).collect();
        let events = pages(vec![PLANTED; 50]).with_users(users).expect("as many");
        send(&engine, id_of(PLANTED, &format!("{PLANTED}/{batch}")), events);
    }
    let published = view(&engine, "quinces");
    assert_eq!(
        published.view.top(3).expect("found keys").len(),
        1,
        "it was found, and so it is in the state"
    );
    let debug = format!("{engine:?} {:?} {:?}", engine.health(), engine.sources());
    assert!(!debug.contains(PLANTED));
    drop(engine);
    let engine = rig.open();
    send(&engine, None, pages([PLANTED]).with_users([Some("u")].into_iter().collect()).expect("one"));
    let mut bytes_in_all = 0;
    files(rig.folder.path(), &mut |path| {
        if path.is_file() {
            let bytes = std::fs::read(path).expect("a file");
            bytes_in_all += bytes.len();
            assert!(!holds(&bytes, PLANTED) && !holds(&bytes, "quinces"), "{}", path.display());
        }
        check_mode(path);
    });
    assert!(100_000 < bytes_in_all, "{bytes_in_all} bytes");
    let mut settings = rig.settings();
    settings.data_folder = rig.folder.path().join("other");
    assert!(dpsw_server::Engine::open(&settings, rig.clock.clone()).is_err(), "something for the log");
    engine.shutdown().expect("room");
    let log = log.0.lock().expect("no panic").clone();
    assert!(log.contains("shutting down") && !log.contains(PLANTED), "{log}");
}

#[cfg(unix)]
fn check_mode(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
}

#[cfg(not(unix))]
fn check_mode(_: &Path) {}
