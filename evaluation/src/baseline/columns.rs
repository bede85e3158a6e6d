//! Item → one column per row, by public hash functions.

use dpsw::noise::Generator;

/// One hash function per row.
#[derive(Debug)]
pub(super) struct Columns {
    keys: Box<[u64]>,
    columns: u32,
}

impl Columns {
    /// Draws the functions, once for the life of a method.
    pub(super) fn draw(rows: usize, columns: u32, generator: &mut Generator) -> Self {
        Self { keys: (0..rows).map(|_| generator.next_u64()).collect(), columns }
    }

    pub(super) fn rows(&self) -> usize {
        self.keys.len()
    }

    /// How many cells all rows have together.
    pub(super) fn cells(&self) -> usize {
        self.keys.len() * self.columns as usize
    }

    /// The cell of an item in a row, in an array that holds one row after the other.
    #[inline]
    pub(super) fn cell(&self, row: usize, item: u64) -> usize {
        row * self.columns as usize + self.column(mix(item ^ self.keys[row]))
    }

    /// The item's cell in every row.
    #[inline]
    pub(super) fn of(&self, item: u64) -> impl Iterator<Item = usize> {
        (0..self.rows()).map(move |row| self.cell(row, item))
    }

    /// A bit of the item that is independent of its column.
    #[inline]
    pub(super) fn sign(&self, row: usize, item: u64) -> bool {
        mix(item ^ self.keys[row]) & 1 == 1
    }

    fn column(&self, hash: u64) -> usize {
        (((hash >> 32) * u64::from(self.columns)) >> 32) as usize
    }

    /// Heap bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.keys)
    }
}

/// The finaliser of SplitMix64.
#[inline]
fn mix(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Functions under which no two items of the domain share a cell.
#[cfg(test)]
pub(super) fn injective(rows: usize, columns: u32, domain_len: u64) -> Columns {
    let draw = |seed| {
        let mut generator = dpsw::Noise::seeded(seed).generator().expect("seeded");
        Columns::draw(rows, columns, &mut generator)
    };
    let is_injective = |columns: &Columns| {
        let mut cells: Vec<usize> = (0..domain_len).flat_map(|item| columns.of(item)).collect();
        cells.sort_unstable();
        cells.windows(2).all(|pair| pair[0] < pair[1])
    };
    (0..100).map(draw).find(is_injective).expect("there are enough columns for the domain")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_used_evenly_and_independently() {
        let mut generator = dpsw::Noise::seeded(1).generator().expect("seeded");
        let columns = Columns::draw(2, 8, &mut generator);
        let mut pairs = [0_u32; 2 * 64];
        let items = 64_000;
        for item in 0..items {
            let sign = usize::from(columns.sign(0, item));
            pairs[64 * sign + 8 * columns.cell(0, item) + columns.cell(1, item) - 8] += 1;
        }
        // Chi-square with 127 degrees of freedom exceeds 220 with probability below 1e-6.
        let expected = items as f64 / 128.0;
        let chi: f64 = pairs.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi < 220.0, "chi-square {chi}");
    }
}
