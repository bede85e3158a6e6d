//! Everything on the disk is encrypted, and bound to its place, so that no record can stand where another belongs.
//!
//! ```text
//! | nonce, 24 bytes | what was encrypted | tag, 16 bytes |
//! ```

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

const NONCE_LEN: usize = 24;
const TAG_LEN: usize = 16;
/// Bytes that encryption adds: the nonce before and the tag behind.
pub const ADDED_LEN: usize = NONCE_LEN + TAG_LEN;

/// The cipher of everything on a disk: one key, and a nonce of its own for each record.
#[derive(Clone)]
pub struct Cipher(XChaCha20Poly1305);

/// A lack of randomness for a nonce, a key or a generation.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no randomness: {0}")]
pub struct NoRandomness(#[from] getrandom::Error);

/// A record that was changed, moved, or written with another key.
#[derive(Debug, thiserror::Error)]
#[error("it does not open with the key: its bytes were changed or belong elsewhere")]
pub struct Unopened;

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cipher")
    }
}

impl Cipher {
    /// The cipher of this key.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&Key::from(*key)))
    }

    /// Encrypts a record in its place, after what is to be encrypted was put into its [`secret_part`].
    ///
    /// # Errors
    /// The system gives no randomness.
    ///
    /// # Panics
    /// The record is shorter than [`ADDED_LEN`], or longer than 2^38 bytes.
    pub fn seal_in_place(&self, place: &[u8], record: &mut [u8]) -> Result<(), NoRandomness> {
        let (nonce, rest) = record.split_at_mut(NONCE_LEN);
        let (secret, tag) = rest.split_at_mut(rest.len() - TAG_LEN);
        let drawn = random::<NONCE_LEN>()?;
        nonce.copy_from_slice(&drawn);
        let sealed = self.0.encrypt_inout_detached(&XNonce::from(drawn), place, secret.into());
        tag.copy_from_slice(&sealed.expect("a record is shorter than 2^38 bytes"));
        Ok(())
    }

    /// An encrypted copy.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn seal(&self, place: &[u8], secret: &[u8]) -> Result<Vec<u8>, NoRandomness> {
        let mut record = vec![0; secret.len() + ADDED_LEN];
        secret_part(&mut record).copy_from_slice(secret);
        self.seal_in_place(place, &mut record)?;
        Ok(record)
    }

    /// What was encrypted for this place.
    ///
    /// # Errors
    /// It was not, or not with this key.
    pub fn open(&self, place: &[u8], record: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unopened> {
        let (nonce, rest) = record.split_first_chunk::<NONCE_LEN>().ok_or(Unopened)?;
        let (secret, tag) = rest.split_last_chunk::<TAG_LEN>().ok_or(Unopened)?;
        let mut secret = Zeroizing::new(secret.to_vec());
        let room = secret.as_mut_slice().into();
        let opened = self.0.decrypt_inout_detached(&XNonce::from(*nonce), place, room, &Tag::from(*tag));
        opened.map_err(|_| Unopened)?;
        Ok(secret)
    }
}

/// The part of a record that is encrypted.
///
/// # Panics
/// The record is shorter than [`ADDED_LEN`].
pub fn secret_part(record: &mut [u8]) -> &mut [u8] {
    let end = record.len() - TAG_LEN;
    &mut record[NONCE_LEN..end]
}

/// Random bytes of the system.
///
/// # Errors
/// It gives none.
pub fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_opens_in_its_place_with_its_key_unchanged_and_not_otherwise() {
        let cipher = Cipher::new(&[1; 32]);
        let sealed = cipher.seal(b"here", b"secret").expect("randomness");
        assert_eq!(cipher.open(b"here", &sealed).expect("unchanged").as_slice(), b"secret");
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        assert!(cipher.open(b"there", &sealed).is_err());
        assert!(Cipher::new(&[2; 32]).open(b"here", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(cipher.open(b"here", &changed).is_err(), "byte {at}");
            assert!(cipher.open(b"here", &sealed[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn two_records_of_the_same_bytes_differ() {
        let cipher = Cipher::new(&[1; 32]);
        let [one, other] = [0, 1].map(|_| cipher.seal(b"", b"secret").expect("randomness"));
        assert_ne!(one, other);
    }
}
