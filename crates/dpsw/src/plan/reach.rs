//! What a neighbour can change in the sketches: the sensitivity that all noise is calibrated to.

use crate::plan::settings::Unit;

impl Unit {
    /// How many counters of a row one event can move by one.
    pub(crate) fn shifts_per_row(self) -> u64 {
        match self {
            // The old item leaves one counter of each row, and the new one enters another (PRIVACY.md: rule 4).
            Self::ReplaceOne | Self::Users { .. } => 2,
            Self::AddRemove => 1,
        }
    }

    /// How many events are protected together, where a window touches this many substreams.
    pub(crate) fn protected_events(self, substreams: u64) -> Events {
        match self {
            Self::ReplaceOne | Self::AddRemove => Events { of_substream: 1, of_window: 1 },
            Self::Users { per_substream } => {
                let of_substream = u64::from(per_substream);
                Events { of_substream, of_window: of_substream.saturating_mul(substreams) }
            }
        }
    }
}

/// Events that are protected together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Events {
    pub(crate) of_substream: u64,
    pub(crate) of_window: u64,
}

/// The most that one event, or all events of a user in a window, can move in the sketches: the sensitivity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The sum of the changes of all counters.
    pub(crate) sum: u64,
    /// The sum of their squares.
    pub(crate) squares: u64,
}

impl Reach {
    /// In sketches of this many rows, where a window touches at most this many substreams. In the worst case everything that
    /// a user sends in a substream falls on the same counters.
    pub(crate) fn new(unit: Unit, rows: u32, substreams: u64) -> Self {
        let Events { of_substream, of_window } = unit.protected_events(substreams);
        // A reach beyond 64 bits must not wrap around to less noise.
        let sum = unit.shifts_per_row().saturating_mul(rows.into()).saturating_mul(of_window);
        Self { sum, squares: sum.saturating_mul(of_substream) }
    }

    /// Whether every counter moves by at most one.
    pub(crate) fn is_by_ones(self) -> bool {
        self.sum == self.squares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_calibrated_to_all_that_a_neighbour_can_move() {
        let users = |per_substream| Unit::Users { per_substream };
        for (unit, sum, squares) in [
            (Unit::ReplaceOne, 6, 6),
            (Unit::AddRemove, 3, 3),
            // Two counters of three rows, in five substreams; then four times each, which squares to sixteen.
            (users(1), 30, 30),
            (users(4), 120, 480),
        ] {
            let reach = Reach::new(unit, 3, 5);
            assert_eq!(reach, Reach { sum, squares }, "{unit:?}");
            assert_eq!(reach.is_by_ones(), sum == squares);
        }
    }
}
