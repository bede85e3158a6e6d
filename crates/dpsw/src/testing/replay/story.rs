//! What happens to a stream: events, and all operations that a caller has.

use std::ops::Range;

use crate::plan::settings::Clock;
use crate::plan::structure::Plan;
use crate::stream::worker::Worker;
use crate::testing::replay::dice::Dice;
use crate::testing::replay::plans::{KEYS, STREAM_KEY};
use crate::{StreamKey, Window};

const USERS: u64 = 3;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// Its time, for time windows.
    pub(super) at: u64,
    pub(super) user: u64,
    pub(super) what: What,
    /// Whether it takes place, on this stream.
    pub(super) is_there: bool,
}

/// What an event holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Key(u64),
    /// A key that no list has.
    Unlisted,
    /// A key that is too long to be found.
    Long,
    Null,
}

/// What happens next. Events are named by where they stand in the story.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// These arrive.
    Send(Range<usize>),
    /// Workers count these, those within the range of times.
    Work { batch: u64, times: Range<u64>, events: Range<usize> },
    /// The caller's clock is set.
    Clock(u64),
    /// Somebody looks, and asks all questions or none.
    Look { asks: bool },
    /// The system gives randomness for so many draws and then fails once.
    Dry(u64),
    /// The stream is saved and restored.
    Restore,
    /// A crash: these steps are seen by nobody and happen again after the last checkpoint.
    Lost(Vec<Step>),
    /// Two lines of one stream: a checkpoint of the first, which is lost unseen, is resumed behind the second, which was seen.
    TwoLines { lost: Vec<Step>, seen: Vec<Step>, later: u64 },
    /// The stream is saved and resumed so much later, without what was open.
    Resume { later: u64 },
    /// The stream is over.
    Finish,
}

/// What a story can have in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// It begins inside a substream.
    Begun,
    /// The clock jumps over all that is kept.
    Jump,
    /// The same after an event that has opened the substream where the clock lands.
    EarlyBeforeJump,
    Work,
    Dry,
    Restore,
    Lost,
    TwoLines,
    Resume,
    /// The stream is over, after an event that may lie as far ahead as can be; half of the time randomness fails first.
    Finish,
}

const OPERATIONS: [Operation; 10] = [
    Operation::Begun,
    Operation::Jump,
    Operation::EarlyBeforeJump,
    Operation::Work,
    Operation::Dry,
    Operation::Restore,
    Operation::Lost,
    Operation::TwoLines,
    Operation::Resume,
    Operation::Finish,
];

