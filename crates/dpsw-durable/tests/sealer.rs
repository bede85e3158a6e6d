//! Each step counts once, noise is drawn once, and nothing is seen before it is durable: through restarts, disks that lose what was
//! not synced, backups and second owners.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use dpsw::plan::{CounterLayout, Method, TunedMethod};
use dpsw::worker::{PartialId, Worker};
use dpsw::*;
use dpsw_durable::disk::{Disk, DiskError, Folders, Memory};
use dpsw_durable::{Beginning, Sealer, SealerError, SealerKeys, Step, Taken};
use redb::StorageBackend;

const SUBSTREAM: u64 = 20;
const BEGIN: u64 = 1000;
const ENGINE: &str = "one";

fn settings(unit: Unit) -> Settings {
    let window = TimeWindow { len: 100, lateness: 10, clock: Clock::Caller, expected_items: 1000 };
    let counters = CounterLayout::Identity;
    Settings {
        window: Window::Time(window),
        unit,
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: None,
        domain: Domain::Public(Keys::Range(8)),
        method: Some(Method::Tuned(TunedMethod { substreams: 5, counters, ..TunedMethod::default() })),
        retention: 4,
    }
}

fn plan(unit: Unit) -> Plan {
    Plan::new(settings(unit)).expect("a plan")
}

fn said(epsilon: &str) -> BTreeMap<String, String> {
    [("epsilon", epsilon), ("source", "shop")].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn open_on(disk: impl Disk, keys: SealerKeys, noise: Noise) -> Result<(Sealer, Option<String>), SealerError> {
    let mut make = || Ok(plan(Unit::ReplaceOne));
    Sealer::open(disk, keys, Beginning { said: said("1"), plan: &mut make, noise })
}

fn folders(root: &Path) -> Result<Folders, DiskError> {
    Folders::open(&root.join("state"), &root.join("marker"))
}

fn open(root: &Path) -> Result<(Sealer, Option<String>), SealerError> {
    let disk = folders(root)?;
    open_on(disk, SealerKeys::open(&root.join("key"), false)?, Noise::from_system())
}

/// The events of a step: two partitions, with times around the step's own.
fn events(number: u64) -> [Vec<(u64, u64)>; 2] {
    let now = BEGIN + 7 * number;
    [vec![(now % 8, now), (3, now + 3)], vec![(1, now + 5), (3, (now + 1).saturating_sub(4).max(BEGIN))]]
}

fn step(sealer: &Sealer, number: u64) -> Step {
    let worker = Worker::new(sealer.plan().clone(), sealer.keys().stream()).expect("a worker");
    let mut step =
        Step { start: BEGIN, watermark: BEGIN + 7 * number - number.min(1) * 5, ..Step::default() };
    step.watermark = step.watermark.max(BEGIN);
    for (partition, events) in events(number).iter().enumerate() {
        let id = PartialId { source: 1, batch: number, partition: partition as u64 };
        let (items, times): (Vec<u64>, Vec<u64>) = events.iter().copied().unzip();
        let mut counting = worker.follow(id, 1..u64::MAX).expect("public times");
        worker.add(&mut counting, &[Batch::integers(&items).at(&times)]).expect("valid");
        let counted = worker.finish(counting);
        step.partials
            .extend(counted.partials.iter().map(|partial| (partial.substream(), partial.to_bytes())));
    }
    step
}

fn run(sealer: &mut Sealer, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let step = step(sealer, number);
        sealer.take(ENGINE, number, &step).expect("a step");
    }
}

/// The sealed counters, by substream and range.
fn sealed(view: &WindowView) -> BTreeMap<(u64, usize), Vec<i32>> {
    let one = |sealed: sealed::Sealed<'_>| ((sealed.substream(), sealed.range()), sealed.sketch().cells());
    view.sealed().map(one).collect()
}

/// One sketch that takes all events itself.
fn alone(numbers: u64, key: StreamKey, noise: Noise) -> DpswSketch {
    let mut sketch = DpswSketch::with_key(plan(Unit::ReplaceOne), key, noise);
    sketch.advance(BEGIN).expect("a clock");
    for number in 0..numbers {
        for events in events(number) {
            let (items, times): (Vec<u64>, Vec<u64>) = events.into_iter().unzip();
            sketch.extend(Batch::integers(&items).at(&times)).expect("valid");
        }
        sketch.advance((BEGIN + 7 * number - number.min(1) * 5).max(BEGIN)).expect("a clock");
    }
    sketch
}

