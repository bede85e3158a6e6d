//! Disks that are full, read-only, damaged, or do not confirm: clear errors, and nothing acknowledged is lost.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use dpsw_server::{ChangeError, Engine, IngestError, Key, OpenError, Unavailable};

use crate::disk::{Random, SimDisk, Unsynced};
use crate::support::{
    COUNT_STREAM, Rig, SOURCE, create, frequency, id, pages, sealed_span, send, stream_config, view,
};

fn try_send(engine: &Engine, batch: u64) -> Result<bool, IngestError> {
    let pending = engine.ingest("web", id(batch), pages(["a", "b", "b", "b"].repeat(25)))?;
    pending.wait().map(|receipt| receipt.is_repeated)
}

/// Three of four are b, wherever one looks.
fn check_counts(engine: &Engine, batches: u64) {
    let published = view(engine, "pages");
    let len = published.view.plan().substream_len();
    assert_eq!(published.sealed_until / len, 100 * batches / len);
    let span = sealed_span(&published, 2);
    let exact = span.clone().filter(|position| position % 4 != 0).count();
    assert_eq!(frequency(&published, "b", span), exact as f64);
}

/// On a disk without room for a byte more, wherever the service was stopped: it starts, answers, refuses batches with a reason, and
/// takes them when there is room.
#[test]
fn it_starts_on_a_full_disk_and_takes_batches_when_there_is_room() {
    for (batches, is_killed) in [(1, false), (1, true), (3, false), (3, true)] {
        let (rig, disk) = (Rig::new(), SimDisk::default());
        let engine = rig.open_on(&disk);
        create(&engine, SOURCE, &[COUNT_STREAM]);
        (0..20 * batches).for_each(|batch| assert_eq!(try_send(&engine, batch), Ok(false)));
        let before = view(&engine, "pages").sealed_until;
        if !is_killed {
            engine.shutdown().expect("healthy");
        }
        drop(engine);
        // No write at all succeeds, also not in place.
        disk.fail(0, u64::MAX);
        disk.refuse_markers(Some(ErrorKind::StorageFull));
        let engine = rig.open_on(&disk);
        assert_eq!(engine.view("pages").expect("a stream").sealed_until, before, "it answers");
        try_send(&engine, 20 * batches).expect_err("a full disk takes no more");
        assert!(!engine.health().is_ready());
        disk.fail(0, 0);
        disk.refuse_markers(None);
        while !engine.health().is_ready() {
            std::thread::yield_now();
        }
        try_send(&engine, 20 * batches).expect("room");
        check_counts(&engine, 20 * batches + 1);
    }
}

/// The disk was full when the marker should have moved: nothing of what it did not move to is shown before it moves.
#[test]
fn it_starts_where_the_marker_cannot_be_moved_and_shows_what_is_new_when_it_is() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    disk.refuse_markers(Some(ErrorKind::StorageFull));
    (0..20).for_each(|batch| assert_eq!(try_send(&engine, batch), Ok(false)));
    while engine.health().is_ready() {
        std::thread::yield_now();
    }
    drop(engine);
    let engine = rig.open_on(&disk);
    let hidden = engine.view("pages").expect("a stream");
    assert_eq!((hidden.sealed_until, hidden.view.sealed().count()), (0, 0));
    while engine.health().is_ready() {
        std::thread::yield_now();
    }
    assert_eq!(engine.view("pages").expect("a stream").sealed_until, 0, "the marker has not moved");
    disk.refuse_markers(None);
    while !engine.health().is_ready() {
        std::thread::yield_now();
    }
    check_counts(&engine, 20);
    drop(engine);
    check_counts(&rig.open_on(&disk), 20);
}

/// As the program of another version would leave it.
fn write_format(rig: &Rig, format: Option<u32>) {
    let table = redb::TableDefinition::<&str, &[u8]>::new("meta");
    let database = redb::Database::open(rig.data().join("dpsw.redb")).expect("a database");
    let transaction = database.begin_write().expect("the only one");
    let mut meta = transaction.open_table(table).expect("a table");
    match format {
        Some(format) => drop(meta.insert("format", format.to_le_bytes().as_slice()).expect("room")),
        None => drop(meta.remove("format").expect("room")),
    }
    drop(meta);
    transaction.commit().expect("room");
}

#[test]
fn a_data_folder_of_another_version_is_refused_with_words_and_left_as_it_is() {
    let rig = Rig::new();
    drop(rig.with(SOURCE, &[COUNT_STREAM]));
    for (format, words) in [(Some(99), "its format is 99"), (None, "its format is no number")] {
        write_format(&rig, format);
        let error = rig.try_open().expect_err("another version").to_string();
        assert!(error.contains(words) && error.contains("version that wrote it"), "{error}");
    }
    write_format(&rig, Some(1));
    assert_eq!(rig.open().streams().len(), 1);
}