impl Operation {
    /// Those that streams of a plan have.
    pub(super) fn of(plan: &Plan) -> Vec<Self> {
        let is_timed = plan.settings().window.time().is_some();
        let has_workers = Worker::new(plan.clone(), StreamKey::from_bytes(STREAM_KEY)).is_ok();
        let has = |operation: &Self| match operation {
            Self::Begun => !is_timed,
            Self::Jump | Self::EarlyBeforeJump => is_timed,
            Self::Work => has_workers,
            _ => true,
        };
        OPERATIONS.into_iter().filter(has).collect()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Story {
    /// How many items are to come, where a stream begins inside a substream.
    pub(super) begun_for: Option<u64>,
    pub(super) events: Vec<Event>,
    pub(super) steps: Vec<Step>,
    /// The last event that opened the substream in which the clock then landed.
    pub(super) early: Option<usize>,
}

impl Story {
    /// A story with all of these in random order, events before and after each.
    pub(super) fn with(operations: &[Operation], plan: &Plan, dice: &mut Dice) -> Self {
        let mut operations = operations.to_vec();
        dice.shuffle(&mut operations);
        operations.sort_by_key(|operation| *operation == Operation::Finish);
        Self::told(&operations, plan, dice)
    }

    fn told(operations: &[Operation], plan: &Plan, dice: &mut Dice) -> Self {
        let begun_for = operations.contains(&Operation::Begun).then(|| 1 + dice.below(1000));
        let (events, steps) = (Vec::new(), Vec::new());
        let mut teller = Teller { plan, dice, events, steps, early: None, clock: 0, batch: 0 };
        teller.begin();
        operations.iter().for_each(|&operation| teller.tell(operation));
        let Teller { events, steps, early, .. } = teller;
        Self { begun_for, events, steps, early }
    }

    /// An event that opens a substream, in which the clock then lands. Enough is sealed before for keys to be pinned there.
    pub(super) fn early_before_jump(plan: &Plan, dice: &mut Dice) -> Self {
        let before = vec![Operation::Restore; plan.open_substreams_max() as usize];
        Self::told(&[before, vec![Operation::EarlyBeforeJump]].concat(), plan, dice)
    }

    /// The same with some of the operations, some of them more than once.
    pub(super) fn random(plan: &Plan, dice: &mut Dice) -> Self {
        let all = Operation::of(plan);
        let some: Vec<Operation> = (0..1 + dice.below(8)).map(|_| *dice.one_of(&all)).collect();
        Self::with(&some, plan, dice)
    }

    /// The events that arrive together, call by call.
    pub(super) fn arrivals(&self) -> Vec<Range<usize>> {
        let mut arrivals = Vec::new();
        self.steps.iter().for_each(|step| step.arrivals(&mut arrivals));
        arrivals
    }
}

impl Step {
    fn arrivals(&self, all: &mut Vec<Range<usize>>) {
        match self {
            Self::Send(events) | Self::Work { events, .. } => all.push(events.clone()),
            Self::Lost(steps) | Self::TwoLines { seen: steps, .. } => {
                steps.iter().for_each(|step| step.arrivals(all));
            }
            _ => {}
        }
    }
}

struct Teller<'a> {
    plan: &'a Plan,
    dice: &'a mut Dice,
    events: Vec<Event>,
    steps: Vec<Step>,
    early: Option<usize>,
    /// The watermark, as far as the story moved it.
    clock: u64,
    batch: u64,
}

impl Teller<'_> {
    fn begin(&mut self) {
        self.clock = self.dice.below(10 * self.plan.substream_len());
        self.set_clock();
        self.stretches();
    }

    fn tell(&mut self, operation: Operation) {
        match operation {
            Operation::Begun => {}
            Operation::Jump => {
                let further = (self.plan.open_substreams_max() + 2) * self.plan.substream_len();
                let by = self.plan.retained_len() + self.dice.below(further);
                self.jump_to(self.clock + by);
            }
            Operation::EarlyBeforeJump => {
                let at = self.far();
                self.early = Some(self.events.len());
                self.send_at(&[at]);
                let start = at - at % self.plan.substream_len();
                let into = self.dice.below(self.plan.substream_len());
                self.jump_to(start + self.plan.retained_len() + into);
            }
            Operation::Work => {
                self.work();
                self.move_clock();
                self.work();
            }
            Operation::Dry => {
                let draws = self.dice.below(6);
                self.steps.push(Step::Dry(draws));
            }
            Operation::Restore => self.steps.push(Step::Restore),
            Operation::Lost => {
                let lost = self.apart(Self::stretches);
                self.steps.push(Step::Lost(lost));
            }
            Operation::TwoLines => self.two_lines(),
            Operation::Resume => {
                let later = self.later();
                self.steps.push(Step::Resume { later });
            }
            Operation::Finish => {
                let far = self.far();
                self.send_at(&[far]);
                if self.dice.once_in(2) {
                    let draws = self.dice.below(6);
                    self.steps.push(Step::Dry(draws));
                }
                return self.steps.push(Step::Finish);
            }
        }
        self.stretches();
    }

    /// What is told apart from the other steps.
    fn apart(&mut self, tell: impl FnOnce(&mut Self)) -> Vec<Step> {
        let before = std::mem::take(&mut self.steps);
        tell(self);
        std::mem::replace(&mut self.steps, before)
    }

    fn two_lines(&mut self) {
        let lost = self.apart(Self::stretches);
        let more = self.apart(Self::stretches);
        let seen = lost.iter().cloned().chain(more).collect();
        let later = self.later();
        self.steps.push(Step::TwoLines { lost, seen, later });
    }

