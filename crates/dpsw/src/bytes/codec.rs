//! Framed bytes: a magic word, a version, a body and a checksum. Every length is checked against what is left before
//! anything is allocated.

use crate::error::SnapshotError;
use crate::item::keys::Keys;
use crate::item::value::{Item, Kind};
use crate::ratio::Ratio;
use crate::wipe;

/// Bytes of the magic word, the version and the checksum.
const MAGIC_LEN: usize = 8;
const VERSION_LEN: usize = 2;
const CHECKSUM_LEN: usize = 4;

/// Collects the bytes of a frame. Integers are little endian. Frames of secret states are written here as well, so what is left
/// behind when the bytes need more room is wiped.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new(magic: &[u8; MAGIC_LEN], version: u16) -> Self {
        let mut writer = Self(magic.to_vec());
        writer.put_raw(&version.to_le_bytes());
        writer
    }

    fn put_raw(&mut self, bytes: &[u8]) {
        wipe::extend(&mut self.0, bytes);
    }

    /// The frame with its checksum.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let checksum = crc32fast::hash(&self.0);
        self.put_raw(&checksum.to_le_bytes());
        self.0
    }

    pub(crate) fn put_u8(&mut self, value: u8) {
        wipe::push(&mut self.0, value);
    }

    pub(crate) fn put_u32(&mut self, value: u32) {
        self.put_raw(&value.to_le_bytes());
    }

    pub(crate) fn put_u64(&mut self, value: u64) {
        self.put_raw(&value.to_le_bytes());
    }

    pub(crate) fn put_len(&mut self, value: usize) {
        self.put_u64(value as u64);
    }

    pub(crate) fn put_option(&mut self, value: Option<u64>) {
        self.put_u8(value.is_some().into());
        // There with and without a value, so that lengths do not tell them apart.
        self.put_u64(value.unwrap_or(0));
    }

    pub(crate) fn put_bytes(&mut self, value: &[u8]) {
        self.put_len(value.len());
        self.put_raw(value);
    }

    pub(crate) fn put_item(&mut self, item: Item<'_>) {
        match item {
            Item::Integer(value) => self.put_u64(value),
            Item::Bytes(bytes) => self.put_bytes(bytes),
        }
    }

    /// A list of keys whose kind is known.
    pub(crate) fn put_keys(&mut self, keys: &Keys) {
        self.put_len(keys.len());
        (0..keys.len()).for_each(|index| self.put_item(keys.get(index)));
    }

    pub(crate) fn put_cells(&mut self, cells: &[i32]) {
        // Room first: a vector that moved while it is extended would leave counts behind.
        wipe::reserve(&mut self.0, size_of_val(cells));
        self.0.extend(cells.iter().flat_map(|cell| cell.to_le_bytes()));
    }

    /// Seven bits in each byte, the lowest first; the highest bit says that more follow.
    pub(crate) fn put_varint(&mut self, mut value: u32) {
        while 0x7f < value {
            self.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.put_u8(value as u8);
    }

    pub(super) fn put_f64(&mut self, value: f64) {
        self.put_u64(value.to_bits());
    }

    pub(super) fn put_ratio(&mut self, value: Ratio) {
        self.put_u64(value.numerator());
        self.put_u64(value.denominator());
    }
}

