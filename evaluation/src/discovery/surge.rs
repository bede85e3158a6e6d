//! A new key that suddenly takes a share of the stream.

use anyhow::Result;
use dpsw::{Batch, DpswSketch, Item, Noise, Plan};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::case::Followed;

/// The shares that new keys take.
pub const SHARES: [f64; 3] = [0.6, 0.1, 0.03];
/// Windows after which a key counts as not listed.
const WINDOWS_MAX: u64 = 4;

/// New keys that take the same share of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Surge {
    pub share: f64,
    /// Items from the start of each surge until its key is listed; `None` after four windows.
    pub delays: Vec<Option<u64>>,
}

impl Surge {
    /// Surges that begin between the ends of the first and the second window.
    pub(super) fn measure(
        plan: &Plan,
        followed: &Followed,
        share: f64,
        count: u64,
        seed: u64,
    ) -> Result<Self> {
        let delay = |index: u64| {
            let random = ChaCha12Rng::seed_from_u64(0x5e1e + 1000 * seed + index);
            Rising { plan, followed, share, random }.delay(seed)
        };
        Ok(Self { share, delays: (0..count).map(delay).collect::<Result<_>>()? })
    }
}

/// One new key.
struct Rising<'a> {
    plan: &'a Plan,
    followed: &'a Followed,
    share: f64,
    random: ChaCha12Rng,
}

impl Rising<'_> {
    /// Follows the stream from a random position, and looks after each seal.
    fn delay(&mut self, seed: u64) -> Result<Option<u64>> {
        let window_len = self.plan.settings().window.len();
        let calm = window_len + self.random.random_range(0..window_len);
        let mut items = self.followed.from(self.random.random_range(0..self.followed.len()));
        let mut sketch = DpswSketch::with_noise(self.plan.clone(), Noise::seeded(seed))?;
        let before: Vec<u64> = items.by_ref().take(calm as usize).collect();
        sketch.extend(Batch::integers(&before))?;
        let new = self.followed.keys() as u64;
        let step = self.plan.substream_len();
        let mut position = calm;
        while position < calm + WINDOWS_MAX * window_len {
            let next = (position / step + 1) * step;
            let taken: Vec<u64> =
                items.by_ref().take((next - position) as usize).map(|item| self.turned(item, new)).collect();
            sketch.extend(Batch::integers(&taken))?;
            position = next;
            if sketch.view().top(usize::MAX)?.iter().any(|row| row.item == Item::Integer(new)) {
                return Ok(Some(position - calm));
            }
        }
        Ok(None)
    }

    fn turned(&mut self, item: u64, new: u64) -> u64 {
        if self.random.random_bool(self.share) { new } else { item }
    }
}
