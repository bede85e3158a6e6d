//! What is wanted of a plan, and the defaults.

use std::time::Duration;

use dpsw::error::{ParameterError, PlanError};
use dpsw::plan::{Expectation, Method, Planned, Request};
use dpsw::{Clock, Delta, Domain, Keys, Settings, TimeWindow, Unit, Window};

use crate::memory;
use crate::quantity::{Span, millis};

/// The delta if a plan needs one and none is given.
pub const DELTA: f64 = 1e-10;
/// The items of a time window, if nobody says how many there are.
const EXPECTED_ITEMS: u64 = 1_000_000;
/// The keys that are expected where there is no list.
const KEYS_EXPECTED: usize = 100_000;

/// A request for a plan: what it is wanted for, with defaults for all but window, unit, epsilon and keys.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// See [`window`].
    pub window: Window,
    /// What is protected.
    pub unit: Unit,
    /// The privacy budget.
    pub epsilon: f64,
    /// Giving one allows Gaussian noise.
    pub delta: Option<f64>,
    /// Which keys may be listed.
    pub domain: Domain,
    /// How many windows of the past are kept, from 1.
    pub retention: u32,
    /// The bytes of sketches; by default as many as lower the error, see [`memory::plan`].
    pub memory: Option<u64>,
    /// The public guess of how counts are spread.
    pub expectation: Expectation,
    /// The steps in which times go, in milliseconds.
    pub step: u64,
    /// Which windows are asked.
    pub asked: Asked,
    /// The most levels, where others than the library's are wanted; see [`Request::levels`].
    pub levels: Option<u32>,
}

/// The windows of a stream that are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// At any time.
    Any,
    /// The last one of a stream whose length is known.
    Last,
}

impl PlanRequest {
    /// A request with the defaults.
    pub fn new(window: Window, unit: Unit, epsilon: f64, domain: Domain) -> Self {
        let expectation = expectation(&domain);
        Self {
            window,
            unit,
            epsilon,
            delta: None,
            domain,
            retention: 1,
            memory: None,
            expectation,
            step: 1,
            asked: Asked::Any,
            levels: None,
        }
    }

    /// The best plan, and what the planner was asked to find it.
    ///
    /// # Errors
    /// A number is out of range, or there is no such plan.
    pub fn plan(self) -> Result<(Planned, Request), PlanError> {
        let is_sized = self.memory.is_some();
        let request = self.for_planner()?;
        if is_sized { Ok((request.plan()?, request)) } else { memory::plan(request) }
    }

    /// The same for workers of a cluster, which pin no keys.
    ///
    /// # Errors
    /// See [`plan`](Self::plan).
    pub fn plan_for_workers(self) -> Result<Planned, PlanError> {
        let (planned, _) = self.clone().plan()?;
        match planned.plan.method() {
            Method::Tuned(method) if 0 < method.pinned => Ok(Self { levels: Some(1), ..self }.plan()?.0),
            _ => Ok(planned),
        }
    }

    /// What the planner is asked. A large domain is moved, not copied.
    ///
    /// # Errors
    /// Epsilon or delta is out of range.
    pub fn for_planner(self) -> Result<Request, ParameterError> {
        let delta = self.delta_needed().map(Delta::new).transpose()?;
        let settings = Settings {
            unit: self.unit,
            delta,
            domain: self.domain,
            retention: self.retention,
            ..Settings::new(self.window, self.epsilon)?
        };
        let request = Request::new(settings).with_expectation(self.expectation).with_step(self.step);
        let request = if self.asked == Asked::Last { request.for_last_window() } else { request };
        let request = if let Some(levels) = self.levels { request.with_levels(levels) } else { request };
        Ok(match self.memory {
            Some(bytes) => request.with_bytes(bytes),
            None => request,
        })
    }

    /// The delta that was given, or the default where finding keys needs one.
    fn delta_needed(&self) -> Option<f64> {
        self.delta.or(self.domain.search().map(|_| self.delta_default()))
    }

