//! Tokens: 256 random bits behind a public id. What is kept is their SHA-256.
//!
//! A password needs a slow hash with a salt, because people choose guessable ones. A token is chosen by the system: whoever
//! has its hash and tries 10^12 tokens per second needs about 10^57 years, so one fast hash is enough, and it costs a request less
//! than a microsecond. Hashes are compared in constant time.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const PREFIX: &str = "dpsw";
const ID_LEN: usize = 6;
const SECRET_LEN: usize = 32;

/// The hash of a token, as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TokenHash([u8; 32]);

/// A token that was just made: shown once, never kept.
pub struct NewToken {
    /// Its public part, by which it is listed and deleted.
    pub id: String,
    /// All of it: `dpsw_<id>_<secret>`.
    pub text: Zeroizing<String>,
}

impl NewToken {
    /// A token of new random bits.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub(crate) fn make() -> Result<Self, getrandom::Error> {
        let mut id = [0; ID_LEN];
        let mut secret = Zeroizing::new([0; SECRET_LEN]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret[..])?;
        let id = hex(&id);
        let secret = Zeroizing::new(URL_SAFE_NO_PAD.encode(&secret[..]));
        let text = Zeroizing::new(format!("{PREFIX}_{id}_{}", *secret));
        Ok(Self { id, text })
    }

    pub(crate) fn hash(&self) -> TokenHash {
        TokenHash::of(&self.text)
    }
}

impl TokenHash {
    pub(crate) fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    pub(crate) fn equals(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    pub(crate) fn to_text(&self) -> String {
        hex(&self.0)
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() || !text.is_ascii() {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0..text.len()).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// The public part of a token.
pub(crate) fn id_of(token: &str) -> Option<&str> {
    let (prefix, rest) = token.split_once('_')?;
    let (id, _) = rest.split_once('_')?;
    (prefix == PREFIX).then_some(id)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewToken({})", self.id)
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_public_id_and_a_hash_that_can_be_written_down() {
        let token = NewToken::make().expect("randomness");
        assert_eq!(id_of(&token.text), Some(&token.id[..]));
        assert_eq!(token.text.len(), PREFIX.len() + 2 + 2 * ID_LEN + 43);
        let hash = TokenHash::from_text(&token.hash().to_text()).expect("a hash");
        assert!(hash.equals(&TokenHash::of(&token.text)));
        assert!(!hash.equals(&TokenHash::of("dpsw_000000000000_x")));
        assert!(TokenHash::from_text(&"é".repeat(32)).is_none());
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let token = NewToken::make().expect("randomness");
        let secret = token.text.splitn(3, '_').nth(2).expect("three parts");
        assert!(!format!("{token:?} {:?}", token.hash()).contains(secret));
    }
}
