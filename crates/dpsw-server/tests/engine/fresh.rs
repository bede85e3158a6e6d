//! What was ever shown is never shown otherwise, whatever is restored from a backup.

use std::io::ErrorKind;

use dpsw_server::{Engine, Events, IngestError, OpenError};

use crate::disk::{Random, SimDisk, Unsynced};
use crate::support::{
    COUNT_STREAM, Rig, SOURCE, START_MS, Seen, create, id, id_of, noisy_stream, pages, send, stream_config,
    view,
};

const EVENT_SOURCE: &str =
    "name = 'web'\nprotects = 'event'\nepsilon = 1e6\ntime_column = 'time'\ncolumns = { page = 'text' }";
const PRESENCE_SOURCE: &str =
    "name = 'web'\nprotects = 'presence'\nepsilon = 1e6\ncolumns = { page = 'text' }";

/// What becomes of the marker while the database is replaced by its backup.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Kept,
    Lost,
    Damaged,
    /// It has moved on, and the stream was replaced before that: it knows nothing of it any more.
    Forgetful,
}

struct Feed<'a> {
    rig: &'a Rig,
    has_times: bool,
}

impl Feed<'_> {
    fn events(&self, batch: u64) -> Events {
        let items: Vec<String> = (0..30).map(|at| format!("k{}", (batch + at * at) % 40)).collect();
        let events = pages(items);
        if !self.has_times {
            return events;
        }
        events.with_times(vec![START_MS + 700 * batch; 30]).expect("as many")
    }

    /// Sends a batch at its time, under this name. Whether it was taken before.
    fn try_send(&self, engine: &Engine, sender: &str, batch: u64) -> Result<bool, IngestError> {
        self.rig.clock.set(START_MS + 700 * batch);
        let pending =
            engine.ingest("web", id_of("owner", &format!("{sender}/{batch}")), self.events(batch))?;
        pending.wait().map(|receipt| receipt.is_repeated)
    }

    fn send(&self, engine: &Engine, batch: u64) -> bool {
        self.try_send(engine, "first", batch).expect("durable")
    }
}

/// Back up, release, restore, replay.
fn check_backup(source: &str, window: &str, fate: Fate) {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let feed = Feed { rig: &rig, has_times: source.contains("time_column") };
    let engine = rig.open_on(&disk);
    create(&engine, source, &[&noisy_stream(window)]);
    let mut seen = Seen::default();
    (0..40).for_each(|batch| assert!(!feed.send(&engine, batch)));
    assert!(0 < seen.look(&view(&engine, "noisy").view));
    drop(engine);
    let backup = disk.backup();
    let engine = rig.open_on(&disk);
    assert!(engine.health().notices.is_empty(), "nothing is wrong yet");
    (40..90).for_each(|batch| assert!(!feed.send(&engine, batch)));
    assert!(0 < seen.look(&view(&engine, "noisy").view), "more was shown after the backup");
    if let Fate::Forgetful = fate {
        engine.replace_stream(stream_config(&noisy_stream(window))).expect("the same settings");
        (90..140).for_each(|batch| assert!(!feed.send(&engine, batch)));
        assert!(0 < view(&engine, "noisy").view.sealed().count(), "the marker has moved");
    }
    drop(engine);
    disk.restore(&backup);
    match fate {
        Fate::Kept | Fate::Forgetful => {}
        Fate::Lost => disk.set_marker(None),
        Fate::Damaged => disk.set_marker(disk.marker().map(|marker| marker[1..].to_vec())),
    }
    let last = seen.last();
    let engine = rig.open_on(&disk);
    let notices = engine.health().notices;
    assert!(notices[0].contains("what was open was given up"), "{notices:?}");
    assert!(notices.iter().any(|notice| notice.contains("\"noisy\"")), "{notices:?}");
    assert_eq!(seen.look(&view(&engine, "noisy").view), 0, "nothing is shown at first");
    // The backup knows the first forty, and not how far the sender came after it.
    for batch in [0, 39, 40, 89, 90, 1_000_000] {
        assert_eq!(feed.try_send(&engine, "first", batch), Err(IngestError::BatchTooOld), "{batch}");
    }
    (0..90).for_each(|batch| assert_eq!(feed.try_send(&engine, "second", batch), Ok(false)));
    seen.look(&view(&engine, "noisy").view);
    (90..260).for_each(|batch| assert_eq!(feed.try_send(&engine, "second", batch), Ok(false)));
    assert!(0 < seen.look(&view(&engine, "noisy").view), "the stream goes on");
    assert!(last < seen.last());
    drop(engine);
    let engine = rig.open_on(&disk);
    assert!(engine.health().notices.is_empty(), "it is given up once");
    assert_eq!(seen.look(&view(&engine, "noisy").view), 0);
}

