//! The start of a source: its name and first bytes tell its format, once.

use std::io::{Chain, Cursor, Read};
use std::path::Path;

use anyhow::Result;

use crate::args::Format;
use crate::read::content::{self, Content};
use crate::read::file;
use crate::read::packing::{self, Packing};

/// The format and delimiter that were told and need not be looked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    pub(crate) format: Option<Format>,
    pub(crate) delimiter: Option<u8>,
}

/// The start of a source, and what it tells.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) name: String,
    pub(crate) format: Format,
    pub(crate) content: Content,
    pub(crate) packing: Packing,
    /// The first bytes, unpacked.
    pub(crate) bytes: Vec<u8>,
    /// Whether the format was told instead of looked for.
    is_told: bool,
}

/// A source, unpacked, from its first byte on.
pub(crate) type Source = Chain<Cursor<Vec<u8>>, Box<dyn Read>>;

impl Start {
    /// Looks at a source. It is read from its first byte on by what is returned beside.
    pub(crate) fn read(path: &Path, source: impl Read + 'static, told: Told) -> Result<(Self, Source)> {
        let (packing, mut inside) = packing::unpacked(source)?;
        packing.check_name(path)?;
        let bytes = packing::read_until(&mut inside, content::is_enough);
        let bytes = bytes.map_err(|error| packing.damage(error))?;
        let source = Cursor::new(bytes.clone()).chain(inside);
        Ok((Self::new(path, packing, bytes, told)?, source))
    }

    /// What a name and these bytes tell.
    pub(crate) fn new(path: &Path, packing: Packing, bytes: Vec<u8>, told: Told) -> Result<Self> {
        content::check_encoding(&bytes)?;
        let content = Content::of(&bytes);
        let format = told.format.unwrap_or_else(|| choose(path, content, told.delimiter));
        Ok(Self { name: file::name(path), format, content, packing, bytes, is_told: told.format.is_some() })
    }

    /// Whether it comes in rows instead of bytes.
    pub(crate) fn is_columnar(&self) -> bool {
        matches!(self.format, Format::Parquet | Format::Arrow)
    }

    /// What its bytes alone tell, for people.
    pub(crate) fn remarks(&self, path: &Path) -> Vec<String> {
        let name = &self.name;
        let packing = self.packing.name().filter(|_| self.packing != Packing::of_name(path));
        let looks = self.looks().filter(|_| !self.is_told && Some(self.format) != format_of_name(path));
        let packing = packing.map(|packing| format!("{name} is packed with {packing} and is unpacked"));
        let looks = looks.map(|looks| format!("{name} looks like {looks}"));
        packing.into_iter().chain(looks).collect()
    }

    /// The format in words, if the bytes look like it.
    fn looks(&self) -> Option<&'static str> {
        match self.format {
            format if Some(format) != self.content.format() => None,
            Format::AccessLog => Some("an access log and is read as one; --format lines takes whole lines"),
            Format::Ndjson => Some("JSON documents and is read as such; --format lines takes whole lines"),
            Format::Parquet => Some("Parquet and is read as such"),
            _ => Some("Arrow and is read as such"),
        }
    }
}

/// The format of a file of this name, if the name tells.
pub(crate) fn format_of_name(path: &Path) -> Option<Format> {
    let plain = match Packing::of_name(path) {
        Packing::Plain => path.to_owned(),
        _ => path.with_extension(""),
    };
    let name = plain.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    match packing::extension(&plain).as_deref() {
        Some("csv") => Some(Format::Csv),
        Some("tsv" | "tab") => Some(Format::Tsv),
        Some("ndjson" | "jsonl" | "json") => Some(Format::Ndjson),
        Some("parquet" | "pq") => Some(Format::Parquet),
        Some("arrow" | "arrows" | "ipc" | "feather") => Some(Format::Arrow),
        // Rotated logs end in a number.
        _ if name.starts_with("access") && (name.contains(".log") || name.contains("_log")) => {
            Some(Format::AccessLog)
        }
        _ => None,
    }
}

