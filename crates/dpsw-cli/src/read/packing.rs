//! How bytes are packed, by what they begin with, and the bytes inside.

use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use anyhow::{Error, Result};

use crate::fault::Fault;

/// Packed bytes that are read at once.
const READ_LEN: usize = 256 * 1024;
/// The most bytes that are looked at to learn what a source holds.
pub(crate) const START_LEN: usize = 64 * 1024;
/// As many bytes tell the packing.
const MAGIC_LEN: usize = 10;

/// The ways in which bytes are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
    /// Not read here, and the command that unpacks it.
    Foreign(&'static str, &'static str),
}

impl Packing {
    /// By the first bytes.
    pub(crate) fn of(start: &[u8]) -> Self {
        // Frames that hold no data may come first.
        let is_skippable = matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        let is_bzip2 = start.starts_with(b"BZh") && start.get(4..10) == Some(b"1AY&SY");
        match start {
            [0x1f, 0x8b, 0x08, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ if is_skippable => Self::Zstd,
            _ if is_bzip2 => Self::Foreign("bzip2", "bzip2 -dc"),
            _ if start.starts_with(b"\xfd7zXZ\0") => Self::Foreign("xz", "xz -dc"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Foreign("lz4", "lz4 -dc"),
            [b'P', b'K', 3, 4, ..] => Self::Foreign("zip", "unzip -p"),
            _ => Self::Plain,
        }
    }

    /// By the name of a file: what it promises.
    pub(crate) fn of_name(path: &Path) -> Self {
        match extension(path).as_deref() {
            Some("gz") => Self::Gzip,
            Some("zst" | "zstd") => Self::Zstd,
            _ => Self::Plain,
        }
    }

    /// Refuses a file whose name promises what its bytes are not.
    pub(crate) fn check_name(self, path: &Path) -> Result<()> {
        match Self::of_name(path) {
            Self::Plain => Ok(()),
            _ if self != Self::Plain => Ok(()),
            _ => Err(Fault::data(
                "its name says that it is packed, but its bytes are not: it is damaged, or it is plain and needs another name",
            )),
        }
    }

    /// An error while unpacking: what is packed and cannot be unpacked is damaged, whatever the system says of it.
    pub(crate) fn damage(self, error: io::Error) -> Error {
        match self {
            Self::Plain => error.into(),
            _ => Fault::data(format!("it is damaged or cut off: {error}")),
        }
    }

    /// The name of what is unpacked here.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
            Self::Plain | Self::Foreign(..) => None,
        }
    }
}

/// The bytes inside, and how they are packed.
pub(crate) fn unpacked(mut source: impl Read + 'static) -> Result<(Packing, Box<dyn Read>)> {
    let start = read_until(&mut source, |start| MAGIC_LEN <= start.len() || start.contains(&b'\n'))?;
    let packing = Packing::of(&start);
    let source = Cursor::new(start).chain(source);
    let inside: Box<dyn Read> = match packing {
        Packing::Plain => Box::new(source),
        Packing::Gzip => {
            Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(READ_LEN, source)))
        }
        Packing::Zstd => Box::new(zstd::Decoder::new(source)?),
        Packing::Foreign(name, command) => {
            return Err(Fault::data(format!(
                "it is packed with {name}, which is not read here; unpack it into a pipe: {command} FILE | dpsw ..."
            )));
        }
    };
    Ok((packing, inside))
}

/// The first bytes: as many as are enough, as there are, or as are looked at at most.
pub(crate) fn read_until(source: &mut impl Read, is_enough: impl Fn(&[u8]) -> bool) -> io::Result<Vec<u8>> {
    let mut start = vec![0; START_LEN];
    let mut len = 0;
    while len < START_LEN && !is_enough(&start[..len]) {
        match source.read(&mut start[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    start.truncate(len);
    Ok(start)
}

/// The end of a name, in small letters.
pub(crate) fn extension(path: &Path) -> Option<String> {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packings_are_told_by_their_first_bytes() {
        for (start, wanted) in [
            (&b"\x1f\x8b\x08\0"[..], "gzip"),
            (b"\x28\xb5\x2f\xfd", "zstd"),
            (b"\x50\x2a\x4d\x18", "zstd"),
            (b"BZh91AY&SY\x01", "bzip2"),
            (b"\xfd7zXZ\0", "xz"),
            (b"\x04\x22\x4d\x18", "lz4"),
            (b"PK\x03\x04", "zip"),
            (b"BZh9 is a lovely key\n", "plain"),
            (b"PKW\n", "plain"),
            (b"\x1f\x8b", "plain"),
            (b"", "plain"),
        ] {
            let name = match Packing::of(start) {
                Packing::Plain => "plain",
                Packing::Gzip => "gzip",
                Packing::Zstd => "zstd",
                Packing::Foreign(name, _) => name,
            };
            assert_eq!(name, wanted, "{start:?}");
        }
    }
}