#[test]
fn a_restored_backup_shows_nothing_a_second_time() {
    for fate in [Fate::Kept, Fate::Lost, Fate::Damaged, Fate::Forgetful] {
        check_backup(SOURCE, "window = 400", fate);
        check_backup(PRESENCE_SOURCE, "window = '20s'\nexpected = 1000", fate);
        check_backup(EVENT_SOURCE, "window = '20s'\nexpected = 1000\nlateness = '2s'", fate);
    }
}

/// Two lines of one database, neither of which is the one that was shown last: whichever comes back as a backup, the stream goes on
/// without the keys that it had found, their place in the list, and what was decided about their counters.
#[test]
fn nothing_that_a_backup_had_found_or_decided_comes_back() {
    let stream = "name = 'pages'\nitem = 'page'\nwindow = 1000\nepsilon = 500\nkeys = 'found'";
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[stream]);
    send(&engine, None, pages(["a", "b", "c", "d"].repeat(300)));
    assert!(0 < listed(&view(&engine, "pages").view));
    drop(engine);
    let (state, marker) = (disk.backup(), disk.marker());
    let line = |keys: [&str; 4], times: usize| {
        disk.restore(&state);
        disk.set_marker(marker.clone());
        let engine = rig.open_on(&disk);
        send(&engine, None, pages(keys.repeat(times)));
        assert!(0 < listed(&view(&engine, "pages").view));
        drop(engine);
        disk.backup()
    };
    let lost = [line(["e", "f", "g", "h"], 300), line(["i", "j", "k", "l"], 300)];
    line(["m", "n", "o", "p"], 600);
    let shown = disk.marker();
    let resumed = lost.map(|backup| {
        disk.restore(&backup);
        disk.set_marker(shown.clone());
        let engine = rig.open_on(&disk);
        let view = view(&engine, "pages").view.clone();
        assert_eq!((view.sealed().count(), listed(&view)), (0, 0));
        view.to_bytes()
    });
    assert!(resumed[0] == resumed[1], "what is shown is the same, to the last byte");
}

/// How many keys a view lists.
fn listed(view: &dpsw::WindowView) -> usize {
    view.top(1000).map_or(0, |top| top.all().count())
}

/// Only a database that has taken nothing may be without a marker.
#[test]
fn a_crash_at_the_first_start_leaves_no_database_that_is_taken_for_new_later() {
    for operations in 0..40 {
        let (rig, disk) = (Rig::new(), SimDisk::default());
        disk.crash_after(operations);
        drop(rig.try_open_on(&disk));
        disk.restart(Unsynced::Dropped, &mut Random(operations));
        let engine = rig.open_on(&disk);
        assert!(engine.health().notices.is_empty(), "nothing was there to give up: {:?}", engine.health());
        create(&engine, SOURCE, &[COUNT_STREAM]);
        send(&engine, id(1), pages(["a"]));
        drop(engine);
        disk.set_marker(None);
        let engine = rig.open_on(&disk);
        assert!(!engine.health().notices.is_empty(), "after {operations} operations");
    }
}

