//! Files as they come, packed or not; a failure names the file, the place and what to do.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// A longer line is no line of a log.
const LINE_LEN_MAX: u64 = 1 << 16;
const BUFFER_LEN: usize = 1 << 16;
/// How much of a wrong line is shown.
const SHOWN_LEN_MAX: usize = 60;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// What files that are often taken for a log begin with.
const WRONG: [(&[u8], &str); 7] = [
    (&[0xff, 0xd8, 0xff], "it looks like a JPEG image"),
    (b"\x89PNG", "it looks like a PNG image"),
    (b"%PDF", "it looks like a PDF document"),
    (b"PK\x03\x04", "it looks like a zip archive: unpack it first"),
    (b"<!", "it looks like a web page: the download went wrong"),
    (b"<html", "it looks like a web page: the download went wrong"),
    (b"BZh", "it looks like a bzip2 archive: unpack it first"),
];

/// Opens a file and unpacks gzip and zstd, which it recognises by their first bytes, not by the name.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>> {
    let file = File::open(path).with_context(|| format!("{}: cannot be opened", path.display()))?;
    let mut reader = BufReader::with_capacity(BUFFER_LEN, file);
    let start = reader.fill_buf().with_context(|| format!("{}: cannot be read", path.display()))?;
    Ok(if start.starts_with(GZIP) {
        let unpacked = flate2::bufread::MultiGzDecoder::new(reader);
        Box::new(BufReader::with_capacity(BUFFER_LEN, unpacked))
    } else if start.starts_with(ZSTD) {
        Box::new(BufReader::with_capacity(BUFFER_LEN, ZstdReader::new(reader)))
    } else {
        Box::new(reader)
    })
}

/// What a wrong file seems to be.
pub(crate) fn likeness(start: &[u8]) -> Option<&'static str> {
    WRONG.iter().find(|(magic, _)| start.starts_with(magic)).map(|&(_, likeness)| likeness)
}

/// The first line of a text file without the mark of UTF-8.
pub(crate) fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}

/// The beginning of a line for an error message.
pub(crate) fn shown(line: &[u8]) -> String {
    let cut = &line[..line.len().min(SHOWN_LEN_MAX)];
    let dots = if cut.len() < line.len() { "..." } else { "" };
    format!("\"{}{dots}\"", cut.escape_ascii())
}

/// The context of a failed read: the packed data is cut off or damaged, or the disk fails.
pub(crate) fn unreadable(path: &Path, place: &str) -> String {
    format!("{}: {place} cannot be read; the file is cut off or damaged: get it again", path.display())
}

/// All frames of a zstd file, one after the other, each checked against its checksum.
struct ZstdReader<R> {
    source: R,
    frame: FrameDecoder,
}

impl<R: BufRead> ZstdReader<R> {
    fn new(source: R) -> Self {
        Self { source, frame: FrameDecoder::new() }
    }

    fn fill(&mut self) -> io::Result<()> {
        while self.frame.can_collect() == 0 && !self.frame.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            self.frame.decode_blocks(&mut self.source, one).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn check_frame(&self) -> io::Result<()> {
        match self.frame.get_checksum_from_data() {
            Some(said) if Some(said) != self.frame.get_calculated_checksum() => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of a zstd frame is wrong"))
            }
            _ => Ok(()),
        }
    }

    /// Whether there is another frame; those that hold no content are skipped.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            self.fill()?;
            let len = self.frame.read(buffer)?;
            if len != 0 {
                return Ok(len);
            }
            self.check_frame()?;
            if !self.next_frame()? {
                return Ok(0);
            }
        }
    }
}

/// The lines of a text file as bytes, counted from 1.
pub(crate) struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self { path: path.to_owned(), reader: open(path)?, line: Vec::new(), number: 0 })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        self.number += 1;
        self.line.clear();
        let read = self.reader.by_ref().take(LINE_LEN_MAX).read_until(b'\n', &mut self.line);
        let len = read.with_context(|| unreadable(&self.path, &format!("line {}", self.number)))?;
        if len == 0 {
            return Ok(None);
        }
        ensure!(
            (len as u64) < LINE_LEN_MAX,
            "{}: line {} is longer than {LINE_LEN_MAX} bytes: this is no text log{}",
            self.path.display(),
            self.number,
            likeness(&self.line).map_or_else(String::new, |likeness| format!("; {likeness}"))
        );
        while matches!(self.line.last(), Some(b'\n' | b'\r')) {
            self.line.pop();
        }
        Ok(Some(&self.line))
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn unzstd(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        ZstdReader::new(bytes).read_to_string(&mut text)?;
        Ok(text)
    }

    fn zstd(text: &str) -> Vec<u8> {
        compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
    }

    #[test]
    fn every_frame_of_a_zstd_file_is_read() {
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        let bytes = [zstd("one "), zstd(""), skippable, zstd("two")].concat();
        assert_eq!(unzstd(&bytes).expect("whole"), "one two");
    }

    #[test]
    fn a_zstd_file_that_is_cut_off_is_an_error() {
        let bytes = zstd(&"some text, ".repeat(100));
        for len in [5, bytes.len() / 2, bytes.len() - 1] {
            assert!(unzstd(&bytes[..len]).is_err(), "{len} of {}", bytes.len());
        }
    }

    #[test]
    fn a_wrong_line_is_shown_short_and_printable() {
        assert_eq!(shown(b"a\tb\xff"), "\"a\\tb\\xff\"");
        assert_eq!(shown(&[b'x'; 100]).len(), SHOWN_LEN_MAX + 5);
    }
}
