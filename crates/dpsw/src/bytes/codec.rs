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
        writer.put(&version.to_le_bytes());
        writer
    }

    fn put(&mut self, bytes: &[u8]) {
        wipe::extend(&mut self.0, bytes);
    }

    /// The frame with its checksum.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let checksum = crc32fast::hash(&self.0);
        self.put(&checksum.to_le_bytes());
        self.0
    }

    pub(crate) fn u8(&mut self, value: u8) {
        wipe::push(&mut self.0, value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn len(&mut self, value: usize) {
        self.u64(value as u64);
    }

    pub(crate) fn option(&mut self, value: Option<u64>) {
        self.u8(value.is_some().into());
        self.u64(value.unwrap_or(0));
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.len(value.len());
        self.put(value);
    }

    pub(crate) fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Integer(value) => self.u64(value),
            Item::Bytes(bytes) => self.bytes(bytes),
        }
    }

    /// A list of keys whose kind is known.
    pub(crate) fn keys(&mut self, keys: &Keys) {
        self.len(keys.len());
        (0..keys.len()).for_each(|index| self.item(keys.get(index)));
    }

    pub(crate) fn cells(&mut self, cells: &[i32]) {
        wipe::reserve(&mut self.0, size_of_val(cells));
        self.0.extend(cells.iter().flat_map(|cell| cell.to_le_bytes()));
    }

    /// Seven bits in each byte, the lowest first; the highest bit says that more follow.
    pub(crate) fn varint(&mut self, mut value: u32) {
        while 0x7f < value {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    pub(super) fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    pub(super) fn ratio(&mut self, value: Ratio) {
        self.u64(value.numerator());
        self.u64(value.denominator());
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

    fn take(&mut self, len: usize) -> Result<&'a [u8], SnapshotError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(SnapshotError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        Ok(self.take(N)?.try_into().expect("exactly N bytes were taken"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, SnapshotError> {
        self.array::<1>().map(|[value]| value)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, SnapshotError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, SnapshotError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of elements of at least `element` bytes each, which are all still there.
    pub(crate) fn len(&mut self, element: usize) -> Result<usize, SnapshotError> {
        let len = usize::try_from(self.u64()?).map_err(|_| SnapshotError::Truncated)?;
        let needed = len.checked_mul(element).ok_or(SnapshotError::Truncated)?;
        if needed <= self.rest.len() { Ok(len) } else { Err(SnapshotError::Truncated) }
    }

    pub(crate) fn option(&mut self) -> Result<Option<u64>, SnapshotError> {
        let is_some = self.flag()?;
        let value = self.u64()?;
        Ok(is_some.then_some(value))
    }

    pub(crate) fn flag(&mut self) -> Result<bool, SnapshotError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(SnapshotError::invalid("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], SnapshotError> {
        let len = self.len(1)?;
        self.take(len)
    }

    pub(crate) fn item(&mut self, kind: Kind) -> Result<Item<'a>, SnapshotError> {
        Ok(match kind {
            Kind::Integers => Item::Integer(self.u64()?),
            Kind::Bytes => Item::Bytes(self.bytes()?),
        })
    }

    /// A list of keys of this kind.
    pub(crate) fn keys(&mut self, kind: Kind) -> Result<Vec<Item<'a>>, SnapshotError> {
        let len = self.len(8)?;
        (0..len).map(|_| self.item(kind)).collect()
    }

    pub(crate) fn cells(&mut self, count: usize) -> Result<Vec<i32>, SnapshotError> {
        let bytes = self.take(count.checked_mul(4).ok_or(SnapshotError::Truncated)?)?;
        let cell = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("chunks of four bytes"));
        Ok(bytes.chunks_exact(4).map(cell).collect())
    }

    pub(crate) fn varint(&mut self) -> Result<u32, SnapshotError> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| SnapshotError::invalid("a number is too large"));
            }
        }
        Err(SnapshotError::invalid("a number is too long"))
    }

    pub(super) fn f64(&mut self) -> Result<f64, SnapshotError> {
        self.u64().map(f64::from_bits)
    }

    pub(super) fn ratio(&mut self) -> Result<Ratio, SnapshotError> {
        let (numerator, denominator) = (self.u64()?, self.u64()?);
        Ratio::new(numerator, denominator).map_err(|_| SnapshotError::invalid("a denominator is zero"))
    }
}
