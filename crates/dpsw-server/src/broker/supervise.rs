//! Starts a reader for every source that has a broker and streams.

use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::broker::access::BrokerAccess;
use crate::broker::reader::Reader;
use crate::http::App;

/// How often sources are looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// Reads the brokers of all sources, also of those that are made later, until the service shuts down. Brokers that are not named
/// in `accesses` are reached without a password and without TLS.
///
/// # Panics
/// The system has no room for a thread.
pub fn start(app: App, accesses: Vec<BrokerAccess>) {
    // Clients of brokers take what the process has; a second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let supervise = move || supervise(&app, &accesses);
    let thread = std::thread::Builder::new().name("dpsw-brokers".to_owned()).spawn(supervise);
    // It ends with the service.
    drop(thread.expect("the system has room for a thread"));
}

fn supervise(app: &App, accesses: &[BrokerAccess]) {
    let mut readers: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
    while !app.is_closing() {
        // A reader ends when its source has no streams; what ended otherwise starts anew.
        readers.retain(|_, reader| !reader.is_finished());
        for (source, config) in app.engine.brokered() {
            let access = accesses.iter().find(|access| access.address == config.address).cloned();
            let reader = || Reader::new(app.clone(), source.clone(), config, access);
            readers.entry(source.clone()).or_insert_with(|| spawn(reader()));
        }
        std::thread::sleep(PAUSE);
    }
}

fn spawn(reader: Reader) -> JoinHandle<()> {
    let name = format!("dpsw-read-{}", reader.source());
    let thread = std::thread::Builder::new().name(name).spawn(move || reader.run());
    thread.expect("the system has room for a thread")
}
