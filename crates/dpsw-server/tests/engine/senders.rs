//! Batches that are sent again: known by their owner, their sender and their number, for life.

use dpsw_server::{BatchId, Engine, Events, IngestError};

use crate::disk::SimDisk;
use crate::support::{COUNT_STREAM, Rig, SOURCE, create, frequency, id_of, pages, view};

/// Whether a batch of ten events was taken before.
fn try_send(engine: &Engine, owner: &str, batch: &str) -> Result<bool, IngestError> {
    let pending = engine.ingest("web", id_of(owner, batch), pages(["a"; 10]))?;
    pending.wait().map(|receipt| receipt.is_repeated)
}

/// Whether so many batches of ten were counted, once those are sealed.
#[track_caller]
fn check_counted(engine: &Engine, batches: u64) {
    let len = engine.stream("pages").expect("a stream").plan.substream_len();
    let events = 10 * batches;
    let filler = events.next_multiple_of(len) - events;
    let pending = engine.ingest("web", None, pages(vec!["not listed"; filler as usize])).expect("room");
    pending.wait().expect("durable");
    let published = view(engine, "pages");
    assert_eq!(published.sealed_until, events + filler);
    assert_eq!(frequency(&published, "a", 0..events + filler), events as f64);
}

#[test]
fn numbers_may_come_in_any_order_shortly_below_the_highest_and_never_further_below() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[COUNT_STREAM]);
    for (number, expected) in [
        (5000, Ok(false)),
        (4999, Ok(false)),
        (5000, Ok(true)),
        (3976, Ok(false)),
        (3975, Err(IngestError::BatchTooOld)),
        (0, Err(IngestError::BatchTooOld)),
        (5001, Ok(false)),
        (3976, Err(IngestError::BatchTooOld)),
        (3977, Ok(false)),
        (4999, Ok(true)),
    ] {
        assert_eq!(try_send(&engine, "owner", &format!("sender/{number}")), expected, "{number}");
    }
    drop(engine);
    let engine = rig.open();
    for (number, expected) in
        [(5001, Ok(true)), (3977, Ok(true)), (3976, Err(IngestError::BatchTooOld)), (3978, Ok(false))]
    {
        assert_eq!(try_send(&engine, "owner", &format!("sender/{number}")), expected, "{number}");
    }
    check_counted(&engine, 6);
}

/// The answer to an id tells nothing about what others sent, and nothing that they send makes it forgotten.
#[test]
fn batches_of_one_owner_are_known_whatever_others_send_and_others_are_not_told() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    assert_eq!(try_send(&engine, "one", "sender/7"), Ok(false));
    assert_eq!(try_send(&engine, "other", "sender/7"), Ok(false), "it is not told that one has sent it");
    let noise = |owner: &str, id: String| {
        let id = BatchId::new(owner, &id).expect("an id");
        engine.ingest("web", Some(id), Events::default()).expect("room")
    };
    let many = (0..66_000).map(|number| noise("other", format!("sender/{number}")));
    let senders = (0..500).map(|number| noise("one", format!("sender-{number}/{number}")));
    let pending: Vec<_> = many.chain(senders).collect();
    let receipts = pending.into_iter().map(|pending| pending.wait().expect("durable"));
    assert_eq!(receipts.filter(|receipt| receipt.is_repeated).count(), 1, "number 7 of the other one");
    assert_eq!(try_send(&engine, "one", "sender/7"), Ok(true));
    drop(engine);
    let engine = rig.open_on(&disk);
    assert_eq!(try_send(&engine, "one", "sender/7"), Ok(true));
    assert_eq!(try_send(&engine, "other", "sender/7"), Err(IngestError::BatchTooOld));
    check_counted(&engine, 2);
}

#[test]
fn batches_of_one_id_that_are_committed_together_count_once() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM]);
    disk.hold(true);
    let ids = ["a/1", "a/2", "a/2", "b/2", "a/1", "a/2", "b/2", "a/9", "a/3"];
    let pending = ids.map(|id| engine.ingest("web", id_of("owner", id), pages(["a"; 10])).expect("room"));
    disk.hold(false);
    let repeated = pending.map(|pending| pending.wait().expect("durable").is_repeated);
    assert_eq!(repeated, [false, false, true, false, true, true, true, false, false]);
    check_counted(&engine, 5);
}

#[test]
fn a_new_sender_beyond_the_most_is_refused_and_the_others_go_on() {
    let rig = Rig::new();
    let mut settings = rig.settings();
    settings.senders_max = 2;
    let open = || Engine::open(&settings, rig.clock.clone()).expect("it opens");
    let engine = open();
    create(&engine, SOURCE, &[COUNT_STREAM]);
    let taken = Ok(false);
    assert_eq!(try_send(&engine, "one", "a/1"), taken);
    assert_eq!(try_send(&engine, "one", "b/1"), taken);
    assert_eq!(try_send(&engine, "one", "c/1"), Err(IngestError::TooManySenders(2)));
    assert_eq!(try_send(&engine, "one", "a/2"), taken);
    assert_eq!(try_send(&engine, "other", "c/1"), taken, "each owner has its own");
    drop(engine);
    let engine = open();
    assert_eq!(try_send(&engine, "one", "c/1"), Err(IngestError::TooManySenders(2)));
    assert_eq!(try_send(&engine, "one", "b/1"), Ok(true));
    check_counted(&engine, 4);
}