#[test]
fn what_workers_count_and_one_seals_is_what_one_sketch_would_show_bit_for_bit() {
    let keys = SealerKeys::draw().expect("randomness");
    let sketch = alone(30, keys.stream(), Noise::seeded(7));
    let (mut sealer, _) = open_on(Memory::default(), keys, Noise::seeded(7)).expect("opened");
    run(&mut sealer, 0..30);
    assert!(4 < sealed(&sealer.view()).len());
    assert_eq!(sealer.view().to_bytes(), sketch.view().to_bytes());
    sealer.finish(BEGIN + 300).expect("the end");
    let mut sketch = sketch;
    sketch.advance(BEGIN + 300).expect("a clock");
    assert_eq!(sealer.view().to_bytes(), sketch.finish().expect("the end").to_bytes());
    assert!(matches!(sealer.sealed_until(), Err(SealerError::Finished)));
}

#[test]
fn steps_count_once_and_what_was_seen_stays_through_restarts() {
    let root = tempfile::tempdir().expect("a folder");
    let mut seen = BTreeMap::new();
    for number in 0..40 {
        let (mut sealer, warning) = open(root.path()).expect("opened");
        assert_eq!(warning, None);
        let step = step(&sealer, number);
        // What came before comes again, as engines do it.
        if 0 < number {
            assert_eq!(sealer.take(ENGINE, number - 1, &step).expect("known"), Taken::Before);
        }
        sealer.take(ENGINE, number, &step).expect("a step");
        let now = sealed(&sealer.view());
        assert!(seen.iter().all(|(place, counters)| now.get(place) == Some(counters)), "step {number}");
        seen = now;
    }
    let (sealer, _) = open(root.path()).expect("opened");
    assert_eq!(sealer.last_step(), Some(39));
    assert_eq!(sealed(&sealer.view()), seen);
    let wanted = alone(40, sealer.keys().stream(), Noise::off()).view();
    let items =
        |view: &WindowView| -> Vec<i64> { view.sealed().map(|sealed| sealed.sketch().total()).collect() };
    assert_eq!(items(&sealer.view()), items(&wanted), "each event is in its substream once");
}

#[test]
fn steps_that_are_missing_or_of_another_engine_are_refused_and_the_next_one_is_taken() {
    let (mut sealer, _) =
        open_on(Memory::default(), SealerKeys::draw().expect("randomness"), Noise::off()).expect("opened");
    let first = step(&sealer, 1);
    assert!(matches!(sealer.take(ENGINE, 1, &first), Err(SealerError::Gap { wanted: 0, got: 1 })));
    run(&mut sealer, 0..2);
    let third = step(&sealer, 3);
    assert!(matches!(sealer.take(ENGINE, 3, &third), Err(SealerError::Gap { wanted: 2, got: 3 })));
    assert!(matches!(sealer.take("two", 2, &third), Err(SealerError::Engine { .. })));
    run(&mut sealer, 2..5);
}

#[test]
fn a_state_has_one_owner_and_one_stream() {
    let root = tempfile::tempdir().expect("a folder");
    let (sealer, _) = open(root.path()).expect("opened");
    assert!(matches!(open(root.path()), Err(SealerError::Disk(DiskError::InUse { .. }))));
    drop(sealer);
    let mut make = || Ok(plan(Unit::ReplaceOne));
    let other = Beginning { said: said("2"), plan: &mut make, noise: Noise::from_system() };
    let keys = SealerKeys::open(&root.path().join("key"), true).expect("the keys");
    let refused = Sealer::open(folders(root.path()).expect("free"), keys, other).expect_err("another stream");
    let words = refused.to_string();
    assert!(words.contains("epsilon = 1") && words.contains("2 is asked for"), "{words}");
    open(root.path()).expect("the same stream");
}

