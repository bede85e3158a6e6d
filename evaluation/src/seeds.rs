//! Cases that have a plan and are run with several seeds.

use anyhow::Result;
use dpsw::Plan;

use crate::cores::{self, Cores};

/// A plan and one outcome per seed, or why there is no plan.
pub(crate) type Ran<O> = Result<(Plan, Vec<O>), String>;

/// Plans every case and measures those that have a plan, with the seeds from 0 on; in the order of the cases.
pub(crate) fn run<C: Sync, O: Send + Sync>(
    cases: &[C],
    seeds: u64,
    plan: impl Fn(&C) -> Result<Plan> + Sync,
    measure: impl Fn(&C, &Plan, u64) -> Result<O> + Sync,
) -> Result<Vec<Ran<O>>> {
    let plans = cores::run("plan", Cores::All, cases, plan);
    let planned = cases.iter().zip(&plans).filter_map(|(case, plan)| Some((case, plan.as_ref().ok()?)));
    let jobs: Vec<(&C, &Plan, u64)> =
        planned.flat_map(|(case, plan)| (0..seeds).map(move |seed| (case, plan, seed))).collect();
    let outcomes = cores::run("measure", Cores::All, &jobs, |&(case, plan, seed)| measure(case, plan, seed));
    let mut outcomes = outcomes.into_iter();
    let own = |plan: Result<Plan>| match plan {
        Err(error) => Ok(Err(format!("{error:#}"))),
        Ok(plan) => {
            let own: Result<Vec<O>> = (0..seeds).filter_map(|_| outcomes.next()).collect();
            own.map(|own| Ok((plan, own)))
        }
    };
    plans.into_iter().map(own).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::{bail, ensure};
    use dpsw::Settings;

    use super::*;

    fn plan(keys: &u64) -> Result<Plan> {
        ensure!(*keys != 2, "no plan for two");
        Ok(Settings::last_items(1_000, 1.0)?.with_keys(0..*keys).plan()?)
    }

    #[test]
    fn each_case_gets_the_outcomes_of_its_own_seeds_or_the_reason_why_it_has_none() {
        let ran = run(&[1, 2, 3], 2, plan, |keys, _, seed| Ok(10 * keys + seed)).expect("they run");
        let outcomes: Vec<Result<Vec<u64>, String>> =
            ran.into_iter().map(|ran| ran.map(|(_, outcomes)| outcomes)).collect();
        assert_eq!(outcomes, [Ok(vec![10, 11]), Err("no plan for two".to_owned()), Ok(vec![30, 31])]);
        let failed = run(&[1, 3], 2, plan, |keys, _, seed| -> Result<()> { bail!("{keys} {seed}") });
        assert_eq!(failed.expect_err("it fails").to_string(), "1 0");
    }
}
