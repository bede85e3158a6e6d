//! The id of a batch: whose it is, its sender, and a number that grows.

use crate::error::IngestError;

/// The longest name of a sender, in bytes.
pub const SENDER_LEN_MAX: usize = 64;
/// The highest number of a batch.
pub const BATCH_NUMBER_MAX: u64 = i64::MAX as u64;

/// The name of a batch, by which it counts once however often it is sent. Ids of different owners have nothing to do with each
/// other, whatever they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchId {
    pub(crate) owner: Box<str>,
    pub(crate) sender: Box<str>,
    pub(crate) number: u64,
}

impl BatchId {
    /// An id of this owner, as in `web-1/42`.
    ///
    /// # Errors
    /// It is not the name of a sender, of 1 to [`SENDER_LEN_MAX`] letters, digits, `-`, `_` and `.`, a slash, and a number up to
    /// [`BATCH_NUMBER_MAX`] without leading zeros.
    pub fn new(owner: &str, id: &str) -> Result<Self, IngestError> {
        let (sender, number) = id.split_once('/').ok_or(IngestError::BatchId)?;
        let is_sender = (1..=SENDER_LEN_MAX).contains(&sender.len()) && sender.bytes().all(is_of_name);
        let number = parsed(number).filter(|_| is_sender).ok_or(IngestError::BatchId)?;
        Ok(Self { owner: owner.into(), sender: sender.into(), number })
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Each number is written in one way.
fn parsed(digits: &str) -> Option<u64> {
    let is_plain =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|number| is_plain && *number <= BATCH_NUMBER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_sender_and_a_number_and_nothing_else() {
        for (id, sender, number) in [
            ("web-1/42", "web-1", 42),
            ("A_b.9/0", "A_b.9", 0),
            ("x/9223372036854775807", "x", BATCH_NUMBER_MAX),
        ] {
            let read = BatchId::new("owner", id).expect(id);
            assert_eq!((&*read.owner, &*read.sender, read.number), ("owner", sender, number));
        }
        let long = format!("{}/1", "x".repeat(SENDER_LEN_MAX + 1));
        for id in [
            "",
            "1",
            "/1",
            "a/",
            "a/-1",
            "a/+1",
            "a/01",
            "a/1 ",
            "a b/1",
            "a/b/1",
            "ä/1",
            "a/1/",
            "a/9223372036854775808",
            "123e4567-e89b-12d3-a456-426614174000",
            &long,
        ] {
            assert_eq!(BatchId::new("owner", id), Err(IngestError::BatchId), "{id}");
        }
    }
}
