//! Lines: each is an item.

use anyhow::Result;
use memchr::{memchr_iter, memrchr};

use crate::read::{BATCH, Sink};

/// Takes the complete lines, each an item. Returns how many bytes and how many lines they are.
pub(crate) fn take(buffer: &[u8], sink: &mut impl Sink) -> Result<(usize, u64)> {
    if let Some(passed) = pass(buffer, sink)? {
        return Ok(passed);
    }
    let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
    let mut filled = 0;
    let mut start = 0;
    let mut lines = 0;
    for end in ends(buffer) {
        batch[filled] = without_return(&buffer[start..end]);
        filled += 1;
        start = end + 1;
        if filled == BATCH {
            sink.items(&batch, &[])?;
            filled = 0;
            lines += BATCH as u64;
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

pub(crate) fn ends(buffer: &[u8]) -> Places<'_> {
    places(buffer, b'\n')
}

/// Where a byte stands.
pub(crate) fn places(bytes: &[u8], byte: u8) -> Places<'_> {
    Places { bytes, byte, next: 0, mask: 0 }
}

/// Bytes that are looked at at once: for short lines and fields this is faster than a search for each.
const CHUNK: usize = 32;

pub(crate) struct Places<'b> {
    bytes: &'b [u8],
    byte: u8,
    /// Behind the chunk that the mask is of.
    next: usize,
    /// A bit for each byte of it that was found and not told yet.
    mask: u64,
}

impl Iterator for Places<'_> {
    type Item = usize;

    // A call for each place would take as long as the rest.
    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            let rest = self.bytes.get(self.next..)?;
            self.mask = match rest.first_chunk() {
                Some(chunk) => equal(chunk, self.byte),
                None => equal_in_last(rest, self.byte)?,
            };
            self.next += CHUNK;
        }
        let place = self.next - CHUNK + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(place)
    }
}

/// The same as [`equal`] of less than a chunk.
#[cold]
fn equal_in_last(rest: &[u8], byte: u8) -> Option<u64> {
    // Filled up with what is not looked for.
    let mut chunk = [!byte; CHUNK];
    chunk[..rest.len()].copy_from_slice(rest);
    (!rest.is_empty()).then(|| equal(&chunk, byte))
}

/// A bit for each byte that is this one.
#[inline]
fn equal(chunk: &[u8; CHUNK], byte: u8) -> u64 {
    let (words, _) = chunk.as_chunks();
    let bits = words.iter().map(|word| equal_in_word(u64::from_le_bytes(*word), byte));
    bits.rev().fold(0, |mask, bits| mask << 8 | bits)
}

/// Adding 127 to seven bits sets the eighth unless they are zero, and carries nothing over. The product gathers the eighth
/// bits: each of its bits comes from one of them.
#[inline]
fn equal_in_word(word: u64, byte: u8) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    let differs = word ^ u64::from_le_bytes([byte; 8]);
    let highest = !(((differs & LOW) + LOW) | differs | LOW);
    (highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
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
            let wanted: Vec<usize> = memchr_iter(b'\n', &bytes).collect();
            assert_eq!(ends(&bytes).collect::<Vec<_>>(), wanted, "{bytes:?}");
        }
    }
}
