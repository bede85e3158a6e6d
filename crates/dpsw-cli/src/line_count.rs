//! How many lines a file has, counted by all processors at a time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use memchr::{memchr, memchr_iter};

use crate::input::parser::Lines;
use crate::input::reader::read_block;
use crate::interrupt;

/// A file is read in at most so many parts at a time, none of which is shorter than this.
const PARTS_MAX: u64 = 4;
const PART_LEN_MIN: u64 = 4 << 20;

/// How many records the lines of a file are. `None` if there are quotes, which may hold line ends, or if it was interrupted.
pub(crate) fn records(path: &Path, lines: Lines) -> io::Result<Option<u64>> {
    let len = std::fs::metadata(path)?.len();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    in_parts(path, lines, len, len.div_ceil(cores.min(PARTS_MAX)).max(PART_LEN_MIN))
}

fn in_parts(path: &Path, lines: Lines, len: u64, part_len: u64) -> io::Result<Option<u64>> {
    let parts: io::Result<Option<Vec<Part>>> = std::thread::scope(|scope| {
        let part = |start| scope.spawn(move || Part::read(path, start, part_len, lines));
        let parts: Vec<_> = (0..len).step_by(part_len as usize).map(part).collect();
        parts.into_iter().map(|part| part.join().expect("counting does not panic")).collect()
    });
    Ok(parts?.map(|parts| {
        let ends: u64 = parts.iter().map(|part| part.ends).sum();
        let is_open = parts.last().is_some_and(|part| part.is_open);
        (ends + u64::from(is_open)).saturating_sub(u64::from(lines.has_header))
    }))
}

/// The lines of a part of a file.
struct Part {
    ends: u64,
    /// Whether its last line has no end.
    is_open: bool,
}

impl Part {
    fn read(path: &Path, start: u64, len: u64, lines: Lines) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(start))?;
        let (mut file, mut block) = (file.take(len), Vec::new());
        let mut part = Self { ends: 0, is_open: false };
        while 0 < read_block(&mut file, &mut block)? {
            if interrupt::is_requested() || lines.may_quote && memchr(b'"', &block).is_some() {
                return Ok(None);
            }
            part.ends += memchr_iter(b'\n', &block).count() as u64;
            part.is_open = !block.ends_with(b"\n");
        }
        Ok(Some(part))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Counted in parts of every length.
    #[track_caller]
    fn check(text: &[u8], lines: Lines, records: Option<u64>) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text).expect("written");
        for part_len in 1..=text.len().max(1) {
            let counted = in_parts(file.path(), lines, text.len() as u64, part_len as u64).expect("counted");
            assert_eq!(counted, records, "{text:?} in parts of {part_len}");
        }
    }

    #[test]
    fn each_line_is_a_record_but_the_header_and_the_last_may_have_no_end() {
        for (text, records) in
            [(&b""[..], 0), (b"a", 1), (b"a\n", 1), (b"\n\n", 2), (b"a\r\n\r\nb", 3), (b"\"a\nb\"\n", 2)]
        {
            check(text, Lines { has_header: false, may_quote: false }, Some(records));
            check(text, Lines { has_header: true, may_quote: false }, Some(records.saturating_sub(1)));
        }
    }

    #[test]
    fn quotes_may_hold_line_ends() {
        check(b"a\nb\n", Lines { has_header: true, may_quote: true }, Some(1));
        check(b"a\nb\n\"c\nd\"\n", Lines { has_header: true, may_quote: true }, None);
    }
}
