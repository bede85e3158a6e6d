//! Access logs of web servers, in the common or the combined format:
//! `host ident user [time] "GET /path HTTP/1.1" status bytes "referrer" "agent"`. A blank line is no record and takes no
//! position.

use anyhow::Result;
use memchr::memchr;

use crate::fault::Fault;
use crate::read::{Problem, Record, Sink, lines, time};

/// A part of an access log that can be the item or the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// The address of the client.
    Host,
    /// Without what follows a question mark.
    Path,
    Status,
    Referrer,
    Agent,
}

impl Field {
    pub(crate) fn new(name: &str) -> Result<Self> {
        match name {
            "host" => Ok(Self::Host),
            "path" => Ok(Self::Path),
            "status" => Ok(Self::Status),
            "referrer" | "referer" => Ok(Self::Referrer),
            "agent" => Ok(Self::Agent),
            _ => Err(Fault::usage(format!(
                "an access log has the columns host, path, status, referrer and agent, not {name:?}"
            ))),
        }
    }

    fn find(self, text: &[u8]) -> Result<&[u8], Problem> {
        let (_, rest) = split(text)?;
        if self == Self::Host {
            return Ok(word(text).0);
        }
        let at = |rest: &[u8]| text.len() - rest.len() + 1;
        let (request, rest) =
            quoted(rest).ok_or_else(|| Problem::at(at(rest), "no \"request\" after the time"))?;
        if self == Self::Path {
            return path(request).ok_or_else(|| Problem::at(at(rest), "no path in the request"));
        }
        let (status, rest) = word(rest);
        if self == Self::Status {
            let is_status = status.len() == 3 && status.iter().all(u8::is_ascii_digit);
            let found = is_status.then_some(status);
            return found.ok_or_else(|| Problem::at(at(rest), "no status after the request"));
        }
        let (_, rest) = word(rest);
        let missing = "no referrer and agent: is it the common instead of the combined format?";
        let missing = || Problem::at(at(rest), missing);
        let (referrer, rest) = quoted(rest).ok_or_else(missing)?;
        match self {
            Self::Agent => quoted(rest).map(|(agent, _)| agent).ok_or_else(missing),
            _ => Ok(referrer),
        }
    }
}

/// Refuses another part than the time to be the time.
pub(crate) fn check_time(name: &str) -> Result<()> {
    if name == "time" {
        return Ok(());
    }
    Err(Fault::usage(format!(
        "the time of an access log is its column \"time\" and is used without --time-column; the others are host, path, \
        status, referrer and agent, got {name:?}"
    )))
}

/// The parser of one file.
pub(crate) struct AccessLog {
    pub(crate) field: Field,
    pub(crate) user: Option<Field>,
    pub(crate) wants_time: bool,
}

impl AccessLog {
    /// Takes the complete lines. Returns how many bytes and how many lines they are.
    pub(crate) fn take(&self, buffer: &[u8], line: u64, sink: &mut impl Sink) -> Result<(usize, u64)> {
        let mut number = line;
        let len = lines::each(buffer, |text| {
            number += 1;
            if text.trim_ascii().is_empty() {
                return Ok(());
            }
            let time = self.wants_time.then(|| event_time(text));
            let user = self.user.map(|field| field.find(text));
            sink.record(number - 1, Record { item: self.field.find(text), time, user })
        })?;
        Ok((len, number - line))
    }
}

/// Whether a line has the time, the request and the status of an access log.
pub(crate) fn is_line(text: &[u8]) -> bool {
    let has_time = split(text).is_ok_and(|(time, _)| time::of_access_log(time).is_some());
    has_time && Field::Status.find(text).is_ok()
}

fn event_time(text: &[u8]) -> Result<u64, Problem> {
    let (time, rest) = split(text)?;
    let start = text.len() - rest.len() - time.len();
    time::parse(time, None).map_err(|problem| Problem { column: Some(start), ..problem })
}

/// The time in brackets, and what follows it.
fn split(text: &[u8]) -> Result<(&[u8], &[u8]), Problem> {
    let start = memchr(b'[', text).ok_or_else(|| Problem::at(1, "no [time]: is it an access log?"))? + 1;
    let len = memchr(b']', &text[start..]).ok_or_else(|| Problem::at(start, "no ] after the time"))?;
    Ok((&text[start..start + len], &text[start + len + 1..]))
}

/// The quoted text at the start, and what follows it; a backslash protects the next byte.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start().strip_prefix(b"\"")?;
    let mut from = 0;
    loop {
        let end = from + memchr(b'"', &text[from..])?;
        let slashes = text[..end].iter().rev().take_while(|byte| **byte == b'\\').count();
        if slashes % 2 == 0 {
            return Some((&text[..end], &text[end + 1..]));
        }
        from = end + 1;
    }
}

fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    text.split_at(memchr(b' ', text).unwrap_or(text.len()))
}

fn path(request: &[u8]) -> Option<&[u8]> {
    let (_, rest) = word(request);
    let (path, _) = word(rest);
    let path = &path[..memchr(b'?', path).unwrap_or(path.len())];
    (!path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = br#"10.0.0.1 - jo [10/Oct/2000:13:55:36 -0700] "GET /a/b.html?q=\"1 HTTP/1.0" 200 2326 "http://x/\"y" "Agent (1.0)""#;

    #[test]
    fn every_field_is_found() {
        for (field, wanted) in [
            (Field::Host, "10.0.0.1"),
            (Field::Path, "/a/b.html"),
            (Field::Status, "200"),
            (Field::Referrer, r#"http://x/\"y"#),
            (Field::Agent, "Agent (1.0)"),
        ] {
            assert_eq!(field.find(LINE), Ok(wanted.as_bytes()), "{field:?}");
        }
        assert_eq!(time::parse(split(LINE).expect("a time").0, None), Ok(971_211_336_000));
    }

    #[test]
    fn what_is_missing_is_named() {
        let common = br#"h - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1"#;
        for (text, field, wanted) in [
            (&b"hello"[..], Field::Path, "[time]"),
            (b"h [x", Field::Path, "]"),
            (b"h [x] GET /", Field::Path, "request"),
            (b"h [x] \"-\" 400 0", Field::Path, "no path"),
            (b"h [x] \"GET /\" abc", Field::Status, "no status"),
            (common, Field::Agent, "combined"),
            (b"", Field::Path, "[time]"),
        ] {
            let problem = field.find(text).expect_err("missing");
            assert!(problem.reason.contains(wanted), "{problem:?}");
        }
    }
}
