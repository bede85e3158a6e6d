//! What the first bytes of a source look like, as a person would tell who looks at them.
//!
//! Columnar formats begin with bytes that no text begins with. Text is told by more than half of its first lines, so that no
//! single record decides where there are three.

use anyhow::Result;
use serde::de::IgnoredAny;

use crate::args::Format;
use crate::fault::Fault;
use crate::read::{BOM, access_log};

/// The most lines that are looked at.
const LINES: usize = 64;

/// The looks of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Parquet,
    ArrowFile,
    ArrowStream,
    Ndjson,
    AccessLog,
    /// Nothing of these.
    Other,
}

impl Content {
    pub(crate) fn of(start: &[u8]) -> Self {
        match start {
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Self::ArrowFile,
            // A mark, and the length of the first message: a multiple of 8 below 2^28.
            [0xff, 0xff, 0xff, 0xff, low, _, _, high, ..] if low % 8 == 0 && *high < 16 => Self::ArrowStream,
            _ => Self::of_text(start),
        }
    }

    fn of_text(start: &[u8]) -> Self {
        let lines = first_lines(start);
        if are_most(&lines, is_document) {
            Self::Ndjson
        } else if are_most(&lines, access_log::is_line) {
            Self::AccessLog
        } else {
            Self::Other
        }
    }

    /// The format, if it is recognised.
    pub(crate) fn format(self) -> Option<Format> {
        match self {
            Self::Parquet => Some(Format::Parquet),
            Self::ArrowFile | Self::ArrowStream => Some(Format::Arrow),
            Self::Ndjson => Some(Format::Ndjson),
            Self::AccessLog => Some(Format::AccessLog),
            Self::Other => None,
        }
    }

    pub(crate) fn is_columnar(self) -> bool {
        matches!(self, Self::Parquet | Self::ArrowFile | Self::ArrowStream)
    }
}

/// Whether more bytes would tell no more, or text has a line to tell it by.
pub(crate) fn is_enough(start: &[u8]) -> bool {
    start.contains(&b'\n') || Content::of(start).is_columnar()
}

/// Lines that are complete and not blank; a last line without an end counts if it is alone.
fn first_lines(start: &[u8]) -> Vec<&[u8]> {
    let text = start.strip_prefix(BOM).unwrap_or(start);
    let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(text, |end| &text[..end]);
    let lines = complete.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).take(LINES).collect()
}

fn are_most(lines: &[&[u8]], is_one: fn(&[u8]) -> bool) -> bool {
    lines.len() < 2 * lines.iter().filter(|line| is_one(line)).count()
}

fn is_document(line: &[u8]) -> bool {
    line.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

/// Refuses documents over several lines, and an array of them.
pub(crate) fn check_documents(start: &[u8]) -> Result<()> {
    let lines = first_lines(start);
    let is_value = |line: &[u8]| serde_json::from_slice::<IgnoredAny>(line).is_ok();
    let filter = match lines.first() {
        Some([b'[', ..]) => ".[]",
        Some([b'{']) => ".",
        _ => return Ok(()),
    };
    if are_most(&lines, is_value) {
        return Ok(());
    }
    Err(Fault::data(format!(
        "its JSON goes over several lines, and one document per line is needed: jq -c '{filter}' FILE | dpsw ..."
    )))
}

/// Refuses text of two bytes per character.
pub(crate) fn check_encoding(start: &[u8]) -> Result<()> {
    let is_marked = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    if is_marked && start.iter().take(256).any(|byte| *byte == 0) {
        return Err(Fault::data(
            "it is UTF-16; turn it into UTF-8 in a pipe: iconv -f UTF-16 -t UTF-8 FILE | dpsw ...",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "h - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 1\n";
    const DOCUMENT: &str = "{\"a\": 1}\n";

    #[test]
    fn most_lines_decide_and_no_single_one_among_three() {
        let three = |first: &str, others: &str| format!("{first}{others}{others}").into_bytes();
        for (start, wanted) in [
            (three(LOG, LOG), Content::AccessLog),
            (three("\n", LOG), Content::AccessLog),
            (three("hello\n", LOG), Content::AccessLog),
            (three(LOG, "hello\n"), Content::Other),
            (three("\u{feff}{\"a\":1}\r\n\r\n", DOCUMENT), Content::Ndjson),
            (three("{\n", DOCUMENT), Content::Ndjson),
            (three(DOCUMENT, "{\n"), Content::Other),
            (three(DOCUMENT, "5\n"), Content::Other),
            (three("\"a\"\n", "[1]\n"), Content::Other),
            (b"{\"a\": 1}".to_vec(), Content::Ndjson),
            (format!("{DOCUMENT}{{\"a").into_bytes(), Content::Ndjson),
            (b"".to_vec(), Content::Other),
            (b"\n\n".to_vec(), Content::Other),
            (b"h [5] \"GET /a\" 200\n".to_vec(), Content::Other),
        ] {
            assert_eq!(Content::of(&start), wanted, "{}", String::from_utf8_lossy(&start));
        }
    }

    #[test]
    fn columnar_formats_begin_as_no_text_does() {
        for (start, wanted) in [
            (&b"PAR1\x15"[..], Content::Parquet),
            (b"ARROW1\0\0", Content::ArrowFile),
            (b"\xff\xff\xff\xff\x88\x01\0\0\x10", Content::ArrowStream),
            (b"\xff\xff\xff\xff", Content::Other),
            (b"\xff\xff\xff\xffabcd", Content::Other),
            (b"PAR", Content::Other),
            (b"ARROW\n", Content::Other),
        ] {
            assert_eq!(Content::of(start), wanted, "{start:?}");
        }
    }

    #[test]
    fn documents_over_several_lines_are_told_from_those_that_are_broken() {
        for (start, is_refused) in [
            (&b"[\n  {\n    \"a\": 1\n  },\n"[..], true),
            (b"{\n  \"a\": 1\n}\n", true),
            (b"[{\"a\": 1}, {\"a\": 2}]\n", false),
            (b"[1]\n[2]\n[", false),
            (b"{\"a\n{\"a\n", false),
            (b"", false),
        ] {
            assert_eq!(check_documents(start).is_err(), is_refused, "{}", String::from_utf8_lossy(start));
        }
    }

    #[test]
    fn two_bytes_per_character_are_refused_and_two_odd_bytes_are_not() {
        assert!(check_encoding(b"\xff\xfea\0\n\0").is_err());
        assert!(check_encoding(b"\xfe\xff\0a\0\n").is_err());
        assert!(check_encoding(b"\xff\xfe\nb\n").is_ok());
        assert!(check_encoding(b"a\0\n").is_ok());
    }
}
