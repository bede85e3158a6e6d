//! Many runs on two neighbouring streams, judged by every test.

use crate::audit::conversation::Outcome;
use crate::audit::report::{AuditError, Claimed, Effort, Test, Tightness};
use crate::audit::statistics::{Event, Judge, Scores};

/// A correct build shows at least this share of what its noise is planned to show.
const TIGHT: f64 = 0.85;

const SEALED: &str = "sealed counters";
const REVEALING: &str = "sealed counters, most revealing event";
const OWN: &str = "those of pinned keys, most revealing event";

/// What one test looks at.
type Score = fn(&Outcome) -> f64;

/// The verdicts of the statistical tests.
pub(super) struct Trial {
    pub(super) tests: Vec<Test>,
    pub(super) tightness: Tightness,
}

/// The outcomes of the runs on either stream.
struct Sample {
    first: Vec<Outcome>,
    second: Vec<Outcome>,
}

impl Sample {
    fn draw_runs(
        count: usize,
        run: &mut impl FnMut(bool) -> Result<Outcome, AuditError>,
    ) -> Result<Self, AuditError> {
        Ok(Self {
            first: (0..count).map(|_| run(false)).collect::<Result<_, _>>()?,
            second: (0..count).map(|_| run(true)).collect::<Result<_, _>>()?,
        })
    }

    fn score_by(&self, score: Score) -> Scores {
        let [first, second] = [&self.first, &self.second].map(|runs| runs.iter().map(score).collect());
        Scores { first, second }
    }
}

impl Trial {
    /// `planned` is what the noise lets an adversary learn; `run` gives the outcome of a run on the first or the second
    /// stream.
    pub(super) fn new(
        claimed: Claimed,
        planned: f64,
        effort: Effort,
        mut run: impl FnMut(bool) -> Result<Outcome, AuditError>,
    ) -> Result<Self, AuditError> {
        // The threshold of each test is chosen on other runs than those that are judged by it.
        let pilot = Sample::draw_runs(effort.pilot_runs(), &mut run)?;
        let sample = Sample::draw_runs(effort.runs, &mut run)?;
        let judge = Judge { claimed, delta: 0.0, doubt: effort.doubt() };
        let tests = judge_all(judge, planned, &pilot, &sample);
        // Laplace noise loses all that is planned only in its most revealing event, Gaussian noise at every threshold.
        let revealing = if let Claimed::Epsilon(_) = claimed { REVEALING } else { SEALED };
        let uppers = tests.iter().filter(|test| test.name == revealing).map(|test| test.upper);
        let upper = uppers.fold(f64::INFINITY, f64::min);
        let tightness = Tightness { planned, upper, ok: TIGHT * planned <= upper };
        Ok(Self { tests, tightness })
    }

    #[cfg(test)]
    pub(super) fn holds(&self) -> bool {
        self.tightness.ok && self.tests.iter().all(|test| test.ok)
    }
}

fn judge_all(judge: Judge, planned: f64, pilot: &Sample, sample: &Sample) -> Vec<Test> {
    let scores: [(&'static str, Score); 7] = [
        (SEALED, |outcome| outcome.sealed),
        ("answers just before and after the event", |outcome| outcome.around),
        ("one question, asked 20 times", |outcome| outcome.repeated),
        ("totals of sealed sketches", |outcome| outcome.totals),
        ("a threshold slid over heavy hitters", |outcome| outcome.slid),
        ("an error bound", |outcome| outcome.bound),
        ("which of two keys is cut finely or pinned", |outcome| outcome.levels),
    ];
    let mut tests = Vec::new();
    for (name, score) in scores {
        let event = Event::Pilot(pilot.score_by(score));
        tests.extend(judge.judge_both(name, &event, &sample.score_by(score)));
    }
    if let Claimed::Epsilon(_) = judge.claimed {
        // Losses are sums of rounded quotients, so the largest may fall just short of the plan.
        let event = Event::AtLeast(planned * (1.0 - 1e-9));
        tests.extend(judge.judge_both(REVEALING, &event, &sample.score_by(|outcome| outcome.sealed)));
    }
    // Where no key is ever pinned, every score is zero.
    if pilot.first.iter().any(|outcome| outcome.own != 0.0) {
        let event = Event::AtLeast(1.0 - 1e-9);
        tests.extend(judge.judge_both(OWN, &event, &sample.score_by(|outcome| outcome.own)));
    }
    tests
}
