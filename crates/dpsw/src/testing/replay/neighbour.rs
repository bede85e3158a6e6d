//! Neighbours, as each unit defines them.

use std::ops::Range;

use crate::plan::settings::Unit;
use crate::plan::structure::Plan;
use crate::testing::replay::dice::Dice;
use crate::testing::replay::plans::KEYS;
use crate::testing::replay::story::{Event, Story, What};

/// The same story of a neighbour that differs in this event; `places` are the positions or times of all events.
pub(super) fn neighbour(story: &Story, one: usize, plan: &Plan, places: &[u64], dice: &mut Dice) -> Story {
    let mut other = story.clone();
    match plan.settings().unit {
        Unit::ReplaceOne => {
            other.events[one].replace(dice);
            // Another item may bring the event too late.
            other.events[one].is_there = plan.has_public_totals() || dice.once_in(2);
        }
        Unit::AddRemove => other.events[one].is_there = false,
        Unit::Users { .. } => {
            let (window, user) = (window(plan, places[one], dice), story.events[one].user);
            let is_changed =
                |(event, place): &(&mut Event, &u64)| event.user == user && window.contains(*place);
            let changed = other.events.iter_mut().zip(places).filter(is_changed);
            changed.for_each(|(event, _)| event.replace(dice));
        }
    }
    other
}

/// Any event, or the earliest, the latest or the last of a call.
pub(super) fn chosen(story: &Story, dice: &mut Dice) -> usize {
    let arrivals = story.arrivals();
    let events = dice.one_of(&arrivals).clone();
    let at = |&event: &usize| story.events[event].at;
    let one = match dice.below(4) {
        0 => events.clone().min_by_key(at),
        1 => events.clone().max_by_key(at),
        2 => events.clone().last(),
        _ => None,
    };
    one.unwrap_or_else(|| events.start + dice.below(events.len() as u64) as usize)
}

/// A window that has this position or time in it.
fn window(plan: &Plan, place: u64, dice: &mut Dice) -> Range<u64> {
    let len = plan.settings().window.len();
    let start = place.saturating_sub(dice.below(len));
    start..start + len
}

impl Event {
    /// Another item in the same place.
    fn replace(&mut self, dice: &mut Dice) {
        let before = self.what;
        while self.what == before {
            self.what = match dice.below(6) {
                0 => What::Null,
                1 => What::Unlisted,
                2 => What::Long,
                3 => What::Key(dice.below(KEYS)),
                _ => What::Key(dice.below(4)),
            };
        }
    }
}