#[test]
fn a_state_from_a_backup_gives_up_what_it_held_and_goes_on_after_what_was_shown() {
    let root = tempfile::tempdir().expect("a folder");
    let (mut sealer, _) = open(root.path()).expect("opened");
    run(&mut sealer, 0..10);
    drop(sealer);
    let database = root.path().join("state/dpsw.redb");
    let backup = std::fs::read(&database).expect("the state");
    let (mut sealer, _) = open(root.path()).expect("opened");
    run(&mut sealer, 10..30);
    let (shown, until) = (sealed(&sealer.view()), sealer.sealed_until().expect("it runs"));
    drop(sealer);
    std::fs::write(&database, backup).expect("room");
    let (mut sealer, warning) = open(root.path()).expect("opened");
    assert!(warning.is_some_and(|warning| warning.contains("backup")));
    // The engine went on from its own, newer checkpoint, or replays an old one: nothing that was shown is sealed again.
    for number in 8..60 {
        let step = step(&sealer, number);
        sealer.take(ENGINE, number, &step).expect("a step");
    }
    let later = sealed(&sealer.view());
    assert!(!later.is_empty());
    assert!(later.keys().all(|(substream, _)| until <= substream * SUBSTREAM), "{until}: {later:?}");
    assert!(later.keys().all(|place| !shown.contains_key(place)));
    drop(sealer);
    let (_, warning) = open(root.path()).expect("opened");
    assert_eq!(warning, None, "it is the newest again");
}

/// Several levels: how finely each key is cut in the next substream follows from what a line sealed.
fn levels() -> Plan {
    let counters = CounterLayout::Identity;
    let method = TunedMethod { substreams: 5, counters, levels: 3, ..TunedMethod::default() };
    let epsilon = Epsilon::new(50.0).expect("in range");
    Plan::new(Settings { method: Some(Method::Tuned(method)), epsilon, ..settings(Unit::ReplaceOne) })
        .expect("a plan")
}

/// Two lines of one state, neither of which is the one that was shown last: whichever comes back, the stream goes on without anything
/// that followed from what the line had counted.
#[test]
fn nothing_of_a_line_that_was_lost_comes_back_with_a_backup() {
    let root = tempfile::tempdir().expect("a folder");
    let files = ["state/dpsw.redb", "marker/marker"].map(|name| root.path().join(name));
    let read = || files.clone().map(|file| std::fs::read(file).expect("a file"));
    let open = || {
        let (disk, mut make) = (folders(root.path()).expect("free"), || Ok(levels()));
        let keys = SealerKeys::open(&root.path().join("key"), false).expect("keys");
        Sealer::open(disk, keys, Beginning { said: said("1"), plan: &mut make, noise: Noise::off() })
            .expect("opened")
    };
    // Sixty events of one key in every step of twenty ticks.
    let take = |sealer: &mut Sealer, number: u64, key: u64| {
        let worker = Worker::new(sealer.plan().clone(), sealer.keys().stream()).expect("a worker");
        let now = BEGIN + SUBSTREAM * number;
        let id = PartialId { source: 1, batch: number, partition: 0 };
        let (items, times) = ([key; 60], [now; 60]);
        let batch = Batch::integers(&items).at(&times);
        let counted = worker.count(id, now..now + SUBSTREAM, batch).expect("valid");
        let partials = counted.partials.iter().map(|partial| (partial.substream(), partial.to_bytes()));
        let partials = partials.collect();
        let step = Step { start: BEGIN, watermark: now + 5, partials, ..Step::default() };
        sealer.take(ENGINE, number, &step).expect("a step");
        sealer.view().to_bytes()
    };
    let mut sealer = open().0;
    (0..5).for_each(|number| drop(take(&mut sealer, number, 0)));
    drop(sealer);
    let [state, marker] = read();
    let line = |key: u64, steps: u64| {
        std::fs::write(&files[0], &state).expect("room");
        std::fs::write(&files[1], &marker).expect("room");
        let (mut sealer, warning) = open();
        assert_eq!(warning, None);
        (5..steps).for_each(|number| drop(take(&mut sealer, number, key)));
        drop(sealer);
        read()
    };
    let lost = [line(1, 11), line(2, 11)].map(|[state, _]| state);
    let [_, shown] = line(3, 16);
    let resumed = lost.map(|state| {
        std::fs::write(&files[0], state).expect("room");
        std::fs::write(&files[1], &shown).expect("room");
        let (mut sealer, warning) = open();
        assert!(warning.is_some_and(|warning| warning.contains("backup")));
        let first = sealer.view().to_bytes();
        let later: Vec<Vec<u8>> = (18..30).map(|number| take(&mut sealer, number, number % 2)).collect();
        assert!(4 < sealed(&sealer.view()).len());
        (first, later)
    });
    assert!(resumed[0] == resumed[1], "what is shown is the same, to the last byte");
}

