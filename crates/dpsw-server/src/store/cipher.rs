//! Everything on the disk is encrypted, and bound to its place, so that no record can stand where another belongs.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key as CipherKey, Tag, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::key::Key;
use crate::store::sender::SenderKey;

const NONCE_LEN: usize = 24;
const TAG_LEN: usize = 16;
/// Bytes that encryption adds: the nonce before and the tag behind.
pub(crate) const ADDED_LEN: usize = NONCE_LEN + TAG_LEN;

/// Encrypts records with the operator's key, each under a nonce of its own.
#[derive(Clone)]
pub(crate) struct Cipher {
    records: XChaCha20Poly1305,
    /// The key of hashes that stand for names.
    names: Zeroizing<[u8; 32]>,
}

/// The system gave no randomness for a nonce.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no randomness: {0}")]
pub(crate) struct NoRandomness(getrandom::Error);

/// The record was changed, moved, or written with another key.
#[derive(Debug, thiserror::Error)]
#[error("it does not open with the key: its bytes were changed or belong elsewhere")]
pub(crate) struct Unopened;

impl Cipher {
    pub(crate) fn new(key: &Key) -> Self {
        let records = XChaCha20Poly1305::new(&CipherKey::from(*key.expose()));
        let names = Sha256::new().chain_update(b"dpsw names").chain_update(key.expose()).finalize();
        Self { records, names: Zeroizing::new(names.into()) }
    }

    /// What stands for these names on the disk. Nobody without the key can tell or find names from it. Half of the hash: the rest
    /// of its state stays unknown, so that no hash can be continued.
    pub(crate) fn name(&self, parts: &[&str]) -> SenderKey {
        let mut hash = Sha256::new().chain_update(*self.names);
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let hash: [u8; 32] = hash.finalize().into();
        let (half, _) = hash.split_first_chunk().expect("a hash has 32 bytes");
        SenderKey(*half)
    }

    /// Encrypts a record in its place, after what is to be encrypted was put into its [`secret_part`]: room for the nonce, what is to be encrypted, room for the tag.
    pub(crate) fn seal_in_place(&self, place: &[u8], record: &mut [u8]) -> Result<(), NoRandomness> {
        let (nonce, rest) = record.split_at_mut(NONCE_LEN);
        let (secret, tag) = rest.split_at_mut(rest.len() - TAG_LEN);
        nonce.copy_from_slice(&random::<NONCE_LEN>()?);
        let nonce: [u8; NONCE_LEN] = (&*nonce).try_into().expect("its room has its length");
        let sealed = self.records.encrypt_inout_detached(&XNonce::from(nonce), place, secret.into());
        tag.copy_from_slice(&sealed.expect("a record is shorter than 2^38 bytes"));
        Ok(())
    }

    /// An encrypted copy.
    pub(crate) fn seal(&self, place: &[u8], secret: &[u8]) -> Result<Vec<u8>, NoRandomness> {
        let mut record = vec![0; secret.len() + ADDED_LEN];
        secret_part(&mut record).copy_from_slice(secret);
        self.seal_in_place(place, &mut record)?;
        Ok(record)
    }

    /// What was encrypted for this place.
    pub(crate) fn open(&self, place: &[u8], record: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unopened> {
        let (nonce, rest) = record.split_first_chunk::<NONCE_LEN>().ok_or(Unopened)?;
        let (secret, tag) = rest.split_last_chunk::<TAG_LEN>().ok_or(Unopened)?;
        let mut secret = Zeroizing::new(secret.to_vec());
        let opened = self.records.decrypt_inout_detached(
            &XNonce::from(*nonce),
            place,
            secret.as_mut_slice().into(),
            &Tag::from(*tag),
        );
        opened.map_err(|_| Unopened)?;
        Ok(secret)
    }
}

/// The part of a record that is encrypted.
pub(crate) fn secret_part(record: &mut [u8]) -> &mut [u8] {
    let end = record.len() - TAG_LEN;
    &mut record[NONCE_LEN..end]
}

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_opens_in_its_place_with_its_key_unchanged_and_not_otherwise() {
        let cipher = Cipher::new(&Key::from_bytes([1; 32]));
        let sealed = cipher.seal(b"here", b"secret").expect("randomness");
        assert_eq!(cipher.open(b"here", &sealed).expect("unchanged").as_slice(), b"secret");
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        assert!(cipher.open(b"there", &sealed).is_err());
        assert!(Cipher::new(&Key::from_bytes([2; 32])).open(b"here", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(cipher.open(b"here", &changed).is_err(), "byte {at}");
            assert!(cipher.open(b"here", &sealed[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn two_records_of_the_same_bytes_differ() {
        let cipher = Cipher::new(&Key::from_bytes([1; 32]));
        let [one, other] = [0, 1].map(|_| cipher.seal(b"", b"secret").expect("randomness"));
        assert_ne!(one, other);
    }
}