#[test]
fn a_full_disk_refuses_batches_and_takes_them_when_there_is_room_again() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    (0..20).for_each(|batch| assert_eq!(try_send(&engine, batch), Ok(false)));
    engine.settle().expect("healthy");
    let before = engine.view("pages").expect("a stream").sealed_until;
    disk.limit(Some(0));
    disk.refuse(Some(ErrorKind::StorageFull));
    let mut refused = 0;
    for batch in 20..400 {
        match try_send(&engine, batch) {
            Ok(_) => assert_eq!(refused, 0, "batch {batch} was taken by a full disk"),
            Err(IngestError::Unavailable(Unavailable::Storage(_) | Unavailable::Unconfirmed(_))) => {
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(0 < refused && !engine.health().is_ready());
    assert!(engine.health().reasons[0].contains("the storage refuses to take data"), "{:?}", engine.health());
    assert!(before <= engine.view("pages").expect("a stream").sealed_until, "it still answers");
    disk.limit(None);
    disk.refuse(None);
    while !engine.health().is_ready() {
        std::thread::yield_now();
    }
    (0..400).for_each(|batch| {
        try_send(&engine, batch).expect("room");
    });
    check_counts(&engine, 400);
    drop(engine);
    check_counts(&rig.open_on(&disk), 400);
}

/// Where a sync fails, nobody knows what is there. What the disk has then decides whether the batch was taken; sent again with its
/// id it counts once in each case.
#[test]
fn a_batch_whose_sync_failed_counts_once_if_it_is_sent_again_whatever_the_disk_has() {
    let mut had_survived = 0;
    for seed in 0..12 {
        let (rig, disk) = (Rig::new(), SimDisk::default());
        let engine = rig.open_on(&disk);
        create(&engine, SOURCE, &[COUNT_STREAM]);
        (0..20).for_each(|batch| assert_eq!(try_send(&engine, batch), Ok(false)));
        engine.settle().expect("healthy");
        disk.lose_syncs(true);
        let error = try_send(&engine, 20).expect_err("the disk did not confirm");
        assert!(matches!(error, IngestError::Unavailable(Unavailable::Unconfirmed(_))), "{error}");
        let error = try_send(&engine, 21).expect_err("it may say what the disk has lost");
        assert!(matches!(error, IngestError::Unavailable(Unavailable::Lost(_))), "{error}");
        disk.lose_syncs(false);
        drop(engine);
        match seed {
            // All of it is there.
            0 => {}
            1 => disk.restart(Unsynced::Dropped, &mut Random(seed)),
            _ => disk.restart(Unsynced::Reordered, &mut Random(seed)),
        }
        let engine = rig.open_on(&disk);
        let was_taken = try_send(&engine, 20).expect("room");
        assert!(was_taken == (seed == 0) || 1 < seed, "case {seed}");
        had_survived += usize::from(was_taken);
        assert_eq!(try_send(&engine, 21), Ok(false), "nothing of it was written");
        (0..40).for_each(|batch| assert_eq!(try_send(&engine, batch), Ok(batch <= 21)));
        check_counts(&engine, 40);
    }
    assert!((1..12).contains(&had_survived));
}

#[test]
fn a_disk_that_does_not_confirm_is_not_trusted_until_the_next_start() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[]);
    disk.lose_syncs(true);
    assert!(try_send(&engine, 0).is_err());
    disk.lose_syncs(false);
    let end = Instant::now() + Duration::from_millis(500);
    while Instant::now() < end {
        let error = try_send(&engine, 1).expect_err("it may say what the disk has lost");
        assert!(matches!(error, IngestError::Unavailable(Unavailable::Lost(_))), "{error}");
    }
    let error = engine.create_stream("web", stream_config(COUNT_STREAM)).expect_err("nothing is taken");
    assert!(matches!(error, ChangeError::Unavailable(Unavailable::Lost(_))), "{error}");
}

/// Nobody knows whether a change was made either.
#[test]
fn a_stream_whose_making_was_not_confirmed_is_there_after_the_next_start_or_not() {
    for was_written in [false, true] {
        let (rig, disk) = (Rig::new(), SimDisk::default());
        let engine = rig.open_on(&disk);
        create(&engine, SOURCE, &[]);
        disk.lose_syncs(true);
        let error = engine.create_stream("web", stream_config(COUNT_STREAM)).expect_err("no confirmation");
        assert!(matches!(error, ChangeError::Unavailable(Unavailable::Unconfirmed(_))), "{error}");
        disk.lose_syncs(false);
        drop(engine);
        if !was_written {
            disk.restart(Unsynced::Dropped, &mut Random(1));
        }
        let engine = rig.open_on(&disk);
        assert_eq!(engine.stream("pages").is_ok(), was_written);
        let charges = engine.source("web").expect("a source").ledger.charges.len();
        assert_eq!(charges, usize::from(was_written), "charged if it was made");
    }
}