#[test]
fn without_its_marker_or_its_state_nobody_goes_on() {
    let root = tempfile::tempdir().expect("a folder");
    let (mut sealer, _) = open(root.path()).expect("opened");
    run(&mut sealer, 0..10);
    drop(sealer);
    let marker = root.path().join("marker/marker");
    let kept = std::fs::read(&marker).expect("a marker");
    std::fs::remove_file(&marker).expect("it is there");
    assert!(matches!(open(root.path()), Err(SealerError::Marker(words)) if words.contains("gone")));
    std::fs::write(&marker, kept).expect("room");
    std::fs::remove_file(root.path().join("state/dpsw.redb")).expect("it is there");
    assert!(matches!(open(root.path()), Err(SealerError::Marker(words)) if words.contains("no state")));
}

#[test]
fn a_state_without_its_marker_is_from_a_backup_also_before_anything_was_sealed() {
    let root = tempfile::tempdir().expect("a folder");
    let (mut sealer, _) = open(root.path()).expect("opened");
    run(&mut sealer, 0..1);
    assert!(sealed(&sealer.view()).is_empty());
    drop(sealer);
    std::fs::remove_file(root.path().join("marker/marker")).expect("it is there");
    assert!(matches!(open(root.path()), Err(SealerError::Marker(words)) if words.contains("gone")));
}

#[test]
fn keys_are_not_made_anew_beside_a_database() {
    let root = tempfile::tempdir().expect("a folder");
    drop(open(root.path()).expect("opened"));
    let key = root.path().join("key");
    std::fs::remove_file(&key).expect("it is there");
    let has_database = folders(root.path()).expect("free").has_database().expect("a folder");
    assert!(has_database && SealerKeys::open(&key, has_database).is_err());
}

#[test]
fn a_finished_state_that_is_older_than_its_marker_is_not_shown() {
    let root = tempfile::tempdir().expect("a folder");
    let (mut sealer, _) = open(root.path()).expect("opened");
    run(&mut sealer, 0..10);
    drop(sealer);
    let [database, marker] = ["state/dpsw.redb", "marker/marker"].map(|name| root.path().join(name));
    let before = [&database, &marker].map(|path| std::fs::read(path).expect("a file"));
    let (mut sealer, _) = open(root.path()).expect("opened");
    sealer.finish(BEGIN + 200).expect("the end");
    drop(sealer);
    let finished = std::fs::read(&database).expect("the state");
    // Another one goes on from before the end, and shows more.
    for (path, bytes) in [&database, &marker].into_iter().zip(before) {
        std::fs::write(path, bytes).expect("room");
    }
    let (mut sealer, _) = open(root.path()).expect("opened");
    run(&mut sealer, 10..30);
    drop(sealer);
    std::fs::write(&database, finished).expect("room");
    assert!(matches!(open(root.path()), Err(SealerError::Marker(_))));
}

#[test]
fn where_presence_is_private_nothing_that_is_seen_tells_how_many_steps_came() {
    let see = |steps: u64| {
        let mut make = || Ok(plan(Unit::AddRemove));
        let beginning = Beginning { said: said("1"), plan: &mut make, noise: Noise::off() };
        let root = tempfile::tempdir().expect("a folder");
        std::fs::write(root.path().join("key"), [7; 64]).expect("room");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(root.path().join("key"), mode).expect("it is ours");
        }
        let keys = SealerKeys::open(&root.path().join("key"), true).expect("the keys");
        let (mut sealer, _) = Sealer::open(Memory::default(), keys, beginning).expect("opened");
        sealer.follow(BEGIN, 1).expect("a clock");
        let mut seen = Vec::new();
        for number in 0..steps {
            sealer.follow(BEGIN + number / 10, 1).expect("a clock");
            assert_eq!(sealer.take(ENGINE, number, &Step::default()).expect("a step"), Taken::Counted);
            seen.push(sealer.view().to_bytes());
        }
        seen.dedup();
        assert!(seen.len() <= 1, "no step changes what is seen");
        sealer.follow(BEGIN + 19, 1).expect("a clock");
        let before_seal = sealer.view().to_bytes();
        sealer.follow(BEGIN + 40, 1).expect("a clock");
        (before_seal, sealer.view().to_bytes())
    };
    assert_eq!(see(0), see(150));
}

