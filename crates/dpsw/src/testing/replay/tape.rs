//! The seam of the coupled replay: what the sampler makes on one stream is taped, and forced on its neighbour.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::item::keys::Keys;
use crate::item::value::{Item, Kind};
use crate::noise::generator::Generator;
use crate::noise::law::Law;
use crate::plan::search::SearchPlan;
use crate::secret::key_search::KeySearch;

/// Counts of keys, in the order of their arrival.
pub(crate) type Counts = Vec<(Vec<u8>, u64)>;

/// Counters that were sealed.
#[derive(Debug, Clone)]
pub(crate) struct Seal {
    pub(super) law: Law,
    pub(super) exact: Vec<i32>,
    pub(super) noisy: Vec<i32>,
    /// Random words that were taken for them.
    pub(super) draws: usize,
}

/// A look at the keys of a search.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    pub(super) search: u64,
    pub(super) counts: BTreeMap<Vec<u8>, u64>,
    found: Keys,
}

#[derive(Debug, Clone)]
pub(super) enum Entry {
    Seal(Seal),
    Look(Look),
}

/// What one stream sealed and let out.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// What somebody may have seen, in order.
    pub(super) entries: Vec<Entry>,
    /// What the neighbour sealed and let out, which this stream repeats.
    script: Option<Vec<Entry>>,
    /// Nobody will see what is sealed now.
    is_unseen: bool,
    /// How this stream left the script.
    pub(super) strayed: Option<String>,
}

thread_local! {
    static TAPE: RefCell<Option<Tape>> = const { RefCell::new(None) };
}

/// Runs something with a tape: what it seals repeats this script, if there is one.
pub(super) fn taped<T>(script: Option<Vec<Entry>>, run: impl FnOnce() -> T) -> (T, Tape) {
    TAPE.set(Some(Tape { script, ..Tape::default() }));
    let result = run();
    (result, TAPE.take().expect("nobody else takes it"))
}

/// Runs something of which nobody will see anything.
pub(super) fn unseen<T>(run: impl FnOnce() -> T) -> T {
    let set =
        |is_unseen| TAPE.with_borrow_mut(|tape| tape.iter_mut().for_each(|tape| tape.is_unseen = is_unseen));
    set(true);
    let result = run();
    set(false);
    result
}

/// What becomes of counters that have their noise.
pub(crate) fn sealed(exact: Vec<i32>, noisy: &mut [i32], law: Law, generator: &Generator) {
    TAPE.with_borrow_mut(|tape| {
        let Some(tape) = tape.as_mut().filter(|tape| !tape.is_unseen) else { return };
        match tape.next() {
            None => {}
            Some(Entry::Seal(seal)) if seal.law == law && seal.noisy.len() == noisy.len() => {
                noisy.copy_from_slice(&seal.noisy);
            }
            Some(_) => tape.stray("seals other counters"),
        }
        let (noisy, draws) = (noisy.to_vec(), generator.words());
        tape.entries.push(Entry::Seal(Seal { law, exact, noisy, draws }));
    });
}

/// Notes that random bytes are taken: two for each word.
pub(crate) fn note_words(words: &mut usize, bytes: usize) {
    *words += bytes / 2;
}

/// The counts of a search that is to be looked at.
pub(crate) fn counts(search: Option<&KeySearch>, plan: &SearchPlan) -> Counts {
    search.map(|search| search.values_by_key(plan)).unwrap_or_default()
}

/// What becomes of the keys that come out of a search with these counts.
pub(crate) fn found(found: Keys, search: u64, kind: Kind, counts: &Counts) -> Keys {
    TAPE.with_borrow_mut(|tape| {
        let Some(tape) = tape.as_mut().filter(|tape| !tape.is_unseen) else { return found };
        let found = match tape.next() {
            None => found,
            Some(Entry::Look(look)) if look.search == search => arrived(&look.found, kind, counts),
            Some(_) => {
                tape.stray("looks at other keys");
                found
            }
        };
        let look = Look { search, counts: counts.iter().cloned().collect(), found: found.clone() };
        tape.entries.push(Entry::Look(look));
        found
    })
}

/// The same keys in the order in which they arrived on this stream, where they did.
fn arrived(found: &Keys, kind: Kind, counts: &Counts) -> Keys {
    let place =
        |item: &Item<'_>| counts.iter().position(|(key, _)| *key == name(*item)).unwrap_or(usize::MAX);
    let mut items: Vec<Item<'_>> = found.iter().collect();
    items.sort_by_key(place);
    Keys::collect_kind(kind, items.into_iter())
}

/// A key as bytes.
pub(crate) fn name(item: Item<'_>) -> Vec<u8> {
    match item {
        Item::Integer(value) => value.to_le_bytes().to_vec(),
        Item::Bytes(bytes) => bytes.to_vec(),
    }
}

impl Tape {
    /// What is repeated next; `None` where there is no script.
    fn next(&mut self) -> Option<Entry> {
        let script = self.script.as_ref()?;
        let next = script.get(self.entries.len()).cloned();
        if next.is_none() {
            self.stray("seals more");
        }
        next
    }

    fn stray(&mut self, how: &str) {
        let at = self.entries.len();
        self.strayed.get_or_insert_with(|| format!("the neighbour {how} as number {at}"));
    }

    /// Each seal with that of the neighbour, and each look.
    pub(super) fn pairs<'t>(&'t self, other: &'t Self) -> impl Iterator<Item = (&'t Entry, &'t Entry)> {
        self.entries.iter().zip(&other.entries)
    }

    pub(super) fn seals(&self) -> impl Iterator<Item = &Seal> {
        self.entries.iter().filter_map(|entry| if let Entry::Seal(seal) = entry { Some(seal) } else { None })
    }
}
