//! The speed of campaigns: programs and executions a second, over the last seconds.

use crate::core::Core;
use crate::service::Control;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between samples.
const EVERY: Duration = Duration::from_secs(1);
/// Number of samples kept; a rate is measured from the first to the last.
const KEPT: usize = 10;

struct Sample {
    at: Instant,
    /// Programs done, by open campaign.
    open: BTreeMap<String, u64>,
    programs: u64,
    executions: u64,
}

/// The latest samples.
#[derive(Clone, Default)]
pub(super) struct Rates(Arc<Mutex<VecDeque<Sample>>>);

impl Rates {
    /// Takes samples until the coordinator stops.
    pub(super) fn watch(control: Control) -> Self {
        let rates = Self::default();
        let keep = rates.clone();
        tokio::spawn(async move {
            let mut clock = tokio::time::interval(EVERY);
            loop {
                clock.tick().await;
                let Ok(sample) = control.call(|core| take(core)).await else { return };
                keep.push(sample);
            }
        });
        rates
    }

    fn push(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push_back(sample);
        while samples.len() > KEPT {
            samples.pop_front();
        }
    }

    /// Computes the growth of a number per second.
    fn growth(&self, of: impl Fn(&Sample) -> Option<u64>) -> Option<f64> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = (samples.front()?, samples.back()?);
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let grown = of(last)?.saturating_sub(of(first)?);
        (seconds > 0.0).then(|| grown as f64 / seconds)
    }

    /// Returns the programs a second of an open campaign.
    pub(super) fn of(&self, campaign: &str) -> Option<f64> {
        self.growth(|s| s.open.get(campaign).copied())
    }
    /// Returns the programs and executions a second of all campaigns.
    pub(super) fn total(&self) -> (Option<f64>, Option<f64>) {
        (self.growth(|s| Some(s.programs)), self.growth(|s| Some(s.executions)))
    }
}

fn take(core: &Core) -> Sample {
    let open =
        core.triage.runs.iter().filter(|(_, r)| r.open()).map(|(name, r)| (name.clone(), r.progress.done()));
    Sample {
        at: Instant::now(),
        open: open.collect(),
        programs: core.triage.runs.values().map(|r| r.progress.done()).sum(),
        executions: core.triage.runs.values().map(|r| r.progress.counters.executions).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_over_the_samples_kept() {
        let rates = Rates::default();
        assert_eq!(rates.total(), (None, None));
        let start = Instant::now();
        for n in 0..30_u64 {
            let at = start + Duration::from_secs(n);
            rates.push(Sample { at, open: [("c".to_owned(), n * n)].into(), programs: n * 3, executions: 7 });
        }
        assert_eq!(rates.total(), (Some(3.0), Some(0.0)));
        assert_eq!((rates.of("c"), rates.of("d")), (Some(49.0), None), "from 20 to 29");
    }
}
