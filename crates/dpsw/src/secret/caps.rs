//! Which of a user's items count.

use hashbrown::HashTable;
use zeroize::Zeroize;

use crate::bytes::codec::{Reader, Writer};
use crate::error::SnapshotError;
use crate::item::hash::FingerprintKey;
use crate::plan::limits::{ITEMS_MAX, USER_LEN};

const _: () = assert!(size_of::<(u64, u32)>() == USER_LEN, "the plan counts on it");

/// The number of items that each user has sent in a substream. Secret: no `Clone`, a `Debug` that shows nothing, wiped when dropped.
pub(crate) struct Caps {
    counts: HashTable<(u64, u32)>,
    /// Items of a user that count.
    each: u32,
    /// Users beyond this many send null items.
    users_max: usize,
    /// Items that do not count.
    capped: u64,
}

impl std::fmt::Debug for Caps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Caps")
    }
}

impl Drop for Caps {
    fn drop(&mut self) {
        self.wipe_users();
    }
}

impl Caps {
    pub(crate) fn new(each: u32, users_max: usize) -> Self {
        Self { counts: HashTable::new(), each, users_max, capped: 0 }
    }

    /// Whether the next item of a user counts. That depends on who sent when, never on what was sent.
    pub(crate) fn admit(&mut self, user: u64, key: FingerprintKey) -> bool {
        let is_admitted = self.has_room(user, key);
        self.capped += u64::from(!is_admitted);
        is_admitted
    }

    /// How many items did not count.
    pub(crate) fn capped(&self) -> u64 {
        self.capped
    }

    fn has_room(&mut self, user: u64, key: FingerprintKey) -> bool {
        let hash = |user: u64| key.hash_integer(user);
        if let Some((_, count)) = self.counts.find_mut(hash(user), |(known, _)| *known == user) {
            let admitted = *count < self.each;
            *count += u32::from(admitted);
            return admitted;
        }
        // A newcomer pushes nobody out: the room goes to those who came first, whatever they send (PRIVACY.md: rule 14).
        let has_room = self.counts.len() < self.users_max;
        if has_room {
            self.insert_user(user, 1, key);
        }
        has_room
    }

    /// Notes a user who is not known.
    fn insert_user(&mut self, user: u64, count: u32, key: FingerprintKey) {
        let hash = |(user, _): &(u64, u32)| key.hash_integer(*user);
        if self.counts.len() == self.counts.capacity() {
            // A table that grows by itself leaves what it held behind.
            let mut larger = HashTable::with_capacity(2 * self.counts.capacity() + 1);
            for entry in &self.counts {
                larger.insert_unique(hash(entry), *entry, hash);
            }
            self.wipe_users();
            self.counts = larger;
        }
        self.counts.insert_unique(hash(&(user, count)), (user, count), hash);
    }

    /// Wipes all users and forgets them.
    fn wipe_users(&mut self) {
        for (user, count) in &mut self.counts {
            user.zeroize();
            count.zeroize();
        }
        self.counts.clear();
    }

    /// Goes on with the next substream, where every user starts anew.
    pub(crate) fn turn_over(&mut self) {
        // No memory across substreams: a resumed stream, which has lost its caps, still admits no more of a user
        // (PRIVACY.md: rule 14).
        self.wipe_users();
        self.capped = 0;
    }

    pub(crate) fn write_to(&self, writer: &mut Writer) {
        writer.put_u64(self.capped);
        writer.put_len(self.counts.len());
        for (user, count) in &self.counts {
            writer.put_u64(*user);
            writer.put_u32(*count);
        }
    }

    pub(crate) fn read_from(
        &mut self,
        reader: &mut Reader<'_>,
        key: FingerprintKey,
    ) -> Result<(), SnapshotError> {
        self.capped = reader.read_u64()?.min(ITEMS_MAX);
        let len = reader.read_len(12)?;
        for _ in 0..len {
            let (user, count) = (reader.read_u64()?, reader.read_u32()?);
            let hash = |user: u64| key.hash_integer(user);
            let is_known = self.counts.find(hash(user), |(known, _)| *known == user).is_some();
            // A user who is there twice would have two caps (PRIVACY.md: rule 14).
            if is_known || count == 0 || self.each < count || self.users_max <= self.counts.len() {
                return Err(SnapshotError::invalid("its users are repeated, too many or sent too much"));
            }
            self.insert_user(user, count, key);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::hash::StreamKey;

    fn key() -> FingerprintKey {
        StreamKey::from_bytes([3; 32]).fingerprint_key()
    }

    fn admitted(caps: &mut Caps, users: &[u64]) -> Vec<bool> {
        users.iter().map(|&user| caps.admit(user, key())).collect()
    }

    fn read(each: u32, users_max: usize, users: &[(u64, u32)]) -> Result<Caps, SnapshotError> {
        let mut writer = Writer::new(b"TESTTEST", 2);
        writer.put_u64(0);
        writer.put_len(users.len());
        for (user, count) in users {
            writer.put_u64(*user);
            writer.put_u32(*count);
        }
        let bytes = writer.finish();
        let mut caps = Caps::new(each, users_max);
        caps.read_from(&mut Reader::new(&bytes, b"TESTTEST", 2)?, key()).map(|()| caps)
    }

    #[test]
    fn the_first_items_of_each_user_count_and_every_substream_starts_anew() {
        let mut caps = Caps::new(2, 100);
        for _ in 0..2 {
            assert_eq!(
                admitted(&mut caps, &[7, 7, 8, 7, 7, 8, 8]),
                [true, true, true, false, false, true, false]
            );
            assert_eq!(caps.capped(), 3);
            caps.turn_over();
        }
    }

    #[test]
    fn users_beyond_the_room_send_null_items_and_push_nobody_out() {
        let mut caps = Caps::new(2, 2);
        assert_eq!(admitted(&mut caps, &[1, 2, 3, 1, 3, 2]), [true, true, false, true, false, true]);
    }

    #[test]
    fn saved_caps_go_on_where_they_stood() {
        let mut caps = Caps::new(2, 3);
        admitted(&mut caps, &[1, 1, 2, 1]);
        let mut writer = Writer::new(b"TESTTEST", 2);
        caps.write_to(&mut writer);
        let bytes = writer.finish();
        let mut restored = Caps::new(2, 3);
        let mut reader = Reader::new(&bytes, b"TESTTEST", 2).expect("a frame");
        restored.read_from(&mut reader, key()).expect("caps");
        assert_eq!(admitted(&mut restored, &[1, 2, 2, 3, 4]), [false, true, false, true, false]);
        assert_eq!((caps.capped(), restored.capped()), (1, 4));
        assert_eq!(format!("{caps:?}"), "Caps");
    }

    #[test]
    fn saved_caps_that_cannot_be_are_refused() {
        assert!(read(2, 2, &[(1, 2), (5, 1)]).is_ok());
        for users in [&[(1, 0)][..], &[(1, 3)], &[(1, 1), (1, 1)], &[(1, 1), (2, 1), (3, 1)]] {
            assert!(read(2, 2, users).is_err(), "{users:?}");
        }
    }
}