/// The copy of a database that is as new as the marker is the database.
#[test]
fn a_backup_of_what_was_shown_last_goes_on() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    send(&engine, id(1), pages(vec!["a"; 500]));
    let sealed_until = view(&engine, "pages").sealed_until;
    drop(engine);
    disk.restore(&disk.backup());
    let engine = rig.open_on(&disk);
    assert!(engine.health().notices.is_empty());
    assert_eq!(engine.view("pages").expect("a stream").sealed_until, sealed_until);
}

#[test]
fn nothing_is_shown_before_the_marker_has_moved_and_nothing_is_given_up_if_it_did_not() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    disk.refuse(Some(ErrorKind::StorageFull));
    let marker = disk.marker();
    for batch in 0..100 {
        send(&engine, id(batch), pages(["a", "b"].repeat(5)));
    }
    while engine.health().is_ready() {
        std::thread::yield_now();
    }
    assert!(engine.health().reasons[0].contains("the marker cannot be moved"), "{:?}", engine.health());
    assert_eq!(engine.view("pages").expect("a stream").sealed_until, 0);
    assert!(engine.shutdown().is_err(), "it says so, and does not wait for ever");
    drop(engine);
    assert_eq!(disk.marker(), marker);
    disk.refuse(None);
    let engine = rig.open_on(&disk);
    assert!(engine.health().notices.is_empty(), "{:?}", engine.health());
    assert!(disk.marker() != marker, "it moves on at the start");
    let published = view(&engine, "pages");
    let span = crate::support::sealed_span(&published, 3);
    let half = (span.end - span.start) as f64 / 2.0;
    assert_eq!(crate::support::frequency(&published, "a", span), half);
}

#[test]
fn a_marker_that_moves_again_lets_out_what_waited() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    disk.refuse(Some(ErrorKind::StorageFull));
    send(&engine, id(1), pages(vec!["a"; 1000]));
    while engine.health().is_ready() {
        std::thread::yield_now();
    }
    disk.refuse(None);
    while !engine.health().is_ready() {
        std::thread::yield_now();
    }
    assert!(500 < view(&engine, "pages").sealed_until);
}

/// Two owners that no lock keeps apart: whoever moves the marker second shows nothing.
#[test]
fn nothing_is_shown_where_another_owner_has_moved_the_marker() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    let marker = disk.marker();
    send(&engine, id(1), pages(vec!["a"; 500]));
    let sealed_until = view(&engine, "pages").sealed_until;
    disk.set_marker(marker);
    send(&engine, id(2), pages(vec!["a"; 500]));
    while engine.health().is_ready() {
        std::thread::yield_now();
    }
    assert!(engine.health().reasons[0].contains("is there another one"), "{:?}", engine.health());
    assert_eq!(engine.view("pages").expect("a stream").sealed_until, sealed_until);
}

#[test]
fn a_marker_without_its_database_and_that_of_another_one_are_refused() {
    let (rig, disk, other) = (Rig::new(), SimDisk::default(), SimDisk::default());
    drop(rig.open_on(&disk));
    drop(rig.open_on(&other));
    other.set_marker(disk.marker());
    let error = rig.try_open_on(&other).expect_err("another database");
    assert!(matches!(error, OpenError::OtherMarker { .. }), "{error}");
    disk.restore(&[]);
    let error = rig.try_open_on(&disk).expect_err("an empty folder");
    assert!(error.to_string().contains("all budgets then begin anew"), "{error}");
}

#[test]
fn a_second_engine_on_the_same_folder_or_marker_is_refused() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[COUNT_STREAM]);
    let error = rig.try_open().expect_err("it is in use");
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    let mut settings = rig.settings();
    settings.data_folder = rig.folder.path().join("copy");
    let error = Engine::open(&settings, rig.clock.clone()).expect_err("the marker is in use");
    assert!(error.to_string().contains("in use by another process"), "{error}");
    send(&engine, None, pages(["a"]));
    drop(engine);
    rig.open();
}
