//! Bodies that came compressed, unpacked up to a limit.

use std::io::Read;

use bytes::Bytes;

use crate::input::InputError;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
}

/// Windows of zstd have at most 8 MiB on the web (RFC 9659): more would let a few bytes claim much memory.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

impl Packing {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// The bytes of a packed body, if they are at most this many.
pub(crate) fn unpack(packing: Packing, body: &[u8], most: usize) -> Result<Bytes, InputError> {
    let wrong = |_| InputError::Packed(packing.name());
    match packing {
        Packing::Gzip => read(flate2::read::MultiGzDecoder::new(body), body.len(), most, packing),
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(wrong)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(wrong)?;
            read(decoder, body.len(), most, packing)
        }
    }
}

fn read(decoder: impl Read, packed_len: usize, most: usize, packing: Packing) -> Result<Bytes, InputError> {
    let mut bytes = Vec::with_capacity(most.min(4 * packed_len));
    decoder.take(most as u64 + 1).read_to_end(&mut bytes).map_err(|_| InputError::Packed(packing.name()))?;
    if most < bytes.len() { Err(InputError::UnpackedBytes { most }) } else { Ok(bytes.into()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).expect("memory")
    }

    #[test]
    fn packed_bodies_are_unpacked() {
        let text = b"some text ".repeat(1000);
        for (packing, packed) in [(Packing::Gzip, gzip(&text)), (Packing::Zstd, zstd(&text))] {
            assert_eq!(unpack(packing, &packed, text.len()).as_deref(), Ok(&text[..]), "{packing:?}");
        }
        let two = [gzip(b"a"), gzip(b"b")].concat();
        assert_eq!(unpack(Packing::Gzip, &two, 2).as_deref(), Ok(&b"ab"[..]));
    }

    #[test]
    fn a_few_bytes_that_unpack_to_many_are_refused_at_the_limit() {
        let zeros = vec![0; 10 << 20];
        for (packing, packed) in [(Packing::Gzip, gzip(&zeros)), (Packing::Zstd, zstd(&zeros))] {
            let refused = unpack(packing, &packed, 1 << 20);
            assert_eq!(refused, Err(InputError::UnpackedBytes { most: 1 << 20 }), "{packing:?}");
        }
    }

    #[test]
    fn what_is_cut_off_or_something_else_is_refused() {
        let text = b"some text".repeat(100);
        for (packing, packed) in [(Packing::Gzip, gzip(&text)), (Packing::Zstd, zstd(&text))] {
            for wrong in [&packed[..packed.len() - 5], &text[..], &[]] {
                let refused = unpack(packing, wrong, 1 << 20);
                assert_eq!(refused, Err(InputError::Packed(packing.name())), "{packing:?}");
            }
        }
    }
}
