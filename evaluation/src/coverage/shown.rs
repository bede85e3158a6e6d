//! What a listed row shows.

use dpsw::Ranked;

/// What a listed row shows: a count, its 95 % interval, and whether it carries a mark of doubt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shown {
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
    /// Whether the row says that it may be far too large.
    pub marked: bool,
}

/// What is shown of a row.
pub fn shown(ranked: &Ranked<'_>) -> Shown {
    let shown = ranked.shown;
    Shown { value: shown.value, lower: shown.lower, upper: shown.upper, marked: shown.marked }
}

impl Shown {
    /// Whether the interval holds a count.
    pub fn holds(&self, count: u64) -> bool {
        (self.lower..=self.upper).contains(&(count as f64))
    }

    pub fn width(&self) -> f64 {
        self.upper - self.lower
    }

    /// Whether the true count is below a quarter of what is shown.
    pub fn is_ghost(&self, count: u64) -> bool {
        4.0 * (count as f64) < self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_ends_and_a_ghost_is_less_than_a_quarter() {
        let shown = Shown { value: 100.0, lower: 80.0, upper: 120.0, marked: false };
        assert!(shown.holds(80) && shown.holds(120) && !shown.holds(79) && !shown.holds(121));
        assert!(shown.is_ghost(24) && !shown.is_ghost(25));
        assert_eq!(shown.width(), 40.0);
        let nothing = Shown { value: 0.0, lower: -5.0, upper: 5.0, marked: true };
        assert!(!nothing.is_ghost(0));
    }
}
