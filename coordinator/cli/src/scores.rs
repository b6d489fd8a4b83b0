//! Scores of a campaign: how many planted bugs it finds, canaries in the engines and mistakes in protocols.
//!
//! Contract: after too few programs a score is `unsure`. After enough, a planted bug that was not found is an alarm, because
//! then real bugs may be missed too.

use moire_coordinator::report::{Grade, Score};
use moire_coordinator::v1::CampaignStatus;
use moire_generate::Profile;
use moire_worker::oracle::{ASSEMBLED_SOURCES, CANARIES, PLANTED_IN_MACHINE_CODE, SASS};

/// Programs after which every canary should have been caught; measured, with a margin.
pub(crate) const CANARY_ITEMS: u64 = 10_000;
/// Programs after which each loss planted in machine code should have been caught; measured, with a margin.
const MACHINE_ITEMS: u64 = 1_000;
/// Planted bugs from which on one that was not found counts: not every program shows what is planted in it.
const PLANTED_MIN: u64 = 30;
/// Number of mutants from which on their score counts.
const MUTANTS_MIN: u64 = 100;
/// Percentage of the mutants that must be found; 90.8 were when this was set, those too large to judge counted as missed.
const MUTANTS_FOUND: u64 = 80;
/// The verdicts on a mutant that was not found.
const MISSED: [&str; 3] = ["equivalent", "clean, unconfirmed", "discrepancy"];

/// The measures of a campaign. Canaries of engines are for whole campaigns over all oracles under the default models; those of
/// machine code for campaigns over an oracle of it.
pub(crate) fn of(status: &CampaignStatus) -> Vec<Score> {
    let spec = status.spec.clone().unwrap_or_default();
    let planted = [Profile::Core, Profile::Mixed].iter().any(|profile| profile.name() == spec.profile);
    let whole = spec.oracles.is_empty() && spec.models.is_empty() && planted;
    let machine =
        spec.oracles.iter().any(|name| [SASS.name, ASSEMBLED_SOURCES.name].contains(&name.as_str()));
    let planted: Option<(Vec<&str>, u64)> = match () {
        () if whole => Some((CANARIES.iter().map(|c| c.name).collect(), CANARY_ITEMS)),
        () if machine => Some((PLANTED_IN_MACHINE_CODE.to_vec(), MACHINE_ITEMS)),
        () => None,
    };
    let canaries = planted.filter(|_| spec.canaries).map(|(names, items)| canaries(status, &names, items));
    canaries.into_iter().chain(mutants(status)).collect()
}

/// Which of these planted bugs were caught, where so many programs should catch each.
fn canaries(status: &CampaignStatus, names: &[&str], items: u64) -> Score {
    let missed: Vec<&str> =
        names.iter().copied().filter(|name| !status.canaries.contains_key(*name)).collect();
    let (all, found) = (names.len(), names.len() - missed.len());
    let mut says = format!("{found} of {all} caught, {} planted in all", status.canaries_planted);
    let enough = status.programs >= items && status.canaries_planted >= PLANTED_MIN;
    let grade = match (missed.is_empty(), enough) {
        (true, _) => Grade::Good,
        (false, true) => Grade::Alarm,
        (false, false) => Grade::Unsure,
    };
    if !missed.is_empty() {
        says.push_str(&format!("; missed {}", missed.join(", ")));
    }
    if grade == Grade::Unsure {
        says.push_str(&format!("; inconclusive below {items} programs and {PLANTED_MIN} planted"));
    }
    Score { name: "canaries".into(), grade, says }
}

/// How many mistakes planted in protocols were found; equivalent mutants do not count.
fn mutants(status: &CampaignStatus) -> Option<Score> {
    let verdict = |name: &str| name.split_once('/').map_or(String::new(), |(_, v)| v.to_owned());
    let sum = |keep: &dyn Fn(&str) -> bool| -> u64 {
        status.mutants.iter().filter(|(name, _)| keep(&verdict(name))).map(|(_, n)| *n).sum()
    };
    let (all, equivalent) = (sum(&|_| true), sum(&|v| v == MISSED[0]));
    let found = sum(&|v| !MISSED.contains(&v));
    let judged = all.checked_sub(equivalent).filter(|n| *n > 0)?;
    let score = 100.0 * found as f64 / judged as f64;
    let grade = match () {
        () if judged < MUTANTS_MIN => Grade::Unsure,
        () if found * 100 < judged * MUTANTS_FOUND => Grade::Alarm,
        () => Grade::Good,
    };
    let says = format!("{found} of {all} found, {equivalent} equivalent, mutation score {score:.1} %");
    Some(Score { name: "mutants".into(), grade, says })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(programs: u64, caught: usize, mutants: &[(&str, u64)]) -> CampaignStatus {
        CampaignStatus {
            spec: Some(moire_coordinator::v1::CampaignSpec {
                canaries: true,
                profile: Profile::Core.name().to_owned(),
                ..Default::default()
            }),
            programs,
            canaries: CANARIES.iter().take(caught).map(|c| (c.name.to_owned(), 1)).collect(),
            canaries_planted: PLANTED_MIN,
            mutants: mutants.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect(),
            ..CampaignStatus::default()
        }
    }

    #[test]
    fn a_missed_canary_is_an_alarm_once_there_was_time_for_it() {
        let grade = |programs, caught| of(&status(programs, caught, &[]))[0].grade;
        assert_eq!(grade(5, CANARIES.len()), Grade::Good);
        assert_eq!(grade(5, 1), Grade::Unsure);
        assert_eq!(grade(CANARY_ITEMS, CANARIES.len() - 1), Grade::Alarm);
        let few = CampaignStatus { canaries_planted: 4, ..status(CANARY_ITEMS, 0, &[]) };
        assert_eq!(of(&few)[0].grade, Grade::Unsure);
    }

    #[test]
    fn a_loss_in_machine_code_that_is_missed_is_an_alarm_too() {
        let grade = |oracle: &str, caught: usize| {
            let mut status = status(MACHINE_ITEMS, 0, &[]);
            status.spec.as_mut().unwrap().oracles = vec![oracle.to_owned()];
            status.canaries =
                PLANTED_IN_MACHINE_CODE.iter().take(caught).map(|n| ((*n).to_owned(), 1)).collect();
            of(&status).first().map(|score| score.grade)
        };
        for oracle in [SASS, ASSEMBLED_SOURCES] {
            assert_eq!(grade(oracle.name, 3), Some(Grade::Good));
            assert_eq!(grade(oracle.name, 2), Some(Grade::Alarm));
        }
        assert_eq!(grade("assembler", 0), None);
    }

    #[test]
    fn mutants_are_scored() {
        let score = |mutants: &[(&str, u64)]| of(&status(5, 0, mutants)).into_iter().nth(1);
        let good =
            score(&[("drop/race", 190), ("drop/equivalent", 12), ("move/clean, unconfirmed", 10)]).unwrap();
        assert_eq!((good.grade, good.says.contains("95.0 %")), (Grade::Good, true), "{}", good.says);
        assert_eq!(score(&[("drop/race", 79), ("drop/discrepancy", 21)]).unwrap().grade, Grade::Alarm);
        assert_eq!(score(&[("drop/race", 9), ("drop/discrepancy", 9)]).unwrap().grade, Grade::Unsure);
        assert_eq!(score(&[("drop/equivalent", 9)]), None);
    }
}
