//! Exact counts of one range, while it fills. Secret: they can be added to, noised and sealed, but not read.

use zeroize::Zeroizing;

use crate::bytes::codec::{Reader, Writer};
use crate::error::SnapshotError;
use crate::item::hash::cell_of;
use crate::item::index::Index;
use crate::item::mapping::{Columns, Mapping, Shape};
use crate::item::pins::PinIndex;
use crate::item::value::{Item, Kind};
use crate::noise::generator::Generator;
use crate::noise::table::Table;
use crate::plan::limits::{ITEMS_MAX, Width};
use crate::sealed::levels::CountedKeys;
use crate::sealed::sketch::SealedSketch;

/// A counter stops here, so that count and noise fit in 32 bits. Stopping each counter by itself moves no counter by
/// more than one when an event is added, removed or replaced, so the noise still covers it.
const COUNT_MAX: i32 = 1 << 30;

/// Exact counters. No `Clone`, and a `Debug` that shows the shape alone; wiped when dropped. Their bytes are part of
/// partial counters and of the encrypted state, and of nothing else.
pub(crate) struct Counters {
    shape: Shape,
    /// Items counted, null items included.
    items: u64,
    cells: Zeroizing<Vec<i32>>,
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Counters({} x {})", self.shape.rows, self.shape.columns)
    }
}

/// The choice whether a sealed sketch says how many items were counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    Public,
    Private,
}

impl Counters {
    /// Of this shape, with so many pinned keys behind them.
    pub(crate) fn new(shape: Shape, pinned: u32) -> Self {
        Self { shape, items: 0, cells: Zeroizing::new(vec![0; shape.cells() + pinned as usize]) }
    }

    /// The counters of keys that have their own: behind hashed ones, if there are some.
    fn own_cells(&mut self) -> &mut [i32] {
        let hashed = self.shape.cells();
        // Where every key has its own counter nothing stands in front of them.
        let start = if hashed < self.cells.len() { hashed } else { 0 };
        &mut self.cells[start..]
    }

    pub(crate) fn count_integers(&mut self, items: &[u64], mapping: &Mapping) {
        if self.is_near_full(items.len()) {
            return self.count_clamped(items.iter().flat_map(|&item| mapping.cells(Item::Integer(item))));
        }
        if let Columns::Range = mapping.columns {
            return self.count_range(items);
        }
        let key = mapping.fingerprint_key;
        self.count_by_fingerprint(items.iter().map(|&item| key.hash_integer(item)), mapping);
    }

    /// Counts items of either kind.
    pub(crate) fn count_words(&mut self, kind: Kind, words: &[u64], mapping: &Mapping) {
        match kind {
            Kind::Integers => self.count_integers(words, mapping),
            Kind::Bytes => self.count_fingerprints(words, mapping),
        }
        planted!(fault::counted(&mut self.cells, kind, words, mapping));
    }

    /// Takes null items.
    pub(crate) fn count_nulls(&mut self, items: usize) {
        self.items += items as u64;
    }

    /// Counts byte strings by their fingerprints.
    pub(crate) fn count_fingerprints(&mut self, fingerprints: &[u64], mapping: &Mapping) {
        if self.is_near_full(fingerprints.len()) {
            return self.count_clamped(
                fingerprints.iter().flat_map(|&fingerprint| mapping.hashed_cells(fingerprint)),
            );
        }
        self.count_by_fingerprint(fingerprints.iter().copied(), mapping);
    }

    fn count_by_fingerprint(&mut self, fingerprints: impl Iterator<Item = u64>, mapping: &Mapping) {
        match (&mapping.columns, &mapping.pinned) {
            (Columns::Hashed(keys), Some(pinned)) => self.count_pinned(fingerprints, keys, pinned),
            (Columns::Hashed(keys), None) => self.count_hashed(fingerprints, keys),
            (Columns::Listed(index), _) => self.count_listed(fingerprints, index),
            (Columns::Range, _) => unreachable!("a range counts by the integers themselves"),
        }
    }