    /// The delta if one is needed. Windows that are longer than any of today need a smaller one than [`DELTA`].
    pub fn delta_default(&self) -> f64 {
        DELTA.min(1.0 / (self.window.expected_items().max(1) as f64 * f64::from(self.retention)))
    }
}

/// The window in the library's words; a tick is a millisecond. Lateness, clock and expected items are of time windows alone.
pub fn window(span: Span, lateness: Duration, clock: Clock, expected_items: Option<u64>) -> Window {
    match span {
        Span::Items(len) => Window::Items(len),
        Span::Time(len) => Window::Time(TimeWindow {
            len: millis(len),
            lateness: millis(lateness),
            clock,
            expected_items: expected_items.unwrap_or(EXPECTED_ITEMS),
        }),
    }
}

/// What to expect of a number of keys when nothing better is known.
pub fn expectation(domain: &Domain) -> Expectation {
    Expectation::zipf(domain.keys().map_or(KEYS_EXPECTED, Keys::len).max(1))
}

#[cfg(test)]
mod tests {
    use dpsw::{Kind, SearchSettings};

    use super::*;

    fn request(domain: Domain) -> PlanRequest {
        PlanRequest::new(Window::Items(1_000_000), Unit::ReplaceOne, 1.0, domain)
    }

    fn found() -> Domain {
        Domain::Found(SearchSettings::new(Kind::Bytes))
    }

    fn delta(request: PlanRequest) -> Option<f64> {
        request.for_planner().expect("in range").settings.delta.map(Delta::get)
    }

    #[test]
    fn a_delta_is_taken_only_where_keys_are_found() {
        let listed = || Domain::Public(Keys::Range(100));
        assert_eq!(delta(request(listed())), None);
        assert_eq!(delta(PlanRequest { delta: Some(1e-6), ..request(listed()) }), Some(1e-6));
        assert_eq!(delta(request(found())), Some(DELTA));
        assert_eq!(delta(PlanRequest { delta: Some(1e-6), ..request(found()) }), Some(1e-6));
        let long = PlanRequest { window: Window::Items(1_000_000_000), retention: 1_000, ..request(found()) };
        assert_eq!(delta(long), Some(1e-12));
    }

    #[test]
    fn memory_that_is_given_is_not_exceeded_and_else_the_planner_may_take_more() {
        let keys = || Domain::Public(Keys::Range(1_000_000));
        let (small, asked) = PlanRequest { memory: Some(100_000), ..request(keys()) }.plan().expect("a plan");
        assert_eq!(asked.bytes, 100_000);
        assert!(small.plan.sketch_bytes() <= 100_000);
        let (_, asked) = request(found()).plan().expect("a plan");
        assert!(memory::MEMORY <= asked.bytes);
    }

    #[test]
    fn a_window_of_time_counts_in_milliseconds() {
        let of = |expected| {
            window(Span::Time(Duration::from_secs(900)), Duration::from_secs(2), Clock::Caller, expected)
        };
        let time = |expected_items| TimeWindow {
            len: 900_000,
            lateness: 2_000,
            clock: Clock::Caller,
            expected_items,
        };
        assert_eq!(of(Some(7)), Window::Time(time(7)));
        assert_eq!(of(None), Window::Time(time(EXPECTED_ITEMS)));
        assert_eq!(window(Span::Items(5), Duration::ZERO, Clock::Events, Some(7)), Window::Items(5));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let refused = PlanRequest { epsilon: -1.0, ..request(found()) }.plan().err();
        assert_eq!(refused, Some(PlanError::Parameter(ParameterError::Epsilon(-1.0))));
        let refused = PlanRequest { delta: Some(2.0), ..request(found()) }.plan().err();
        assert_eq!(refused, Some(PlanError::Parameter(ParameterError::Delta(2.0))));
    }
}