/// Bytes that no text begins with are certain, the name of a table or its delimiter is meant, and what other text looks like
/// is better than its name.
fn choose(path: &Path, content: Content, delimiter: Option<u8>) -> Format {
    let name = format_of_name(path);
    let looks = content.format();
    let delimited = delimiter.map(|byte| if byte == b'\t' { Format::Tsv } else { Format::Csv });
    let table = name.filter(|name| matches!(name, Format::Csv | Format::Tsv)).or(delimited);
    looks.filter(|_| content.is_columnar()).or(table).or(looks).or(name).unwrap_or(Format::Lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_format() {
        for (name, format, packed) in [
            ("a.csv", Some(Format::Csv), Packing::Plain),
            ("a.TSV.gz", Some(Format::Tsv), Packing::Gzip),
            ("a.txt.zst", None, Packing::Zstd),
            ("a.jsonl", Some(Format::Ndjson), Packing::Plain),
            ("access.log", Some(Format::AccessLog), Packing::Plain),
            ("access_log.3.gz", Some(Format::AccessLog), Packing::Gzip),
            ("error.log", None, Packing::Plain),
            ("t.parquet", Some(Format::Parquet), Packing::Plain),
            ("t.feather", Some(Format::Arrow), Packing::Plain),
            ("-", None, Packing::Plain),
        ] {
            assert_eq!(
                (format_of_name(Path::new(name)), Packing::of_name(Path::new(name))),
                (format, packed),
                "{name}"
            );
        }
    }

    /// A source that gives at most so many bytes at a time.
    struct Slow {
        bytes: Cursor<Vec<u8>>,
        size: usize,
    }

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let len = buffer.len().min(self.size);
            self.bytes.read(&mut buffer[..len])
        }
    }

    fn read(bytes: &[u8], size: usize) -> Result<(Start, Vec<u8>)> {
        let slow = Slow { bytes: Cursor::new(bytes.to_vec()), size };
        let (start, mut source) = Start::read(Path::new("x"), slow, Told::default())?;
        let mut all = Vec::new();
        source.read_to_end(&mut all)?;
        Ok((start, all))
    }

    fn samples() -> Vec<(Vec<u8>, Format)> {
        let log = "h - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 1\n";
        vec![
            (b"a\nb\n".repeat(50), Format::Lines),
            (b"a".to_vec(), Format::Lines),
            (vec![], Format::Lines),
            (b"\xef\xbb\xbf{\"a\":1}\r\n".to_vec(), Format::Ndjson),
            (log.repeat(3).into_bytes(), Format::AccessLog),
            (b"PAR1 and more".to_vec(), Format::Parquet),
            (b"ARROW1\0\0 and more".to_vec(), Format::Arrow),
            (b"\xff\xff\xff\xff\x88\x01\0\0\x10".to_vec(), Format::Arrow),
        ]
    }

    #[test]
    fn a_source_in_pieces_is_known_as_a_whole_one_is_and_no_byte_is_lost() {
        for (bytes, format) in samples() {
            for size in 1..=bytes.len().max(1) {
                let (start, all) = read(&bytes, size).expect("read");
                assert_eq!(start.format, format, "in pieces of {size}");
                assert_eq!(all, bytes, "in pieces of {size}");
                assert!(bytes.starts_with(&start.bytes));
            }
            let packed = zstd::encode_all(&bytes[..], 1).expect("packed");
            for size in 1..=packed.len() {
                let (start, all) = read(&packed, size).expect("unpacked");
                assert_eq!((start.packing, start.format), (Packing::Zstd, format), "in pieces of {size}");
                assert_eq!(all, bytes);
            }
        }
    }

    #[test]
    fn hostile_bytes_are_errors_or_sources_and_never_panics() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        let beginnings = [
            &b""[..],
            b"\x1f\x8b\x08",
            b"\x28\xb5\x2f\xfd",
            b"PAR1",
            b"ARROW1",
            b"\xff\xff\xff\xff",
            b"{",
            b"[",
        ];
        for round in 0..4000 {
            let len = usize::from(random());
            let rest = (0..len).map(|_| random());
            let bytes: Vec<u8> = beginnings[round % beginnings.len()].iter().copied().chain(rest).collect();
            if let Ok((start, all)) = read(&bytes, 1 + usize::from(random())) {
                assert!(all.starts_with(&start.bytes));
            }
        }
    }
}