/// A step that keeps the clock waiting, a pause, a state that was saved between two seals: none of it is seen.
#[test]
fn where_presence_is_private_what_is_seen_ends_at_instants_that_plan_and_clock_decide() {
    const GRID: u64 = 8;
    let see = |looks: &[u64], steps: u64| {
        let root = tempfile::tempdir().expect("a folder");
        let reopen = || {
            let mut make = || Ok(plan(Unit::AddRemove));
            let keys = SealerKeys::open(&root.path().join("key"), false).expect("the keys");
            let beginning = Beginning { said: said("1"), plan: &mut make, noise: Noise::from_system() };
            Sealer::open(folders(root.path()).expect("folders"), keys, beginning).expect("opened").0
        };
        let mut sealer = reopen();
        let (mut seen, mut number) = (Vec::new(), 0);
        for now in looks {
            sealer.follow(*now, GRID).expect("a clock");
            for _ in 0..steps {
                sealer.take(ENGINE, number, &Step::default()).expect("a step");
                number += 1;
            }
            seen.push(sealer.view().window());
            drop(sealer);
            sealer = reopen();
            seen.push(sealer.view().window());
        }
        seen.dedup();
        seen
    };
    let every: Vec<u64> = (BEGIN..BEGIN + 70).step_by(4).collect();
    // Substreams end every 20 ticks, the clock has instants every 8.
    let ends: Vec<u64> = see(&every, 0).iter().map(|window| window.end).collect();
    assert_eq!(ends, [1000, 1024, 1040, 1064]);
    assert_eq!(see(&every, 0), see(&every, 7), "steps are not seen");
    // Late, or once at the end.
    for looks in [&[BEGIN, 1033, 1047, 1069][..], &[BEGIN, 1069]] {
        let late: Vec<u64> = see(looks, 1).iter().map(|window| window.end).collect();
        assert!(late.iter().all(|end| ends.contains(end)), "{late:?}");
    }
}

#[test]
fn where_presence_is_private_nothing_says_how_much_was_left_out() {
    let mut make = || Ok(plan(Unit::AddRemove));
    let beginning = Beginning { said: said("1"), plan: &mut make, noise: Noise::off() };
    let keys = SealerKeys::draw().expect("randomness");
    let (mut sealer, _) = Sealer::open(Memory::default(), keys, beginning).expect("opened");
    sealer.follow(BEGIN, 1).expect("a clock");
    let late = Step { late: 5, early: 2, ..Step::default() };
    sealer.take(ENGINE, 0, &late).expect("a step");
    assert_eq!(sealer.left_out(), None);
    assert_eq!(
        sealer.follow(BEGIN + 100, 1).expect("a clock"),
        Taken::Sealed,
        "the clock seals without events"
    );
}

#[test]
fn partial_counters_that_come_too_late_or_too_early_leave_the_others_counted() {
    let (mut sealer, _) =
        open_on(Memory::default(), SealerKeys::draw().expect("randomness"), Noise::off()).expect("opened");
    run(&mut sealer, 0..10);
    let before = sealer.sealed_until().expect("it runs");
    let worker = Worker::new(sealer.plan().clone(), sealer.keys().stream()).expect("a worker");
    let mut step = Step { watermark: 1100, late: 2, early: 1, ..Step::default() };
    for (partition, time) in [(0, before - 1), (1, before), (2, 9_000_000)] {
        let id = PartialId { source: 1, batch: 10, partition };
        let counted = worker.count(id, time..time + 1, Batch::integers(&[3]).at(&[time])).expect("valid");
        step.partials
            .extend(counted.partials.iter().map(|partial| (partial.substream(), partial.to_bytes())));
    }
    sealer.take(ENGINE, 10, &step).expect("a step");
    // Without the step's own events, and with the one that was in time.
    let mut sketch = alone(10, StreamKey::from_bytes([1; 32]), Noise::off());
    sketch.extend(Batch::integers(&[3]).at(&[before])).expect("in time");
    sketch.advance(1100).expect("a clock");
    let cells = |view: &WindowView| -> i64 { view.sealed().map(|sealed| sealed.sketch().total()).sum() };
    assert_eq!(cells(&sealer.view()), cells(&sketch.view()));
    assert_eq!(sealer.left_out(), Some((2, 1)), "what the workers say");
}

/// A disk that loses what was not synced when it fails, or some of it.
#[derive(Debug, Clone)]
struct Lossy(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    synced: Vec<u8>,
    now: Vec<u8>,
    /// Writes since the last sync.
    pending: Vec<(usize, Vec<u8>)>,
    marker: Option<Vec<u8>>,
    /// So many writes and syncs succeed.
    left: usize,
}

impl Pages {
    fn spend(&mut self) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the power is off"))?;
        Ok(())
    }

    fn put(pages: &mut Vec<u8>, offset: usize, data: &[u8]) {
        pages.resize(pages.len().max(offset + data.len()), 0);
        pages[offset..offset + data.len()].copy_from_slice(data);
    }
}