    /// Adds to the number of items; true if that many could take some counter past its end.
    fn is_near_full(&mut self, items: usize) -> bool {
        self.items += items as u64;
        // No counter exceeds the number of items, so none has to be looked at until then.
        COUNT_MAX as u64 <= self.items
    }

    #[cold]
    fn count_clamped(&mut self, cells: impl Iterator<Item = usize>) {
        for cell in cells {
            self.cells[cell] = (self.cells[cell] + 1).min(COUNT_MAX);
        }
    }

    fn count_range(&mut self, items: &[u64]) {
        let cells = &mut self.cells[..];
        for &item in items {
            // An integer outside the list has taken its position and counts nowhere (PRIVACY.md: rule 13).
            if let Some(cell) = usize::try_from(item).ok().and_then(|place| cells.get_mut(place)) {
                *cell += 1;
            }
        }
    }

    fn count_listed(&mut self, fingerprints: impl Iterator<Item = u64>, index: &Index) {
        // An item outside the list has taken its position and counts nowhere (PRIVACY.md: rule 13).
        for place in fingerprints.filter_map(|fingerprint| index.find_key(fingerprint)) {
            self.cells[place] += 1;
        }
    }

    /// Pinned keys count in their own counters, others in the rows.
    fn count_pinned(&mut self, fingerprints: impl Iterator<Item = u64>, keys: &[u64], pinned: &PinIndex) {
        match keys.len() {
            2 => self.count_pinned_rows(2, fingerprints, keys, pinned),
            3 => self.count_pinned_rows(3, fingerprints, keys, pinned),
            rows => self.count_pinned_rows(rows, fingerprints, keys, pinned),
        }
    }

    /// Without branches, which the processor could not foresee. Inlined so that the usual numbers of rows are unrolled.
    #[inline(always)]
    fn count_pinned_rows(
        &mut self,
        rows: usize,
        fingerprints: impl Iterator<Item = u64>,
        keys: &[u64],
        pinned: &PinIndex,
    ) {
        let (keys, columns) = (&keys[..rows], self.shape.columns);
        let (hashed, own) = self.cells.split_at_mut(self.shape.cells());
        for fingerprint in fingerprints {
            let slot = pinned.find_slot(fingerprint);
            let is_pinned = i32::from(slot != 0);
            // Others add 0 to the first slot, and pinned keys add 0 to the rows: an event counts on one side alone, else it
            // would cost up to twice epsilon (PRIVACY.md: rule 33).
            own[slot - usize::from(slot != 0)] += is_pinned;
            for (row, key) in keys.iter().enumerate() {
                hashed[cell_of(fingerprint, (row, *key), columns)] += 1 - is_pinned;
            }
        }
    }

    fn count_hashed(&mut self, fingerprints: impl Iterator<Item = u64>, keys: &[u64]) {
        match keys.len() {
            1 => self.count_rows::<1>(fingerprints, keys),
            2 => self.count_rows::<2>(fingerprints, keys),
            3 => self.count_rows::<3>(fingerprints, keys),
            4 => self.count_rows::<4>(fingerprints, keys),
            5 => self.count_rows::<5>(fingerprints, keys),
            _ => self.count_any_rows(fingerprints, keys),
        }
    }

    fn count_rows<const ROWS: usize>(&mut self, fingerprints: impl Iterator<Item = u64>, keys: &[u64]) {
        // An array of known length lets the compiler unroll the loop over rows.
        let keys: [u64; ROWS] = keys.try_into().expect("the caller matched the number of rows");
        let columns = self.shape.columns;
        let cells = &mut self.cells[..];
        for fingerprint in fingerprints {
            for (row, key) in keys.iter().enumerate() {
                cells[cell_of(fingerprint, (row, *key), columns)] += 1;
            }
        }
    }

