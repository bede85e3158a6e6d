//! Lines: each is an item.

use anyhow::Result;
use memchr::{memchr_iter, memrchr};

use crate::input::{BATCH, Sink};

/// Takes the complete lines, each an item. Returns how many bytes and how many lines they are.
pub(crate) fn take(buffer: &[u8], sink: &mut impl Sink) -> Result<(usize, u64)> {
    if let Some(passed) = pass(buffer, sink)? {
        return Ok(passed);
    }
    let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
    let (mut filled, mut start, mut lines) = (0, 0, 0);
    for end in ends(buffer) {
        batch[filled] = without_return(&buffer[start..end]);
        (filled, start) = (filled + 1, end + 1);
        if filled == BATCH {
            sink.items(&batch, &[])?;
            (filled, lines) = (0, lines + BATCH as u64);
        }
    }
    sink.items(&batch[..filled], &[])?;
    Ok((start, lines + filled as u64))
}

/// Passes over all of them, if nobody asks about any.
fn pass(buffer: &[u8], sink: &mut impl Sink) -> Result<Option<(usize, u64)>> {
    let Some(last) = memrchr(b'\n', buffer).filter(|_| 0 < sink.unasked()) else { return Ok(None) };
    let lines = memchr_iter(b'\n', buffer).count() as u64;
    if sink.unasked() < lines {
        return Ok(None);
    }
    sink.pass(lines)?;
    Ok(Some((last + 1, lines)))
}

/// Calls for each complete line, with its end removed. Returns how many bytes they have.
pub(crate) fn each(buffer: &[u8], mut line: impl FnMut(&[u8]) -> Result<()>) -> Result<usize> {
    let mut start = 0;
    for end in ends(buffer) {
        line(without_return(&buffer[start..end]))?;
        start = end + 1;
    }
    Ok(start)
}

/// A line may end in CR LF.
pub(crate) fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Where line ends stand, eight bytes at a time: for short lines this is faster than a search for each.
pub(crate) fn ends(buffer: &[u8]) -> impl Iterator<Item = usize> {
    let (words, _) = buffer.as_chunks::<8>();
    Ends { words, next: 0, mask: 0 }.chain(tail_ends(buffer))
}

fn tail_ends(buffer: &[u8]) -> impl Iterator<Item = usize> {
    let start = buffer.len() / 8 * 8;
    let is_end = |(_, byte): &(usize, &u8)| **byte == b'\n';
    buffer[start..].iter().enumerate().filter(is_end).map(move |(index, _)| start + index)
}

struct Ends<'b> {
    words: &'b [[u8; 8]],
    /// The word after the one that the mask is of.
    next: usize,
    /// The highest bit of each byte that is a line end and was not told yet.
    mask: u64,
}

impl Iterator for Ends<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            self.mask = line_ends(u64::from_le_bytes(*self.words.get(self.next)?));
            self.next += 1;
        }
        let byte = self.mask.trailing_zeros() as usize / 8;
        self.mask &= self.mask - 1;
        Some((self.next - 1) * 8 + byte)
    }
}

/// The highest bit of each byte that is a line end. Adding 127 to seven bits sets the eighth unless they are zero, and
/// carries nothing over.
#[inline]
fn line_ends(word: u64) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    let differs = word ^ u64::from_le_bytes([b'\n'; 8]);
    !(((differs & LOW) + LOW) | differs | LOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_end_is_found_and_nothing_else() {
        let mut state = 1_u64;
        for len in 0..200 {
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    [b'\n', b'\n' + 1, b'\n' - 1, 0x8a, 0x00, 0xff, b'a', state as u8][(state >> 61) as usize]
                })
                .collect();
            let wanted: Vec<usize> = memchr::memchr_iter(b'\n', &bytes).collect();
            assert_eq!(ends(&bytes).collect::<Vec<_>>(), wanted, "{bytes:?}");
        }
    }
}