/// What was not confirmed is taken out when the disk is back, so that only what is sent again counts.
#[test]
fn a_batch_that_was_refused_is_not_in_the_journal_even_if_the_disk_did_what_it_refused() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    drop(engine);
    let mut batches = 0;
    for number in 0.. {
        let engine = rig.open_on(&disk);
        assert_eq!(try_send(&engine, batches), Ok(false), "the first commit after a start writes more");
        batches += 1;
        engine.settle().expect("healthy");
        disk.do_and_fail(number);
        if try_send(&engine, batches).is_ok() {
            batches += 1;
            break;
        }
        while !engine.health().is_ready() {
            std::thread::yield_now();
        }
        drop(engine);
        let engine = rig.open_on(&disk);
        assert_eq!(try_send(&engine, batches), Ok(false), "it was refused at write {number}");
        batches += 1;
        check_counts(&engine, batches);
    }
    assert!(6 < batches, "some writes failed");
    disk.fail(0, 0);
    check_counts(&rig.open_on(&disk), batches);
}

#[test]
fn a_disk_that_cannot_be_written_is_refused_at_the_start() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    disk.refuse(Some(ErrorKind::ReadOnlyFilesystem));
    let error = rig.try_open_on(&disk).expect_err("read-only").to_string();
    assert_eq!(error, "a disk in memory cannot be used: read-only filesystem or storage medium");
    let mut settings = rig.settings();
    std::fs::write(rig.folder.path().join("file"), "").expect("room");
    settings.data_folder = rig.folder.path().join("file").join("data");
    let error = Engine::open(&settings, rig.clock.clone()).expect_err("a file is no folder").to_string();
    assert!(error.contains("file/data cannot be used"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_may_look_into_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::new();
    std::fs::create_dir(rig.data()).expect("room");
    std::fs::set_permissions(rig.data(), std::fs::Permissions::from_mode(0o755)).expect("an owner");
    let error = rig.try_open().expect_err("others may look").to_string();
    assert!(error.contains("others may look into it (mode 755); run: chmod go="), "{error}");
}

#[test]
fn a_database_that_was_half_made_at_the_first_start_is_made_anew() {
    let rig = Rig::new();
    drop(rig.open());
    let (made, half_made) = (rig.data().join("dpsw.redb"), rig.data().join("dpsw.redb.new"));
    assert!(!half_made.exists());
    std::fs::remove_file(made).expect("it was made");
    std::fs::remove_dir_all(rig.settings().marker_folder).expect("it was made");
    std::fs::write(&half_made, [0; 5000]).expect("room");
    let engine = rig.with(SOURCE, &[COUNT_STREAM]);
    assert!(engine.health().notices.is_empty() && !half_made.exists());
}

#[test]
fn a_marker_folder_inside_the_data_folder_is_refused() {
    let rig = Rig::new();
    let mut settings = rig.settings();
    settings.marker_folder = rig.data().join("marker");
    let error = Engine::open(&settings, rig.clock.clone()).expect_err("a backup would hold both").to_string();
    assert!(error.contains("must not lie in the data folder"), "{error}");
}

#[test]
fn another_key_is_refused() {
    let rig = Rig::new();
    drop(rig.with(SOURCE, &[COUNT_STREAM]));
    let mut settings = rig.settings();
    settings.key = Key::from_bytes([8; 32]);
    let error = Engine::open(&settings, rig.clock.clone()).expect_err("another key");
    assert!(matches!(error, OpenError::OtherKey { .. }), "{error}");
}

/// Whatever bits of the file change while the service is down: it says so, or it does not matter.
#[test]
fn a_damaged_file_is_refused_or_gives_what_was_acknowledged_and_never_panics() {
    let (rig, disk, mut random) = (Rig::new(), SimDisk::default(), Random(5));
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    (0..20).for_each(|batch| assert_eq!(try_send(&engine, batch), Ok(false)));
    engine.settle().expect("healthy");
    drop(engine);
    let (whole, marker) = (disk.backup(), disk.marker());
    let (mut refused, mut noticed) = (0, 0);
    for round in 0..300 {
        let mut bytes = whole.clone();
        let at = random.below(bytes.len() as u64) as usize;
        match round % 3 {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at / 4096 * 4096..][..4096].fill(0),
            _ => bytes.truncate(at),
        }
        disk.restore(&bytes);
        disk.set_marker(marker.clone());
        match rig.try_open_on(&disk) {
            Err(OpenError::Damaged { .. } | OpenError::OtherKey { .. } | OpenError::Path { .. }) => {
                refused += 1;
            }
            Err(error) => panic!("round {round}: {error}"),
            Ok(engine) if !engine.health().notices.is_empty() => noticed += 1,
            Ok(engine) => {
                (0..40).for_each(|batch| {
                    assert_eq!(try_send(&engine, batch), Ok(batch < 20), "round {round}");
                });
                check_counts(&engine, 40);
            }
        }
    }
    assert!(30 < refused, "{refused} refused, {noticed} noticed");
}