    fn count_any_rows(&mut self, fingerprints: impl Iterator<Item = u64>, keys: &[u64]) {
        let columns = self.shape.columns;
        for fingerprint in fingerprints {
            for (row, key) in keys.iter().enumerate() {
                self.cells[cell_of(fingerprint, (row, *key), columns)] += 1;
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.items = self.items.saturating_add(other.items);
        for (cell, more) in self.cells.iter_mut().zip(other.cells.iter()) {
            // Stops where counting stops, so that sums of parts leave room for the noise as well.
            *cell = cell.saturating_add(*more).min(COUNT_MAX);
        }
    }

    pub(crate) fn copy(&self) -> Self {
        Self { shape: self.shape, items: self.items, cells: self.cells.clone() }
    }

    /// The exact counts, for bytes that stay inside the trust boundary.
    pub(crate) fn write_to(&self, writer: &mut Writer) {
        writer.put_u64(self.items);
        writer.put_cells(&self.cells);
    }

    pub(crate) fn read_from(
        reader: &mut Reader<'_>,
        shape: Shape,
        pinned: u32,
    ) -> Result<Self, SnapshotError> {
        let items = reader.read_u64()?;
        let cells = Zeroizing::new(reader.read_cells(shape.cells() + pinned as usize)?);
        // No stream can have counted these: a cell is at most the number of items.
        if ITEMS_MAX < items
            || cells.iter().any(|&cell| !(0..=COUNT_MAX).contains(&cell) || items < cell as u64)
        {
            return Err(SnapshotError::invalid("its counts are out of range"));
        }
        Ok(Self { shape, items, cells })
    }

    /// The same without the counters that are zero, where that is shorter.
    pub(crate) fn write_short(&self, writer: &mut Writer) {
        let varint_len = |value: u32| value.max(1).ilog2() as usize / 7 + 1;
        let len: usize = self.nonzero_cells().map(|(gap, count)| varint_len(gap) + varint_len(count)).sum();
        // The length follows the counts. That is safe for partial counters, which stay inside the cluster, and only there.
        let is_sparse = 8 + len < 4 * self.cells.len();
        writer.put_u8(is_sparse.into());
        if !is_sparse {
            return self.write_to(writer);
        }
        writer.put_u64(self.items);
        writer.put_len(self.nonzero_cells().count());
        for (gap, count) in self.nonzero_cells() {
            writer.put_varint(gap);
            writer.put_varint(count);
        }
    }

    /// What [`write_short`](Self::write_short) wrote of hashed or listed counters.
    pub(crate) fn read_short(reader: &mut Reader<'_>, shape: Shape) -> Result<Self, SnapshotError> {
        if !reader.read_flag()? {
            return Self::read_from(reader, shape, 0);
        }
        // A gap and a count take at least a byte each.
        let (items, count) = (reader.read_u64()?, reader.read_len(2)?);
        let out_of_range = || SnapshotError::invalid("its counts are out of range");
        let mut counters = Self { items, ..Self::new(shape, 0) };
        let mut next = 0_usize;
        for _ in 0..count {
            let cell = next + reader.read_varint()? as usize;
            let count = reader.read_varint()?;
            let is_right = (1..=COUNT_MAX as u32).contains(&count) && u64::from(count) <= items;
            *counters.cells.get_mut(cell).filter(|_| is_right).ok_or_else(out_of_range)? = count as i32;
            next = cell + 1;
        }
        if ITEMS_MAX < items { Err(out_of_range()) } else { Ok(counters) }
    }

    /// The counters above zero, each as the number of zeros before it and its count.
    fn nonzero_cells(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut next = 0;
        self.cells.iter().enumerate().filter(|(_, count)| **count != 0).map(move |(cell, &count)| {
            let gap = (cell - next) as u32;
            next = cell + 1;
            (gap, count as u32)
        })
    }

    #[cfg(test)]
    pub(crate) fn exact_counts(&self) -> (&[i32], u64) {
        (&self.cells, self.items)
    }

    pub(crate) fn clear(&mut self) {
        self.items = 0;
        // The array is used again, and every range starts at zero (PRIVACY.md: rule 2).
        self.cells.fill(0);
    }

    /// Takes the counts of some keys out, with noise. How many items they are is not known of them.
    pub(crate) fn seal_keys(
        &mut self,
        keys: CountedKeys<'_>,
        width: Width,
        table: &Table,
        generator: Generator,
    ) -> SealedSketch {
        let own = self.own_cells();
        let mut taken = Zeroizing::new(match keys {
            CountedKeys::All => own.to_vec(),
            CountedKeys::Places(places) => places.iter().map(|&place| own[place as usize]).collect(),
        });
        // What a slice has taken out must not be there when the whole is sealed: an event counts in one slice of its
        // key (PRIVACY.md: rule 33).
        match keys {
            CountedKeys::All => own.fill(0),
            CountedKeys::Places(places) => places.iter().for_each(|&place| own[place as usize] = 0),
        }
        planted!(let exact = fault::exact(&taken));
        let shape = Shape { rows: 1, columns: taken.len() as u32 };
        // No number of items: of some keys it would be a count without noise (PRIVACY.md: rule 39).
        let sealed = SealedSketch::new(shape, &table.noised(&mut taken, generator), None, width);
        planted!(let sealed = fault::sealed_keys(sealed, &exact, table.law()));
        sealed
    }

    /// Adds the noise in place: afterwards the exact counts are nowhere, and the counters are of no more use. The number
    /// of items stays where it is public.
    pub(crate) fn seal(
        &mut self,
        total: Total,
        width: Width,
        table: &Table,
        generator: Generator,
    ) -> SealedSketch {
        planted!(let exact = fault::exact(&self.cells[..self.shape.cells()]));
        // Where presence is private the exact number goes no further (PRIVACY.md: rule 18).
        let items = match total {
            Total::Public => Some(self.items),
            Total::Private => None,
        };
        // Uses the generator up, so that no other range can have the same noise (PRIVACY.md: rule 2).
        let noised = table.noised(&mut self.cells[..self.shape.cells()], generator);
        let sealed = SealedSketch::new(self.shape, &noised, items, width);
        planted!(let sealed = fault::sealed(sealed, &exact, self.items, table.law()));
        sealed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::item::hash::StreamKey;
    use crate::item::keys::Keys;
    use crate::noise::generator::Noise;
    use crate::noise::law::Law;

    fn mapping(shape: Shape, columns: Columns) -> Mapping {
        let fingerprint_key = StreamKey::from_bytes([3; 32]).fingerprint_key();
        Mapping { shape, fingerprint_key, columns, pinned: None }
    }

    /// Hashed with one to seven rows, with two pinned keys, a list and a range.
    fn mappings() -> Vec<Mapping> {
        let hashed = |rows: u32| {
            let keys = (1..=u64::from(rows))
                .map(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
                .collect::<Vec<_>>();
            mapping(Shape { rows, columns: 5 }, Columns::Hashed(keys.into()))
        };
        let pinned = hashed(2);
        let slots = [3, 12].map(|item| pinned.fingerprint_key.hash_integer(item)).into_iter().zip(0..);
        let index = PinIndex::new(&slots.collect::<Vec<_>>());
        let pinned = Mapping { pinned: Some(Arc::new(index)), ..pinned };
        let identity = Shape { rows: 1, columns: 5 };
        let range = mapping(identity, Columns::Range);
        let index = Index::new(&Keys::integers(10..15), range.fingerprint_key);
        let listed = mapping(identity, Columns::Listed(Arc::new(index)));
        (1..=7).map(hashed).chain([pinned, listed, range]).collect()
    }

    const ITEMS: [u64; 8] = [0, 3, 3, 4, 12, 14, 77, u64::MAX];

    fn pinned(mapping: &Mapping) -> u32 {
        if mapping.pinned.is_some() { 2 } else { 0 }
    }

    /// Starts with this many items in all and in each cell.
    fn started(mapping: &Mapping, items: u64, each: i32) -> Counters {
        let mut counters = Counters::new(mapping.shape, pinned(mapping));
        counters.items = items;
        counters.cells.fill(each);
        counters
    }

    #[test]
    fn an_item_moves_its_cell_in_each_row_by_one_also_where_counters_are_nearly_full() {
        for mapping in mappings() {
            let mut wanted = vec![0; mapping.shape.cells() + pinned(&mapping) as usize];
            ITEMS
                .iter()
                .flat_map(|&item| mapping.cells(Item::Integer(item)))
                .for_each(|cell| wanted[cell] += 1);
            assert!(wanted.iter().any(|&count| 0 < count));
            for items in [0, COUNT_MAX as u64 - 8, COUNT_MAX as u64] {
                let mut counters = started(&mapping, items, 0);
                counters.count_words(Kind::Integers, &ITEMS, &mapping);
                counters.count_nulls(2);
                assert_eq!(counters.exact_counts(), (&wanted[..], items + 10), "{mapping:?}");
                if matches!(mapping.columns, Columns::Range) {
                    continue;
                }
                let fingerprints = ITEMS.map(|item| mapping.fingerprint_key.hash_integer(item));
                let mut counters = started(&mapping, items, 0);
                counters.count_words(Kind::Bytes, &fingerprints, &mapping);
                assert_eq!(counters.exact_counts(), (&wanted[..], items + 8), "{mapping:?}");
            }
        }
    }

    /// Two rows and so many others, and the keys 3 and 77 on the slots 2 and 0 of three.
    fn pinning(rows: u32) -> Mapping {
        let mapping = mappings().swap_remove(rows as usize - 1);
        let slots = [(3, 2), (77, 0)].map(|(item, slot)| (mapping.fingerprint_key.hash_integer(item), slot));
        Mapping { pinned: Some(Arc::new(PinIndex::new(&slots))), ..mapping }
    }

    /// Runs of pinned and of other items, longer than a block.
    fn long_run() -> Vec<u64> {
        let runs = [(3, 5), (4, 130), (77, 300), (12, 127), (3, 1), (0, 1), (77, 2), (14, 256), (4, 1)];
        runs.iter().flat_map(|&(item, len)| std::iter::repeat_n(item, len)).collect()
    }

    #[test]
    fn a_pinned_item_counts_in_its_own_counter_and_others_in_each_row() {
        for (rows, items) in
            [1, 2, 3, 7].into_iter().flat_map(|rows| [(rows, long_run()), (rows, ITEMS.to_vec())])
        {
            let mapping = pinning(rows);
            let (cells, key) = (mapping.shape.cells(), mapping.fingerprint_key);
            let mut wanted = vec![0; cells + 3];
            for &item in &items {
                match item {
                    3 => wanted[cells + 2] += 1,
                    77 => wanted[cells] += 1,
                    _ => mapping.rows().cells_of(key.hash_integer(item)).for_each(|cell| wanted[cell] += 1),
                }
            }
            for before in
                [0, COUNT_MAX as u64 - items.len() as u64 - 1, COUNT_MAX as u64 - 8, COUNT_MAX as u64]
            {
                let fingerprints: Vec<u64> = items.iter().map(|&item| key.hash_integer(item)).collect();
                for (kind, words) in [(Kind::Integers, &items), (Kind::Bytes, &fingerprints)] {
                    let mut counters = Counters::new(mapping.shape, 3);
                    counters.items = before;
                    counters.count_words(kind, words, &mapping);
                    assert_eq!(
                        counters.exact_counts(),
                        (&wanted[..], before + items.len() as u64),
                        "{mapping:?}"
                    );
                }
            }
            let mut full = Counters::new(mapping.shape, 3);
            full.items = COUNT_MAX as u64;
            full.cells.fill(COUNT_MAX - 1);
            full.count_integers(&items, &mapping);
            let ends = wanted.iter().map(|&count| COUNT_MAX - 1 + count.min(1));
            assert!(ends.eq(full.cells.iter().copied()), "each stops at its end");
        }
    }

    /// What is behind hashed counters is taken out alone, and the rows without it.
    #[test]
    fn own_counters_are_sealed_apart_from_the_rows() {
        let table = Table::new(Law::Gaussian { variance: 2 });
        let mapping = pinning(2);
        let mut counters = Counters::new(mapping.shape, 3);
        counters.count_integers(&[3, 77, 3, 4, 12], &mapping);
        let generator = || Noise::off().generator().expect("noise is off");
        let cells = mapping.shape.cells();
        let one = counters.seal_keys(CountedKeys::Places(&[2]), Width::Narrow, &table, generator());
        assert_eq!((one.cells(), one.total()), (vec![2], 2));
        let all = counters.seal_keys(CountedKeys::All, Width::Narrow, &table, generator());
        assert_eq!((all.cells(), all.shape().columns), (vec![1, 0, 0], 3), "each count is taken out once");
        let rows = counters.seal(Total::Private, Width::Narrow, &table, generator());
        assert_eq!((rows.shape(), rows.cells().len(), rows.total()), (mapping.shape, cells, 2));
    }

    #[test]
    fn a_counter_stops_at_its_end() {
        for mapping in mappings() {
            let mut counters = started(&mapping, COUNT_MAX as u64 - 1, COUNT_MAX - 1);
            counters.count_integers(&ITEMS, &mapping);
            assert_eq!(counters.cells.iter().max(), Some(&(1 << 30)));
            let more = started(&mapping, 5, 5);
            counters.add(&more);
            assert!(counters.cells.iter().all(|&count| count == 1 << 30));
            assert_eq!(counters.items, (1 << 30) + 12);
        }
    }

    fn read(items: u64, cells: &[i32]) -> Result<Counters, SnapshotError> {
        let shape = Shape { rows: 1, columns: cells.len() as u32 };
        let mut counters = Counters::new(shape, 0);
        (counters.items, *counters.cells) = (items, cells.to_vec());
        let mut writer = Writer::new(b"TESTTEST", 1);
        counters.write_to(&mut writer);
        let bytes = writer.finish();
        Counters::read_from(&mut Reader::new(&bytes, b"TESTTEST", 1)?, shape, 0)
    }

    #[test]
    fn saved_counters_that_cannot_be_are_refused() {
        for (items, cells) in [(5, [0, 5]), (ITEMS_MAX, [1, 1 << 30])] {
            let counters = read(items, &cells).expect("counters");
            assert_eq!(counters.exact_counts(), (&cells[..], items));
        }
        for (items, cells) in
            [(5, [0, 6]), (5, [-1, 3]), (ITEMS_MAX + 1, [0, 0]), (1 << 40, [0, (1 << 30) + 1])]
        {
            assert!(read(items, &cells).is_err(), "{items} {cells:?}");
        }
    }

    #[test]
    fn sealing_keeps_the_number_of_items_only_where_it_is_public() {
        let table = Table::new(Law::Gaussian { variance: 2 });
        let shape = Shape { rows: 1, columns: 2 };
        for (total, items) in [(Total::Public, Some(9)), (Total::Private, None)] {
            let mut counters = started(&mapping(shape, Columns::Range), 9, 4);
            let copy = counters.copy();
            assert_eq!(copy.exact_counts(), (&[4, 4][..], 9));
            let generator = || Noise::off().generator().expect("noise is off");
            let sealed = counters.seal(total, Width::Wide, &table, generator());
            assert_eq!((sealed.items(), sealed.cells()), (items, vec![4, 4]));
            counters.clear();
            assert_eq!(counters.exact_counts(), (&[0, 0][..], 0));
            assert_eq!(format!("{counters:?}"), "Counters(1 x 2)");
        }
    }
}