impl Lossy {
    /// The power is on again: of the unsynced writes every `keeps`-th is there.
    fn restart(&self, keeps: usize, left: usize) {
        let mut pages = self.0.lock().expect("not poisoned");
        let Pages { synced, pending, .. } = &mut *pages;
        for (index, (offset, data)) in pending.drain(..).enumerate() {
            if index % keeps == keeps - 1 {
                Pages::put(synced, offset, &data);
            }
        }
        pages.now = pages.synced.clone();
        pages.left = left;
    }
}

impl StorageBackend for Lossy {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().expect("not poisoned").now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).expect("a small file");
        out.copy_from_slice(&self.0.lock().expect("not poisoned").now[start..start + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut pages = self.0.lock().expect("not poisoned");
        pages.spend()?;
        let len = usize::try_from(len).expect("a small file");
        pages.now.resize(len, 0);
        pages.synced.resize(len, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut pages = self.0.lock().expect("not poisoned");
        pages.spend()?;
        pages.synced = pages.now.clone();
        pages.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut pages = self.0.lock().expect("not poisoned");
        pages.spend()?;
        let start = usize::try_from(offset).expect("a small file");
        Pages::put(&mut pages.now, start, data);
        pages.pending.push((start, data.to_vec()));
        Ok(())
    }
}

impl Disk for Lossy {
    fn database(&self) -> io::Result<Box<dyn StorageBackend>> {
        Ok(Box::new(self.clone()))
    }

    fn read_marker(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().expect("not poisoned").marker.clone())
    }

    fn write_marker(&self, marker: &[u8]) -> io::Result<()> {
        let mut pages = self.0.lock().expect("not poisoned");
        pages.spend()?;
        pages.marker = Some(marker.to_vec());
        Ok(())
    }

    fn name(&self) -> String {
        "a lossy disk".to_owned()
    }
}

/// Steps until the power goes off after so many writes; what was seen by then.
fn until_off(disk: &Lossy, key: &Path, numbers: u64) -> BTreeMap<(u64, usize), Vec<i32>> {
    let keys = SealerKeys::open(key, false).expect("the keys");
    let Ok((mut sealer, _)) = open_on(disk.clone(), keys, Noise::from_system()) else {
        return BTreeMap::new();
    };
    let mut seen = sealed(&sealer.view());
    for number in sealer.last_step().map_or(0, |last| last + 1)..numbers {
        let step = step(&sealer, number);
        if sealer.take(ENGINE, number, &step).is_err() {
            assert!(matches!(sealer.take(ENGINE, number, &step), Err(SealerError::Broken(_))));
            return seen;
        }
        seen = sealed(&sealer.view());
    }
    seen
}

#[test]
fn a_disk_that_loses_what_was_not_synced_loses_nothing_that_was_seen() {
    const STEPS: u64 = 12;
    let root = tempfile::tempdir().expect("a folder");
    let key = root.path().join("key");
    let mut failures = 0;
    for (writes, keeps) in
        (20..420).step_by(9).flat_map(|writes| [1, 2, 3, usize::MAX].map(|keeps| (writes, keeps)))
    {
        let disk = Lossy(Arc::new(Mutex::new(Pages { left: usize::MAX, ..Pages::default() })));
        // A database that is half made has no steps; the real folders make it under another name.
        drop(open_on(disk.clone(), SealerKeys::open(&key, false).expect("the keys"), Noise::from_system()));
        disk.restart(1, writes);
        let mut seen = until_off(&disk, &key, STEPS);
        for again in 0..40 {
            disk.restart(keeps, if again == 39 { usize::MAX } else { writes });
            let now = until_off(&disk, &key, STEPS);
            if !now.is_empty() {
                assert!(
                    seen.iter().all(|(place, counters)| now.get(place) == Some(counters)),
                    "off after {writes} writes, of which one in {keeps} came through"
                );
                seen = now;
            }
        }
        failures += usize::from(writes < 300);
        let keys = SealerKeys::open(&key, false).expect("the keys");
        let (sealer, _) = open_on(disk, keys, Noise::from_system()).expect("opened");
        assert_eq!(sealer.last_step(), Some(STEPS - 1));
        let wanted = alone(STEPS, sealer.keys().stream(), Noise::off()).view();
        let items =
            |view: &WindowView| -> Vec<i64> { view.sealed().map(|sealed| sealed.sketch().total()).collect() };
        assert_eq!(items(&sealer.view()), items(&wanted), "each event is in its substream once");
    }
    assert!(0 < failures);
}
