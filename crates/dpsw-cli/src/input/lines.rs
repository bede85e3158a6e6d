//! Lines: each is an item.

use anyhow::Result;
use memchr::memchr_iter;

use crate::input::{BATCH, Sink};

/// Takes the complete lines, each an item. Returns how many bytes and how many lines they are.
pub(crate) fn take(buffer: &[u8], sink: &mut impl Sink) -> Result<(usize, u64)> {
    let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
    let (mut filled, mut start, mut lines) = (0, 0, 0);
    for end in memchr_iter(b'\n', buffer) {
        batch[filled] = without_return(&buffer[start..end]);
        (filled, start) = (filled + 1, end + 1);
        if filled == BATCH {
            sink.items(&batch)?;
            (filled, lines) = (0, lines + BATCH as u64);
        }
    }
    sink.items(&batch[..filled])?;
    Ok((start, lines + filled as u64))
}

/// Calls for each complete line, with its end removed. Returns how many bytes they have.
pub(crate) fn each(buffer: &[u8], mut line: impl FnMut(&[u8]) -> Result<()>) -> Result<usize> {
    let mut start = 0;
    for end in memchr_iter(b'\n', buffer) {
        line(without_return(&buffer[start..end]))?;
        start = end + 1;
    }
    Ok(start)
}

/// A line may end in CR LF.
pub(crate) fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