/// Reads the body of a frame whose magic word, version and checksum are right.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], magic: &[u8; MAGIC_LEN], known: u16) -> Result<Self, SnapshotError> {
        if bytes.get(..MAGIC_LEN) != Some(magic.as_slice()) {
            return Err(SnapshotError::Foreign);
        }
        let body_start = MAGIC_LEN + VERSION_LEN;
        let body_end = bytes.len().checked_sub(CHECKSUM_LEN).filter(|&end| body_start <= end);
        let body_end = body_end.ok_or(SnapshotError::Truncated)?;
        // Before the checksum: another version may have another one.
        let found = u16::from_le_bytes([bytes[MAGIC_LEN], bytes[MAGIC_LEN + 1]]);
        if found != known {
            return Err(SnapshotError::Version { found, known });
        }
        let (framed, checksum) = bytes.split_at(body_end);
        if crc32fast::hash(framed).to_le_bytes() != checksum {
            return Err(SnapshotError::Checksum);
        }
        Ok(Self { rest: &framed[body_start..] })
    }

    /// Nothing may be left over.
    pub(crate) fn finish(self) -> Result<(), SnapshotError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(SnapshotError::invalid("there are bytes after its end"))
        }
    }

    fn take_bytes(&mut self, len: usize) -> Result<&'a [u8], SnapshotError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(SnapshotError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        Ok(self.take_bytes(N)?.try_into().expect("exactly N bytes were taken"))
    }

    pub(crate) fn read_u8(&mut self) -> Result<u8, SnapshotError> {
        self.read_array::<1>().map(|[value]| value)
    }

    pub(crate) fn read_u32(&mut self) -> Result<u32, SnapshotError> {
        self.read_array().map(u32::from_le_bytes)
    }

    pub(crate) fn read_u64(&mut self) -> Result<u64, SnapshotError> {
        self.read_array().map(u64::from_le_bytes)
    }

    /// A number of elements of at least `element` bytes each, which are all still there.
    pub(crate) fn read_len(&mut self, element: usize) -> Result<usize, SnapshotError> {
        let len = usize::try_from(self.read_u64()?).map_err(|_| SnapshotError::Truncated)?;
        let needed = len.checked_mul(element).ok_or(SnapshotError::Truncated)?;
        // Nothing is allocated for a length that the bytes cannot hold.
        if needed <= self.rest.len() { Ok(len) } else { Err(SnapshotError::Truncated) }
    }

    /// An index below a limit; what it means is said where it is not.
    pub(crate) fn read_index(&mut self, limit: usize, flaw: &'static str) -> Result<usize, SnapshotError> {
        let index = usize::try_from(self.read_u64()?).ok().filter(|&index| index < limit);
        index.ok_or(SnapshotError::invalid(flaw))
    }

    pub(crate) fn read_option(&mut self) -> Result<Option<u64>, SnapshotError> {
        let is_some = self.read_flag()?;
        let value = self.read_u64()?;
        Ok(is_some.then_some(value))
    }

    pub(crate) fn read_flag(&mut self) -> Result<bool, SnapshotError> {
        match self.read_u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(SnapshotError::invalid("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn read_bytes(&mut self) -> Result<&'a [u8], SnapshotError> {
        let len = self.read_len(1)?;
        self.take_bytes(len)
    }

    pub(crate) fn read_item(&mut self, kind: Kind) -> Result<Item<'a>, SnapshotError> {
        Ok(match kind {
            Kind::Integers => Item::Integer(self.read_u64()?),
            Kind::Bytes => Item::Bytes(self.read_bytes()?),
        })
    }

    /// A list of keys of this kind.
    pub(crate) fn read_keys(&mut self, kind: Kind) -> Result<Vec<Item<'a>>, SnapshotError> {
        let len = self.read_len(8)?;
        (0..len).map(|_| self.read_item(kind)).collect()
    }

    pub(crate) fn read_cells(&mut self, count: usize) -> Result<Vec<i32>, SnapshotError> {
        let bytes = self.take_bytes(count.checked_mul(4).ok_or(SnapshotError::Truncated)?)?;
        let cell = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("chunks of four bytes"));
        Ok(bytes.chunks_exact(4).map(cell).collect())
    }

    pub(crate) fn read_varint(&mut self) -> Result<u32, SnapshotError> {
        let mut value = 0_u64;
        // Five bytes hold 35 bits: the last may still be too large for 32.
        for shift in (0..35).step_by(7) {
            let byte = self.read_u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| SnapshotError::invalid("a number is too large"));
            }
        }
        Err(SnapshotError::invalid("a number is too long"))
    }

    pub(super) fn read_f64(&mut self) -> Result<f64, SnapshotError> {
        self.read_u64().map(f64::from_bits)
    }

    pub(super) fn read_ratio(&mut self) -> Result<Ratio, SnapshotError> {
        let (numerator, denominator) = (self.read_u64()?, self.read_u64()?);
        Ratio::new(numerator, denominator).map_err(|_| SnapshotError::invalid("a denominator is zero"))
    }
}