    /// How much later a stream goes on, and where the clock is then.
    fn later(&mut self) -> u64 {
        let len = self.plan.substream_len();
        let later = self.dice.below(2 * len);
        self.clock = (self.clock + later).next_multiple_of(len);
        later
    }

    /// Enough for something to be sealed.
    fn stretches(&mut self) {
        for _ in 0..2 + self.dice.below(2) {
            let count = 1 + self.plan.substream_len() / 2 + self.dice.below(self.plan.substream_len());
            let times: Vec<u64> = (0..count).map(|_| self.time()).collect();
            self.send_at(&times);
            self.move_clock();
            self.look();
        }
    }

    fn look(&mut self) {
        let asks = self.dice.once_in(12);
        self.steps.push(Step::Look { asks });
    }

    fn move_clock(&mut self) {
        self.clock += self.dice.below(self.plan.substream_len() + 2);
        self.set_clock();
        // An earlier time changes nothing.
        if self.dice.once_in(4) && self.is_callers() {
            self.steps.push(Step::Clock(self.clock / 2));
        }
    }

    fn set_clock(&mut self) {
        if self.is_callers() {
            self.steps.push(Step::Clock(self.clock));
        }
    }

    fn jump_to(&mut self, clock: u64) {
        if self.is_callers() {
            self.clock = self.clock.max(clock);
            self.set_clock();
        } else {
            self.send_at(&[clock + self.lateness()]);
        }
        self.look();
    }

    fn is_callers(&self) -> bool {
        self.plan.settings().window.time().is_some_and(|time| time.clock.is_callers())
    }

    fn lateness(&self) -> u64 {
        self.plan.settings().window.time().map_or(0, |time| time.lateness)
    }

    /// In time, late or early.
    fn time(&mut self) -> u64 {
        let (len, lateness) = (self.plan.substream_len(), self.lateness());
        match self.dice.below(16) {
            0 => self.clock.saturating_sub(lateness + self.dice.below(3 * len)),
            1 => self.clock + lateness + self.dice.below(3 * len),
            2..5 => self.clock.saturating_sub(self.dice.below(lateness + 1)),
            5..8 => self.far(),
            _ => self.clock + self.dice.below(len),
        }
    }

    /// As far ahead as an event can be without moving the clock, or less.
    fn far(&mut self) -> u64 {
        let (len, open) = (self.plan.substream_len(), self.plan.open_substreams_max());
        let last = if self.is_callers() {
            (self.clock / len + open) * len - 1
        } else {
            self.clock + self.lateness()
        };
        last - self.dice.below(last - self.clock + 1) * self.dice.below(2)
    }

    fn what(&mut self) -> What {
        match self.dice.below(16) {
            0 => What::Null,
            1 => What::Unlisted,
            2 => What::Long,
            3 => What::Key(self.dice.below(KEYS)),
            // Some of them far more often than others.
            _ => What::Key(self.dice.below(4) * self.dice.below(4) / 3),
        }
    }

    fn send_at(&mut self, times: &[u64]) {
        let events = self.told(times);
        self.steps.push(Step::Send(events));
        if let Window::Time(time) = self.plan.settings().window
            && time.clock == Clock::Events
        {
            let newest = times.iter().copied().max().unwrap_or(0);
            self.clock = self.clock.max(newest.saturating_sub(time.lateness));
        }
    }

    fn told(&mut self, times: &[u64]) -> Range<usize> {
        let start = self.events.len();
        for &at in times {
            let event = Event { at, user: self.dice.below(USERS), what: self.what(), is_there: true };
            self.events.push(event);
        }
        start..self.events.len()
    }

    /// Workers count around the clock: some of it is sealed and some lies too far ahead.
    fn work(&mut self) {
        let len = self.plan.substream_len();
        let start = self.clock.saturating_sub(self.dice.below(2 * len));
        let times: Vec<u64> = (0..1 + self.dice.below(len)).map(|_| self.time()).collect();
        let events = self.told(&times);
        let times = start..start + 1 + self.dice.below(4 * len);
        self.batch += 1;
        self.steps.push(Step::Work { batch: self.batch, times, events });
    }
}
