//! Streams that are sealed elsewhere: what was acknowledged is there, whatever breaks, and what is seen is durable.

use std::io::ErrorKind;

use bytes::Bytes;
use dpsw::{Batch, DpswSketch, Settings};
use dpsw_server::{ChangeError, Engine, Unavailable};

use crate::disk::{Random, SimDisk, Unsynced};
use crate::support::{COUNT_STREAM, Rig, SOURCE};

/// Views of one stream, each later than the one before.
fn views(count: usize) -> Vec<Bytes> {
    let settings = Settings::last_items(1000, 1.0).expect("settings").with_keys(["a", "b"]);
    let mut sketch = DpswSketch::new(settings.plan().expect("a plan")).expect("randomness");
    let view = |_| {
        sketch.extend(Batch::text(&["a", "a", "b"].repeat(50))).expect("in order");
        sketch.view().to_bytes().into()
    };
    (0..count).map(view).collect()
}

fn shown(engine: &Engine) -> Option<Bytes> {
    engine.view("sales").ok().map(|published| published.view.to_bytes().into())
}

#[test]
fn a_view_is_there_after_a_restart_and_goes_on_from_there() {
    let (rig, views) = (Rig::new(), views(3));
    let engine = rig.with(SOURCE, &[COUNT_STREAM]);
    engine.put_view("sales", views[0].clone(), true).expect("a view");
    engine.put_view("sales", views[1].clone(), false).expect("a later view");
    engine.shutdown().expect("saved");
    drop(engine);
    let engine = rig.open();
    assert_eq!(shown(&engine), Some(views[1].clone()));
    assert_eq!(engine.streams().iter().map(|stream| &stream.name).collect::<Vec<_>>(), ["pages", "sales"]);
    assert!(matches!(engine.put_view("sales", views[0].clone(), true), Err(ChangeError::Succession(_))));
    engine.put_view("sales", views[1].clone(), false).expect("the same again");
    engine.put_view("sales", views[2].clone(), false).expect("a later view");
    engine.delete_stream("sales").expect("it is there");
    drop(engine);
    let engine = rig.open();
    assert_eq!(shown(&engine), None);
    assert!(matches!(engine.put_view("sales", views[0].clone(), false), Err(ChangeError::Unknown(_))));
    engine.put_view("sales", views[0].clone(), true).expect("it begins anew");
    assert!(engine.view("pages").is_ok(), "the other stream is as it was");
}

/// Sends all views that come after those that were taken, until the disk crashes; whoever looks sees what is durable.
fn send_rest(engine: &Engine, disk: &SimDisk, views: &[Bytes], taken: &mut usize) {
    while *taken < views.len() && !disk.is_crashed() {
        let sent = engine.put_view("sales", views[*taken].clone(), true);
        assert!(sent.is_ok() || matches!(sent, Err(ChangeError::Unavailable(_))), "{sent:?}");
        *taken += usize::from(sent.is_ok());
    }
}

fn check_crashes(unsynced: Unsynced) {
    let views = views(12);
    let mut crashes = 0;
    for seed in 0..60 {
        let (rig, disk, mut random) = (Rig::new(), SimDisk::default(), Random(seed + 1));
        drop(rig.open_on(&disk));
        let mut taken = 0;
        while taken < views.len() {
            disk.crash_after(random.below(100));
            let engine = rig.try_open_on(&disk);
            let seen = engine.as_ref().ok().and_then(|engine| {
                send_rest(engine, &disk, &views, &mut taken);
                shown(engine)
            });
            drop(engine);
            crashes += usize::from(disk.is_crashed());
            assert!(crashes < 10_000, "it gets nowhere");
            disk.restart(unsynced, &mut random);
            let there = shown(&rig.open_on(&disk)).and_then(|view| views.iter().position(|one| *one == view));
            let seen = seen.and_then(|view| views.iter().position(|one| *one == view));
            // The last one that was acknowledged, or the one that was on its way.
            assert!(
                [taken.checked_sub(1), Some(taken)].contains(&there),
                "{there:?} of {taken}, seed {seed}"
            );
            assert!(seen <= there, "{seen:?} was seen, {there:?} is there, seed {seed}");
            taken = there.map_or(0, |there| there + 1);
        }
    }
    assert!(100 < crashes, "{crashes} crashes");
}

#[test]
fn no_view_that_was_acknowledged_or_seen_is_lost_where_unsynced_writes_are_lost() {
    check_crashes(Unsynced::Dropped);
}

#[test]
fn no_view_that_was_acknowledged_or_seen_is_lost_where_unsynced_writes_are_mixed_up() {
    check_crashes(Unsynced::Reordered);
}

#[test]
fn a_full_disk_refuses_a_view_and_shows_what_it_has_when_there_is_room_again() {
    let (rig, disk, views) = (Rig::new(), SimDisk::default(), views(400));
    let engine = rig.open_on(&disk);
    engine.put_view("sales", views[0].clone(), true).expect("room");
    disk.limit(Some(0));
    disk.refuse(Some(ErrorKind::StorageFull));
    let put = |view: &Bytes| engine.put_view("sales", view.clone(), true);
    // What the database has room for inside its file is taken.
    let mut sent = (1..).map(|number| (number, put(&views[number])));
    let (refused, error) = sent.find_map(|(number, sent)| Some((number, sent.err()?))).expect("a refusal");
    assert!(
        matches!(error, ChangeError::Unavailable(Unavailable::Storage(_) | Unavailable::Unconfirmed(_))),
        "{error}"
    );
    assert!(shown(&engine).as_ref() == Some(&views[refused - 1]), "nothing has changed");
    disk.limit(None);
    disk.refuse(None);
    while !engine.health().is_ready() {
        std::thread::yield_now();
    }
    put(&views[refused]).expect("there is room");
    put(&views[399]).expect("there is room");
    drop(engine);
    assert!(shown(&rig.open_on(&disk)).as_ref() == Some(&views[399]));
}

/// A write that failed and was done all the same: the sender was told that nothing was taken, and sends it again.
#[test]
fn what_is_shown_after_a_failure_is_what_the_database_has() {
    let views = views(2);
    for number in 0.. {
        let (rig, disk) = (Rig::new(), SimDisk::default());
        let engine = rig.open_on(&disk);
        engine.put_view("sales", views[0].clone(), true).expect("room");
        disk.do_and_fail(number);
        let is_taken = engine.put_view("sales", views[1].clone(), true).is_ok();
        while !engine.health().is_ready() {
            std::thread::yield_now();
        }
        let seen = shown(&engine).expect("a view");
        assert!(!is_taken || seen == views[1], "write {number}");
        if disk.is_failing() {
            assert!(is_taken && 1 < number, "there are no more writes");
            return;
        }
        drop(engine);
        assert!(shown(&rig.open_on(&disk)) == Some(seen), "write {number}");
    }
}