#[test]
fn too_much_that_waits_is_refused_until_it_is_counted() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let mut settings = rig.settings();
    settings.waiting_bytes_max = 5_000;
    let engine = Engine::open_on(std::sync::Arc::new(disk), &settings, rig.clock.clone()).expect("it opens");
    create(&engine, SOURCE, &[COUNT_STREAM]);
    let mut pending = Vec::new();
    let error = loop {
        match engine.ingest("web", None, pages(vec!["a"; 100])) {
            Ok(taken) => pending.push(taken),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, IngestError::Busy(_)), "{error}");
    pending.into_iter().for_each(|taken| assert!(taken.wait().is_ok()));
    engine.settle().expect("healthy");
    send(&engine, None, pages(vec!["a"; 100]));
    engine.settle().expect("healthy");
    // One batch is let in however large it is, or it would never be.
    send(&engine, None, pages(vec!["a"; 10_000]));
}

/// A journal holds what was acknowledged until it is durable elsewhere; while that cannot be, it grows up to a limit.
#[test]
fn a_journal_that_cannot_be_emptied_takes_no_more_than_its_limit_and_goes_on_when_it_can() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let mut settings = rig.settings();
    settings.journal_bytes_max = 20_000;
    let engine = Engine::open_on(std::sync::Arc::new(disk.clone()), &settings, rig.clock.clone());
    let engine = engine.expect("it opens");
    create(&engine, SOURCE, &[COUNT_STREAM]);
    // The marker cannot be moved, so that nothing that is sealed may be committed over what was shown.
    disk.refuse(Some(ErrorKind::StorageFull));
    let refused_at = (0..10_000).find(|batch| try_send(&engine, *batch).is_err()).expect("there is a limit");
    let error = try_send(&engine, refused_at).expect_err("it is still full");
    assert!(matches!(error, IngestError::Unavailable(Unavailable::Storage(_))), "{error}");
    assert!(
        error.to_string().contains("the journal is full, because what was sealed cannot be shown"),
        "{error}"
    );
    // Another thread moves the marker, and may not have tried yet.
    while engine.health().is_ready() {
        std::thread::yield_now();
    }
    assert!(engine.health().reasons[0].contains("the marker cannot be moved"), "{:?}", engine.health());
    // One batch beyond the limit is let in, and each has more than 100 bytes.
    assert!((20..200).contains(&refused_at), "batch {refused_at}");
    disk.refuse(None);
    let end = Instant::now() + Duration::from_secs(60);
    for batch in 0..300 {
        // So small a journal is full again and again, until the next checkpoint.
        let is_repeated = loop {
            match try_send(&engine, batch) {
                Ok(is_repeated) => break is_repeated,
                Err(_) => std::thread::yield_now(),
            }
            assert!(Instant::now() < end, "it is never emptied: {:?}", engine.health());
        };
        assert_eq!(is_repeated, batch < refused_at, "batch {batch}");
    }
    check_counts(&engine, 300);
}

/// What waits for a slow disk is made durable together, and nobody who asks waits for it.
#[test]
fn a_slow_disk_takes_many_batches_at_a_time_and_keeps_no_question_waiting() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    (0..20).for_each(|batch| assert_eq!(try_send(&engine, batch), Ok(false)));
    engine.settle().expect("healthy");
    let before = disk.syncs();
    disk.hold(true);
    let ingest = |batch: u64| engine.ingest("web", id(batch), pages(["a", "b", "b", "b"].repeat(25)));
    let pending: Vec<_> = (20..300).map(|batch| ingest(batch).expect("room")).collect();
    assert!(0 < engine.view("pages").expect("a stream").sealed_until, "it answers meanwhile");
    assert_eq!(disk.syncs(), before, "nothing is durable, and nothing was acknowledged");
    disk.hold(false);
    pending.into_iter().for_each(|taken| assert!(!taken.wait().expect("durable").is_repeated));
    // The first commit has what came first, the second all the rest; each syncs a few times, and so do checkpoints.
    assert!(disk.syncs() < before + 100, "{} syncs for 280 batches", disk.syncs() - before);
    check_counts(&engine, 300);
}
